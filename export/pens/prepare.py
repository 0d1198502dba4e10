"""Lines of any source as ink a network can learn: one rate, one scale, level, cleaned.

Each source has a tablet of its own, so what is one second and one unit is judged by what its
writers do: the median line of every source gets the same points and the same size per character.
Shapes: N points of a stroke or a line.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from export.pens.line import Line, Stroke, Tally

# The alphabet is printable ASCII.
FIRST_CHARACTER, LAST_CHARACTER = " ", "~"
LONGEST_TEXT = 60  # characters
LONGEST_INK = 900  # points
# Fewer points a character make shorter sequences; below eight a spline cuts the corners off.
POINTS_PER_CHARACTER = 10.0
# The typical distance of a point to the middle of its line; it makes most offsets about 1 long.
UNITS_OF_SIZE = 1.5
# How wide a character of prepared ink is, the median over UNIPEN; and the height of a ruled line
# that has room for it, with what hangs below and stands above.
UNITS_PER_CHARACTER = 4.65
UNITS_PER_LINE = 14.0
# Nobody moves so far in one step: it is a jump of the tablet, or a gap as wide as five letters.
LONGEST_OFFSET = 25.0

Ratio = tuple[float, float]
_POINTS_PER_CHARACTER: Ratio = (0.35, 2.5)  # to the source's median
_SIZE: Ratio = (0.45, 2.2)
_ADVANCE: Ratio = (0.4, 2.2)
_STEEPEST = 0.25  # a line that climbs more is not level writing
_PAUSE = 0.02  # of the line's size: a pen that moves less stands still


@dataclass(frozen=True, slots=True)
class Ink:
    """A text and the offsets that write it.

    `offsets (N, 3)`: dx, dy and 1 where the pen leaves the paper after the point. They begin at
    the left end of the baseline; `advance` is how far right of it the ink ends.
    """

    text: str
    offsets: NDArray[np.float32]
    advance: float
    writer: str
    source: str


@dataclass(frozen=True, slots=True)
class _Measured:
    """A level, centred line and what is compared within its source."""

    line: Line
    strokes: tuple[NDArray[np.float64], ...]
    points_per_character: float
    size: float
    advance: float


def prepare(lines: Iterable[Line], tally: Tally) -> list[Ink]:
    """All that can be learned from, in order; the rest is counted in `tally` with its reason."""
    measured = []
    for line in lines:
        what = f"{line.writer} {line.text[:24]!r}"
        if reason := _unfit_text(line.text):
            tally.skip(reason, what)
        elif (result := _measure(line)) is None:
            tally.skip("no ink", what)
        else:
            measured.append(result)
    by_source = _group(measured, lambda m: m.line.source)
    medians = {source: _Medians.of(group) for source, group in by_source.items()}
    by_writer = _group(measured, lambda m: m.line.writer)
    sizes = {writer: _median([m.size for m in group]) for writer, group in by_writer.items()}
    inks = []
    for m in measured:
        what = f"{m.line.writer} {m.line.text[:24]!r}"
        if reason := _unfit_ink(m, medians[m.line.source]):
            tally.skip(reason, what)
            continue
        # Half of what sets a writer apart in size is kept, the other half is the tablet's.
        size = np.sqrt(medians[m.line.source].size * sizes[m.line.writer])
        ink = _offsets(m, medians[m.line.source].points_per_character, UNITS_OF_SIZE / size)
        if len(ink.offsets) > LONGEST_INK:
            tally.skip(f"more than {LONGEST_INK} points", what)
        elif np.abs(ink.offsets[:, :2]).max() > LONGEST_OFFSET:
            tally.skip(f"a move of more than {LONGEST_OFFSET:.0f} units", what)
        else:
            inks.append(ink)
            tally.kept += 1
    return inks


@dataclass(frozen=True, slots=True)
class _Medians:
    """What a source's lines have in common."""

    points_per_character: float
    size: float
    advance: float

    @classmethod
    def of(cls, group: Sequence[_Measured]) -> "_Medians":
        return cls(
            _median([m.points_per_character for m in group]),
            _median([m.size for m in group]),
            _median([m.advance for m in group]),
        )


def _unfit_text(text: str) -> str | None:
    if not text.strip():
        return "no text"
    if any(not FIRST_CHARACTER <= c <= LAST_CHARACTER for c in text):
        return "characters outside printable ASCII"
    if len(text) > LONGEST_TEXT:
        return f"more than {LONGEST_TEXT} characters"
    if len(text) == 1 and not text.isalnum():
        return "a mark alone, which says nothing of its height"
    return None


def _unfit_ink(m: _Measured, medians: _Medians) -> str | None:
    characters = len(m.line.text.replace(" ", ""))
    every = np.concatenate(m.strokes)
    width, height = np.ptp(every, axis=0)
    if characters >= 4 and width < 0.2 * characters * height:
        return "several lines, or text too narrow for its height"
    starts = np.array([s[0, 0] for s in m.strokes[1:]])
    ends = np.array([s[-1, 0] for s in m.strokes[:-1]])
    if len(starts) and characters >= 4 and (ends - starts).max() > max(0.45 * width, 8 * m.size):
        return "the pen goes far back: a second line or a correction"
    if not _within(m.points_per_character, medians.points_per_character, _POINTS_PER_CHARACTER):
        return "too many or too few points for its text"
    if characters > 1 and not _within(m.size, medians.size, _SIZE):
        return "too large or too small for its source"
    if characters > 1 and not _within(m.advance, medians.advance, _ADVANCE):
        return "too wide or too narrow for its text"
    return None


def _within(value: float, median: float, ratio: Ratio) -> bool:
    return ratio[0] * median <= value <= ratio[1] * median


def _measure(line: Line) -> _Measured | None:
    strokes = [s.astype(np.float64) for s in line.strokes]
    every = np.concatenate(strokes) if strokes else np.zeros((0, 2))
    if not np.isfinite(every).all() or not len(every) or np.ptp(every, axis=0).max() == 0:
        return None
    slope = _slope(every)
    turn = np.array([[1.0, -slope], [slope, 1.0]]) / np.hypot(1.0, slope)
    strokes = [s @ turn for s in strokes]
    every = np.concatenate(strokes)
    strokes = [s - (every[:, 0].min(), _baseline(strokes)) for s in strokes]
    size = float(np.abs(every[:, 1] - np.median(every[:, 1])).mean())
    if size == 0:
        size = float(np.ptp(every[:, 0]))
    moving = [_without_pauses(s, _PAUSE * size) for s in strokes]
    characters = len(line.text.replace(" ", ""))
    points = sum(map(len, moving)) / max(characters, 1)
    return _Measured(line, tuple(moving), points, size, np.ptp(every[:, 0]) / len(line.text))


def _slope(every: NDArray[np.float64]) -> float:
    """How the line climbs; a word is too short to say."""
    width, height = np.ptp(every, axis=0)
    if width < 4 * height:
        return 0.0
    slope = float(np.polyfit(every[:, 0], every[:, 1], 1)[0])
    return slope if abs(slope) < _STEEPEST else 0.0


def _baseline(strokes: Sequence[NDArray[np.float64]]) -> float:
    """The median of the lowest points of all arcs: most letters stand on the line."""
    lows = []
    for stroke in strokes:
        y = np.concatenate([[np.inf], stroke[:, 1], [np.inf]])
        lows.append(stroke[(y[1:-1] < y[:-2]) & (y[1:-1] <= y[2:]), 1])
    return _median(np.concatenate(lows))


def _without_pauses(stroke: NDArray[np.float64], least: float) -> NDArray[np.float64]:
    """The stroke with one point at most for each `least` of its path; its ends stay."""
    steps = np.hypot(*np.diff(stroke, axis=0).T)
    place = np.floor(np.concatenate([[0.0], steps.cumsum()]) / least)
    kept = np.diff(place, prepend=-1) > 0
    kept[-1] = True
    return stroke[kept]


def _offsets(m: _Measured, points_per_character: float, scale: float) -> Ink:
    stride = points_per_character / POINTS_PER_CHARACTER
    strokes = [_resample(stroke, stride) * scale for stroke in m.strokes]
    points = np.concatenate(strokes)
    offsets = np.zeros((len(points), 3), np.float32)
    offsets[:, :2] = np.diff(points, axis=0, prepend=np.zeros((1, 2)))
    offsets[np.cumsum([len(s) for s in strokes]) - 1, 2] = 1
    advance = float(offsets[:, 0].cumsum().max())
    return Ink(m.line.text, offsets, advance, m.line.writer, m.line.source)


def _resample(stroke: Stroke | NDArray[np.float64], stride: float) -> NDArray[np.float64]:
    """Every `stride`-th sample in time, evenly, with both ends; what lies between is averaged."""
    last = len(stroke) - 1
    if last == 0:
        return np.asarray(stroke, np.float64)
    count = max(1, round(last / stride)) + 1
    # A mean over half a stride takes out the tremor of the tablet, not the corners.
    half = max(0, round(stride / 4))
    padded = np.pad(stroke.astype(np.float64), ((half, half), (0, 0)), mode="edge")
    width = 2 * half + 1
    smooth = np.stack(
        [np.convolve(axis, np.full(width, 1 / width), mode="valid") for axis in padded.T], axis=1
    )
    smooth[0], smooth[-1] = stroke[0], stroke[-1]
    at = np.linspace(0, last, count)
    return np.stack([np.interp(at, np.arange(last + 1), axis) for axis in smooth.T], axis=1)


def _median(values: Sequence[float] | NDArray[np.float64]) -> float:
    return float(np.median(values))


def _group(
    items: Sequence[_Measured], key: Callable[[_Measured], str]
) -> dict[str, list[_Measured]]:
    groups = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups
