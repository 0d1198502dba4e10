"""Lines stand on the page."""

from dataclasses import replace

import numpy as np
import pytest

from service.ink.breaking import AVERAGE
from tests.service.ink.sheets import sheet


@pytest.mark.parametrize("lines", [1, 2, 9])
def test_every_baseline_is_on_the_page(lines: int) -> None:
    layout = sheet()
    baselines = [layout.origin_px(line)[1] for line in range(lines)]
    assert np.diff(baselines) == pytest.approx(40.0)
    assert baselines[0] > 0
    assert baselines[-1] < layout.height_px(lines) - layout.margin_px


@pytest.mark.parametrize(("width_px", "characters"), [(50, 0.7), (80, 3.1), (400, 27.9)])
def test_a_line_has_the_room_that_the_page_has(width_px: int, characters: float) -> None:
    assert sheet(width_px).room == pytest.approx(characters * AVERAGE, abs=0.5)


def test_a_line_stands_below_its_margin_by_as_much_as_letters_are_high() -> None:
    assert sheet().origin_px(0) == pytest.approx((20, 20 + 0.7 * 40))
    no_margin = replace(sheet(), given_margin_px=0.0)
    assert no_margin.origin_px(2) == pytest.approx((0, 2.7 * 40))


@pytest.mark.parametrize(("line_height_px", "height_px"), [(40.0, 80), (40.1, 81), (40.4, 81)])
def test_a_page_is_whole_pixels_high_and_no_lower_than_its_lines(
    line_height_px: float, height_px: int
) -> None:
    assert replace(sheet(), line_height_px=line_height_px).height_px(1) == height_px
