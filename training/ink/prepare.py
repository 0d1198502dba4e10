"""Lines of any source as ink a network can learn: one rate, one scale, level, cleaned.

Each source has a tablet of its own, so what is one second and one unit is judged by what its
writers do: the median line of every source gets the same points and the same size per character.
Shapes: N points of a line.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from contract.alphabets import ALPHABET, LONGEST_TEXT
from contract.strokes import LONGEST_OFFSET, Measured, measure, offsets
from training.ink.line import Line, Tally, counted

LONGEST_INK = 900  # points
OWN = "own"  # the writer, and the source, of lines that a pen wrote

Ratio = tuple[float, float]
_POINTS_PER_CHARACTER: Ratio = (0.35, 2.5)  # to the source's median
_SIZE: Ratio = (0.45, 2.2)
_ADVANCE: Ratio = (0.4, 2.2)


@dataclass(frozen=True, slots=True)
class Ink:
    """A text and the offsets that write it.

    `offsets (N, 3)`: dx, dy and 1 where the pen leaves the paper after the point. They begin at
    the left end of the baseline; `advance` is how far right of it the ink ends. `isolated` is a
    character that was written in a box of its own, which anybody's words may have beside them.
    """

    text: str
    offsets: NDArray[np.float32]
    advance: float
    writer: str
    source: str
    isolated: bool = False


@dataclass(frozen=True, slots=True)
class _Judged:
    """A line beside its measures, which are compared within its source."""

    line: Line
    measured: Measured


def is_own(ink: Ink) -> bool:
    """Whether a pen wrote this, nobody else."""
    return ink.source == OWN


def prepare(lines: Iterable[Line], tally: Tally) -> list[Ink]:
    """All that can be learned from, in order; the rest is counted in `tally` with its reason."""
    judged = []
    for line in counted(lines):
        if reason := _unfit_text(line.text):
            tally.skip(reason, _name(line))
        elif (measured := measure(line.strokes, line.text)) is None:
            tally.skip("no ink", _name(line))
        else:
            judged.append(_Judged(line, measured))
    by_source = _group(judged, lambda j: j.line.source)
    medians = {source: _Medians.of(group) for source, group in by_source.items()}
    by_writer = _group(judged, lambda j: j.line.writer)
    sizes = {writer: median(j.measured.size for j in group) for writer, group in by_writer.items()}
    inks = []
    for j in judged:
        source = medians[j.line.source]
        # Half of what sets a writer apart in size is kept, the other half is the tablet's.
        size = float(np.sqrt(source.size * sizes[j.line.writer]))
        reason = _unfit_ink(j, source)
        if reason is None:
            ink = _ink(j, source.points_per_character, size)
            reason = _unfit_offsets(ink)
        if reason is not None:
            tally.skip(reason, _name(j.line))
        else:
            inks.append(ink)
            tally.kept += 1
    return inks


def _name(line: Line) -> str:
    return f"{line.writer} {line.text[:24]!r}"


def _ink(j: _Judged, points_per_character: float, size: float) -> Ink:
    moves = offsets(j.measured, points_per_character, size)
    advance = float(moves[:, 0].cumsum().max())
    return Ink(j.line.text, moves, advance, j.line.writer, j.line.source)


def _unfit_offsets(ink: Ink) -> str | None:
    if len(ink.offsets) > LONGEST_INK:
        return f"more than {LONGEST_INK} points"
    if np.abs(ink.offsets[:, :2]).max() > LONGEST_OFFSET:
        return f"a move of more than {LONGEST_OFFSET:.0f} units"
    return None


@dataclass(frozen=True, slots=True)
class _Medians:
    """What a source's lines have in common."""

    points_per_character: float
    size: float
    advance: float

    @classmethod
    def of(cls, group: Sequence[_Judged]) -> "_Medians":
        return cls(
            median(j.measured.points_per_character for j in group),
            median(j.measured.size for j in group),
            median(j.measured.advance for j in group),
        )


def _unfit_text(text: str) -> str | None:
    if not text.strip():
        return "no text"
    if any(c not in ALPHABET for c in text):
        return "characters outside printable ASCII"
    if len(text) > LONGEST_TEXT:
        return f"more than {LONGEST_TEXT} characters"
    if len(text) == 1 and not text.isalnum():
        return "a mark alone, which says nothing of its height"
    return None


def _unfit_ink(j: _Judged, source: _Medians) -> str | None:
    m = j.measured
    characters = len(j.line.text.replace(" ", ""))
    every = np.concatenate(m.strokes)
    width, height = np.ptp(every, axis=0)
    if characters >= 4 and width < 0.2 * characters * height:
        return "several lines, or text too narrow for its height"
    starts = np.array([s[0, 0] for s in m.strokes[1:]])
    ends = np.array([s[-1, 0] for s in m.strokes[:-1]])
    if len(starts) and characters >= 4 and (ends - starts).max() > max(0.45 * width, 8 * m.size):
        return "the pen goes far back: a second line or a correction"
    if not _within(m.points_per_character, source.points_per_character, _POINTS_PER_CHARACTER):
        return "too many or too few points for its text"
    if characters > 1 and not _within(m.size, source.size, _SIZE):
        return "too large or too small for its source"
    if characters > 1 and not _within(m.advance, source.advance, _ADVANCE):
        return "too wide or too narrow for its text"
    return None


def _within(value: float, typical: float, ratio: Ratio) -> bool:
    return ratio[0] * typical <= value <= ratio[1] * typical


def _group(items: Sequence[_Judged], key: Callable[[_Judged], str]) -> dict[str, list[_Judged]]:
    groups = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups
