"""Lines are kept as they were meant: a pen off its line comes back to it and goes no further, and a
word with a hyphen stays whole.
"""

import numpy as np
import pytest

from service.ink.breaking import break_text, width_of
from service.ink.pen import LinePen
from tests.service.ink.sheets import sheet


@pytest.mark.parametrize("off", [2.0, 0.7, -2.0])
def test_a_pen_off_its_line_comes_back_to_it_and_not_beyond(off: float) -> None:
    letter = [[1, 3, 0], [0, -3, 0], [1, 0, 0], [0, 3, 1], [1, -3, 0]]
    offsets = np.array([[0, off, 0], *(letter * 40)], np.float32)
    layout = sheet()
    points = LinePen(layout, 0).move(offsets)
    heights = (layout.origin_px(0)[1] - points[:, 1]) / layout.px_per_unit
    lows = heights[3::5] * np.sign(off)
    assert lows[0] == pytest.approx(abs(off))
    assert lows[-1] == pytest.approx(0, abs=0.01)
    assert lows.min() > -0.01
    assert (np.diff(lows) < 1e-6).all()


@pytest.mark.parametrize("text", ["much well-known ink", "a pen-and-ink line", "two--dashes here"])
def test_a_word_with_a_hyphen_is_divided_only_when_it_is_longer_than_a_line(text: str) -> None:
    for room in range(130, 200, 5):
        lines = break_text(text, room)
        assert " ".join(lines) == text
        assert all(sum(map(width_of, line)) <= room for line in lines)
