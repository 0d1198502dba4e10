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
