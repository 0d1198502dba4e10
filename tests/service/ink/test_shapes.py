"""The strokes of marks, about their place at a letter: no larger than people draw them."""

import numpy as np
import pytest

from service.ink import letters
from service.ink.marks import compose
from service.ink.shapes import ABOVE, BELOW, HANGING, HOOK


@pytest.mark.parametrize("mark", ABOVE)
def test_a_mark_is_no_wider_than_its_letter_nor_higher_than_half_of_it(mark: str) -> None:
    x, y = np.abs(np.concatenate(ABOVE[mark])).T
    assert x.max() < 0.4
    assert y.max() < 0.3


@pytest.mark.parametrize("mark", BELOW)
def test_what_hangs_from_a_letter_is_narrower_and_clear_of_the_next_line(mark: str) -> None:
    x, y = np.concatenate(BELOW[mark]).T
    assert np.abs(x).max() < 0.3
    assert -0.5 < y.min() < y.max() < 0.1


@pytest.mark.parametrize("mark", [letters.DOT_BELOW, letters.COMMA_BELOW])
def test_what_joins_no_letter_is_clear_of_it(mark: str) -> None:
    assert np.concatenate(BELOW[mark])[:, 1].max() < -0.15


@pytest.mark.parametrize("mark", [letters.CIRCUMFLEX, letters.CARON, letters.BREVE])
def test_a_mark_that_bends_is_bent_by_a_fifth_of_its_letter(mark: str) -> None:
    """A flatter one is read as a macron."""
    ((begin, *middle, end),) = (np.array(stroke)[:, 1] for stroke in ABOVE[mark])
    bends = np.mean(middle) - np.array([begin, end])
    assert np.abs(bends).min() > 0.2


@pytest.mark.parametrize("mark", [letters.DOT, letters.DIAERESIS, letters.DOT_BELOW])
def test_a_dot_is_no_stroke(mark: str) -> None:
    for dot in (ABOVE | BELOW)[mark]:
        assert np.hypot(*np.ptp(dot, axis=0)) < 0.1


def test_the_dots_of_a_diaeresis_stand_side_by_side() -> None:
    (left, low), (right, high) = (np.mean(dot, axis=0) for dot in ABOVE[letters.DIAERESIS])
    assert left < -0.15 < 0.15 < right
    assert abs(high - low) < 0.05


@pytest.mark.parametrize(
    ("stroke", "ways"),
    [
        (HANGING["¡"], "SE SW"),
        (HANGING["¿"], "SW SW SW S SE E NE NE"),
        (HOOK, "NE NE E SE"),
    ],
    ids=["¡", "¿", "£"],
)
def test_what_makes_a_mark_of_another_is_drawn_the_way_it_goes(
    stroke: list[list[tuple[float, float]]], ways: str
) -> None:
    """As on a compass: from a dot down and round, to the right; over the top of an L."""
    moves = np.diff(np.concatenate(stroke), axis=0).round(6).tolist()
    told = ["N" * (y > 0) + "S" * (y < 0) + "W" * (x < 0) + "E" * (x > 0) for x, y in moves]
    assert " ".join(told) == ways


@pytest.mark.parametrize("letter", "þÞđÐøØ€£¥")
def test_what_is_drawn_through_a_letter_of_one_point_is_drawn_there(letter: str) -> None:
    """Of a line that was cut off as its last letter began."""
    point = np.array([[30.0, 80.0, 1.0]])
    drawn = compose(letter, point, np.zeros(1, int), 0.0, 10.0)
    assert len(drawn) > 1
    assert np.abs(drawn[:, :2] - point[:, :2]).max() < 13
