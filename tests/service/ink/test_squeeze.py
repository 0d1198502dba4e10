"""A line that would run past its margin is made narrower as it is written; others are left."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from service.ink.breaking import AVERAGE, width_of
from service.ink.layout import Layout
from service.ink.squeeze import Squeeze
from tests.service.ink.sheets import sheet

_TEXT = "an even keel on a long sea"
_POINTS = 12  # of a character


def _line(layout: Layout, pace: float, text: str = _TEXT) -> tuple[NDArray[np.float64], ...]:
    """The x of a pen that writes every character `pace` times as wide as is expected, and where
    the window is."""
    advance = layout.units_per_character * layout.px_per_unit * pace / AVERAGE / _POINTS
    widths = np.repeat([width_of(character) * advance for character in text], _POINTS)
    x = layout.margin_px + widths.cumsum()
    x[3::_POINTS] -= 4.0  # a pen goes back to cross a letter
    return x, np.repeat(np.arange(len(text)), _POINTS)


def _right(layout: Layout) -> float:
    return layout.width_px - layout.margin_px


@pytest.mark.parametrize("pace", [0.5, 0.9, 1.0])
def test_a_line_that_fits_keeps_its_bits(pace: float) -> None:
    layout = sheet()
    x, characters = _line(layout, pace)
    assert x.max() < _right(layout)
    assert Squeeze(layout, _TEXT).place(x, characters).tobytes() == x.tobytes()


@pytest.mark.parametrize("pace", [1.3, 1.5, 1.8])
def test_a_line_that_runs_wide_ends_at_its_margin_and_evenly(pace: float) -> None:
    layout = sheet()
    x, characters = _line(layout, pace)
    assert x.max() > _right(layout) + 5
    placed = Squeeze(layout, _TEXT).place(x, characters)
    assert placed.max() == pytest.approx(_right(layout), abs=8)
    # No letter is a sliver beside the others.
    firsts = placed[::_POINTS]
    widths = np.diff(firsts) / np.diff(x[::_POINTS])
    assert widths.min() > 0.45
    assert widths.max() <= 1 + 1e-12
    assert (np.diff(widths) < 0.1).all()


@pytest.mark.parametrize("portion", [1, 7, 100])
def test_portions_of_any_size_give_the_bits_of_the_whole(portion: int) -> None:
    layout = sheet()
    x, characters = _line(layout, 1.4)
    whole = Squeeze(layout, _TEXT).place(x, characters)
    squeeze = Squeeze(layout, _TEXT)
    parts = [squeeze.place(x[i : i + portion], characters[i : i + portion])
             for i in range(0, len(x), portion)]  # fmt: skip
    assert np.concatenate(parts).tobytes() == whole.tobytes()


@pytest.mark.parametrize("margin_px", [0.0, 20.0])
def test_however_far_a_lost_pen_goes_its_ink_is_on_the_paper(margin_px: float) -> None:
    layout = replace(sheet(), given_margin_px=margin_px)
    x = np.linspace(margin_px, 1e5, 900)
    placed = Squeeze(layout, "lost").place(x, np.minimum(np.arange(900) // 10, 3))
    assert placed.max() <= 400
    assert (np.diff(placed) >= 0).all()


def test_a_pen_that_goes_back_meets_the_letter_it_left() -> None:
    layout = sheet()
    x, characters = _line(layout, 1.6)
    squeeze = Squeeze(layout, _TEXT)
    placed = squeeze.place(x, characters)
    again = squeeze.place(x[200:240].copy(), characters[200:240])
    assert again.tobytes() == placed[200:240].tobytes()


# Of 36 characters of the average width, 12 px, of which 30 have room: at the second one a pen that
# was half as wide again with the first has 342 px for 35, of which eight count for what is usual.
_AVERAGE_TEXT = "e" * 36
_SHARE = (380 - 38) / (35 * 12 * (8 + 1.5) / (8 + 1))


@pytest.mark.parametrize("x", [[38.0, 48.0], [38.0, 30.0, 48.0]], ids=["on", "back and on"])
def test_what_has_been_written_counts_as_much_as_eight_characters_of_what_is_usual(
    x: list[float],
) -> None:
    """Wherever the pen is just then: it may have gone back to cross a letter."""
    characters = np.array([0] * (len(x) - 1) + [1])
    placed = Squeeze(sheet(), _AVERAGE_TEXT).place(np.array(x), characters)
    assert placed[-1] == pytest.approx(38 + 10 * _SHARE)


def test_what_is_left_is_as_wide_as_its_own_characters() -> None:
    characters = 20 * width_of("M") / AVERAGE
    placed = Squeeze(sheet(), "e" + "M" * 20).place(np.array([38.0, 48.0]), np.array([0, 1]))
    share = (380 - 38) / (characters * 12 * (8 + 1.5) / (8 + 1))
    assert placed[-1] == pytest.approx(38 + 10 * share)
    assert share < 0.95


def test_a_pen_left_of_the_margin_has_written_nothing() -> None:
    placed = Squeeze(sheet(), _AVERAGE_TEXT).place(np.array([5.0, 48.0]), np.array([0, 1]))
    share = (380 - 20) / (35 * 12 * 8 / (8 + 1))
    assert placed.tolist() == pytest.approx([5, 20 + 28 * share])


def test_a_line_that_runs_wide_again_is_as_narrow_as_it_was_first() -> None:
    x, characters = np.array([300.0, 310, 320, 390, 410]), np.array([0, 1, 25, 25, 26])
    widths = np.diff(Squeeze(sheet(), _AVERAGE_TEXT).place(x, characters)) / np.diff(x)
    assert widths == pytest.approx([0.5, 0.583, 0.583, 0.5], abs=1e-3)


def test_a_window_that_looks_back_begins_no_character_again() -> None:
    x = np.array([38.0, 48.0, 49.0, 60.0])
    placed, again = (
        Squeeze(sheet(), _AVERAGE_TEXT).place(x, np.array(characters))
        for characters in ([0, 1, 1, 1], [0, 1, 0, 1])
    )
    assert again.tolist() == placed.tolist()


@pytest.mark.parametrize(("margin_px", "edge_px"), [(0.0, 400.0), (1.0, 399.0), (20.0, 398.5)])
def test_a_stroke_is_on_the_paper_in_all_of_its_width(margin_px: float, edge_px: float) -> None:
    """Half of 3 px, if the margin has room for that."""
    layout = replace(sheet(), given_margin_px=margin_px)
    x = _right(layout) + np.linspace(0, 500, 5000)
    placed = Squeeze(layout, "l").place(x, np.zeros(len(x), int))
    assert placed.max() <= edge_px
    far = Squeeze(layout, "l").place(np.array([1e9]), np.zeros(1, int))
    assert far.tolist() == pytest.approx([edge_px])
    assert (np.diff(placed) >= 0).all()


def test_what_is_left_is_as_wide_as_ever_once_there_is_room_again() -> None:
    """A pen that was wide with the first character, and has then written nine where it stood."""
    x, characters = np.array([38.0, 38.0, 48.0]), np.array([0, 1, 10])
    assert Squeeze(sheet(), _AVERAGE_TEXT).place(x, characters).tolist() == x.tolist()
