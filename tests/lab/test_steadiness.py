"""How far a late line strays is measured in degrees and shares of the first five, alike for pages
and for people."""

import numpy as np
import pytest

from lab.legibility.pages import _told
from lab.legibility.steadiness import of_pages, of_people
from training.ink.prepare import Ink

_TEXT = "an even keel"


def _line(slant_degrees: float, size: float) -> np.ndarray:
    """Twelve down-strokes that lean so, `size` units high."""
    lean = np.tan(np.radians(slant_degrees)) * size
    stroke = [[2.0 + lean, size, 0], [-lean / 2, -size / 2, 0], [-lean / 2, -size / 2, 1]]
    return np.array(stroke * 12, np.float32)


def _page(*last: tuple[float, float]) -> list[tuple[str, np.ndarray]]:
    return [(_TEXT, _line(10, 4))] * 5 + [(_TEXT, _line(*each)) for each in last]


def test_the_last_line_of_a_page_is_held_against_the_first_five() -> None:
    found = of_pages([_page((40, 9), (13, 4)), _page((40, 9), (10, 5))])
    assert (found.hands, found.lines) == (2, 2)
    assert found.slant_degrees == pytest.approx(3 / np.sqrt(2), abs=0.8)
    # It is held against people's as it is, and told rounded.
    assert found.slant_degrees != round(found.slant_degrees, 4) == _told(found)["slant_degrees"]
    assert found.size == pytest.approx(0.25 / np.sqrt(2), rel=0.01)


def test_a_page_of_one_line_again_and_again_does_not_stray() -> None:
    found = of_pages([_page((10, 4))])
    assert (found.slant_degrees, found.size) == (0, 0)


def test_every_further_line_of_a_person_with_lines_enough_counts() -> None:
    def ink(writer: str, number: int, size: float = 4.0) -> Ink:
        text = f"{_TEXT} {number}"
        return Ink(text, _line(10, size), 30.0, writer, "source")

    even = [ink("even", n) for n in range(9)]
    few = [ink("few", n, size=4.0 + n) for n in range(6)]
    enough = [ink("enough", n) for n in range(7)]
    found = of_people([*even, *few, *enough])
    assert (found.hands, found.lines, found.size) == (2, 6, 0)
    assert of_people([*even, *(ink("odd", n, size=4.0 + n) for n in range(9))]).size > 0.1
