"""What is made of an apostrophe that the pen has written: `°` here, `¿ ¡` in test_marks.py."""

import math

import numpy as np
import pytest

from service.ink.marks import compose


def _written(tops: list[float], highs: list[float]) -> np.ndarray:
    """An upright stroke of six points every 20 px, each so high below its top."""
    letters = [
        np.column_stack([np.full(6, 20.0 * i), np.linspace(top, top + high, 6), np.arange(6) == 5])
        for i, (top, high) in enumerate(zip(tops, highs, strict=True))
    ]
    return np.concatenate(letters)


_TOPS, _HIGHS = (
    [90.0, 78.0, 90.0, 90.0],
    [10.0, 6.0, 10.0, 10.0],
)  # of n'no, whose small letters are 9 high
_HERE = np.repeat(np.arange(4), 6)


@pytest.mark.parametrize("lean", [0.5, 0.0, -0.3])
def test_a_degree_is_a_ring_that_begins_and_ends_at_its_apostrophe(lean: float) -> None:
    points = _written(_TOPS, _HIGHS)
    points[:, 0] -= (points[:, 1] - 100) * lean
    x, y, up = compose("n°no", points, _HERE, math.degrees(math.atan(lean)), 10.0).T
    upright = x + (y - 100) * lean
    assert upright[[0, -1]].tolist() == pytest.approx([20, 20])
    assert y[[0, -1]].tolist() == pytest.approx([78, 84])
    # Round to the right, three quarters as wide as it is high.
    assert (upright.min(), upright.max()) == pytest.approx((20, 24.5), abs=0.2)
    assert (np.diff(y) > 0).all()
    assert up.tolist() == [0] * 7 + [1]


@pytest.mark.parametrize(("high", "ring"), [(1.0, 3.6), (6.0, 6.0), (10.5, 9.0)])
def test_a_ring_is_neither_a_dot_nor_a_letter(high: float, ring: float) -> None:
    drawn = compose("n°no", _written([90, 78, 90, 90], [10, high, 10, 10]), _HERE, 0.0, 10.0)
    assert (drawn[0, 1], np.ptp(drawn[:, 1])) == pytest.approx((78, ring))


@pytest.mark.parametrize("late", [-5, -1, 3, 8])
def test_an_apostrophe_is_found_where_the_window_is_not(late: int) -> None:
    here = np.roll(_HERE, 3 + late)  # three points ahead is right
    here[: max(3 + late, 0)] = 0
    here[len(here) + min(3 + late, 0) :] = 3
    for mark, begin in (("°", 78), ("¡", 88)):
        drawn = compose(f"n{mark}no", _written(_TOPS, _HIGHS), here, 0.0, 10.0)
        assert drawn[0, :2].tolist() == pytest.approx([20, begin], abs=2), mark


def test_what_stands_on_the_line_is_no_apostrophe() -> None:
    """Though the window was at it; the one before it is meant."""
    points = _written([78, 82, 90, 90], [6, 14, 10, 10])
    assert compose("n°no", points, _HERE, 0.0, 10.0)[0, :2].tolist() == pytest.approx([0, 78])


@pytest.mark.parametrize("lean", [0.0, 0.8])
def test_what_is_wider_than_high_is_no_apostrophe(lean: float) -> None:
    """As the flag of a 5, at which the window often still is."""
    points = _written([78, 78, 90, 90], [6, 6, 10, 10])
    points[6:12, 0] += np.linspace(0, 9, 6)
    points[:, 0] -= (points[:, 1] - 100) * lean
    drawn = compose("n°no", points, _HERE, math.degrees(math.atan(lean)), 10.0)
    assert drawn[0, 0] + (drawn[0, 1] - 100) * lean == pytest.approx(0, abs=2)


@pytest.mark.parametrize(("late", "x"), [(15, 20), (16, 80)])
def test_an_apostrophe_far_from_where_the_window_came_is_none(late: int, x: int) -> None:
    points = _written([90, 78, 90, 90, 90, 90], [10, 6, 10, 10, 10, 10])
    came = 11 + late - 3  # the window is three points ahead
    drawn = compose("n°", points, np.repeat([0, 1], [came, 36 - came]), 0.0, 10.0)
    assert drawn[0, 0] == pytest.approx(x)


def test_an_apostrophe_that_the_text_has_is_no_degree() -> None:
    points = _written([90, 78, 90, 90, 90], [10, 6, 10, 10, 10])
    drawn = compose("n'no°", points, np.repeat([0, 1, 2, 3, 4], [3, 6, 6, 6, 9]), 0.0, 10.0)
    assert drawn[0, 0] == pytest.approx(80)


def test_of_two_degrees_next_to_one_apostrophe_each_has_its_own() -> None:
    points = _written([90, 78, 78, 90, 90], [10, 6, 6, 10, 10])
    drawn = compose("n°°nn", points, np.repeat([0, 1, 2, 3, 4], [6, 6, 3, 6, 9]), 0.0, 10.0)
    assert drawn[[0, 8], 0].tolist() == pytest.approx([20, 40])
    drawn = compose("n°°nn", points, np.repeat([0, 1, 2, 3, 4], [3, 2, 7, 9, 9]), 0.0, 10.0)
    assert sorted(drawn[[0, 8], 0].tolist()) == pytest.approx([20, 40])
