"""The size of a hand: half of what sets a writer apart is kept, the other half is the tablet's."""

from statistics import median

import numpy as np
import pytest

from training.ink.line import Line, Tally
from training.ink.prepare import Ink, prepare
from training.ink.synthetic import synthetic_lines

_SIZES = {"small": 0.64, "usual": 1.0, "large": 1.5625}


@pytest.fixture(scope="module")
def inks() -> list[Ink]:
    """The same lines by three writers, who differ in nothing but the size of their writing."""
    lines = [
        Line(line.text, tuple(s * np.float32(size) for s in line.strokes), writer, "one",
             line.points_per_second)
        for line in synthetic_lines(36, 8)
        for writer, size in _SIZES.items()
    ]  # fmt: skip
    return prepare(lines, Tally())


def _height(ink: Ink) -> float:
    y = ink.offsets[:, 1].astype(np.float64).cumsum()
    return float(np.abs(y - np.median(y)).mean())


def test_a_writer_twice_as_large_comes_out_by_the_root_of_two_larger(inks: list[Ink]) -> None:
    by_text: dict[str, dict[str, float]] = {}
    for ink in inks:
        by_text.setdefault(ink.text, {})[ink.writer] = _height(ink)
    whole = [heights for heights in by_text.values() if len(heights) == 3]
    assert len(whole) > 15
    for writer, size in _SIZES.items():
        ratios = [heights[writer] / heights["usual"] for heights in whole]
        assert median(ratios) == pytest.approx(size**0.5, rel=0.01)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a" * 60, None),
        ("a" * 61, "more than 60 characters"),
        ("?", "a mark alone, which says nothing of its height"),
        ("I", None),
        ("7", None),
        ("!?", None),
        (" ", "no text"),
        ("\u00e4", "characters outside printable ASCII"),
    ],
)
def test_a_text_that_cannot_be_learned_is_counted_with_its_reason(
    text: str, reason: str | None
) -> None:
    tally, wave = Tally(), np.linspace(0, 6 * len(text), 12 * len(text))
    stroke = np.stack([wave, 3 * np.sin(wave)], axis=1).astype(np.float32)
    prepare([Line(text, (stroke,), "w", "one", 100.0)], tally)
    assert tally.kept == (reason is None)
    assert list(tally.skipped) == [reason] * (reason is not None)
