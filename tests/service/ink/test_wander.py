"""A baseline that wanders as far as it was told to, the same however it is asked for."""

from typing import Any

import numpy as np
import pytest

from contract.noise import UniformStream
from service.ink.schemas import HandwritingRequest
from service.ink.wander import Baseline
from tests.service.ink.sheets import sheet
from tests.service.writing import InkService

_WANDER = 0.1
_BODY: dict[str, Any] = {"text": "an even keel\non two lines, é", "seed": 7}


def _lines(count: int, layout_px: int = 2000) -> np.ndarray:
    """Baselines of so many lines, in line heights, `(count, 400)`."""
    layout = sheet(layout_px, wander=_WANDER)
    left, right = layout.margin_px, layout.width_px - layout.margin_px
    x = np.linspace(left, right, 400)
    return np.stack([Baseline(layout, 5, line).below_px(x) for line in range(count)]) / 40


def test_it_strays_as_far_as_was_asked_for() -> None:
    strays = np.sqrt((_lines(2000) ** 2).mean())
    assert strays == pytest.approx(_WANDER, rel=0.03)


def test_half_of_it_is_a_rise_that_is_up_as_often_as_down() -> None:
    lines = _lines(2000)
    x = np.linspace(-1, 1, lines.shape[1])
    rise = lines @ x / (x @ x)
    assert np.mean(rise > 0) == pytest.approx(0.5, abs=0.05)
    share = (rise**2).mean() / 3 / (lines**2).mean()
    assert share == pytest.approx(0.5, abs=0.05)


def test_no_letter_is_bent() -> None:
    # A letter is a third of a line height wide; between its sides the paper hardly tilts.
    steps = np.abs(np.diff(_lines(200), axis=1)).max()
    width_of_a_step = (2000 - 40) / 40 / 399
    assert steps / width_of_a_step < 0.35


def test_it_rises_from_margin_to_margin_and_swings_about_that() -> None:
    """By a uniform number for the rise, and one for where each swing begins: a page of a seed is
    the same for ever."""
    x = np.array([20.0, 200, 380, 395])  # from one margin to the other, and beyond
    share, heights = (x - 20) / 360, (x - 20) / 40
    rise, *begins = UniformStream(5, 1 << 32).take(3 * 7, 3).tolist()
    expected = 3 / np.sqrt(2) * (2 * rise - 1) * (2 * share - 1)
    for length, begin in zip((4, 11), begins, strict=True):
        expected += np.sin(2 * np.pi * (heights / length + begin)) / np.sqrt(2)
    below = Baseline(sheet(wander=_WANDER), 5, 7).below_px(x)
    assert below == pytest.approx(_WANDER * 40 * expected)


def test_it_is_of_the_seed_and_the_line() -> None:
    x, layout = np.linspace(20, 380, 50), sheet(wander=_WANDER)
    first = Baseline(layout, 5, 3).below_px(x)
    assert np.array_equal(first, Baseline(layout, 5, 3).below_px(x))
    assert not np.allclose(first, Baseline(layout, 5, 4).below_px(x))
    assert not np.allclose(first, Baseline(layout, 6, 3).below_px(x))
    parts = [Baseline(layout, 5, 3).below_px(part) for part in np.split(x, [1, 20])]
    assert np.array_equal(first, np.concatenate(parts))


def test_it_moves_ink_up_and_down_and_changes_nothing_else(pen: InkService) -> None:
    straight, wandering = pen.lines(**_BODY), pen.lines(**_BODY, wander=_WANDER)
    layout = HandwritingRequest(**_BODY, wander=_WANDER).layout(14.0, 2.0)
    moved = 0.0
    for number, (before, after) in enumerate(zip(straight, wandering, strict=True)):
        baseline = Baseline(layout, _BODY["seed"], number)
        assert before["text"] == after["text"]
        for stroke, other in zip(before["strokes"], after["strokes"], strict=True):
            difference = np.array(other) - np.array(stroke)
            assert np.all(difference[:, 0] == 0)
            below = baseline.below_px(np.array(stroke)[:, 0])
            assert difference[:, 1] == pytest.approx(below, abs=0.02)
            moved = max(moved, float(np.abs(difference[:, 1]).max()))
    assert 1 < moved < 64
    assert pen.lines(**_BODY, wander=0) == straight


def test_a_stream_has_the_points_of_the_whole_answer(pen: InkService) -> None:
    body = _BODY | {"wander": _WANDER}
    assert pen.streamed_strokes(**body) == pen.strokes(**body)
