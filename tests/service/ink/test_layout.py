"""Lines stand on the page."""

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
