"""Strokes of a pen as ink a network can learn and read: level, at one rate, in one size.

Training data and the strokes of a caller are prepared here and nowhere else. What is the rate and
the size of a hand is for whoever calls to say: training takes what is typical of a tablet and of a
writer, and for a caller, a source of one line, that is the line itself.
Shapes: n points of a stroke or of a line; y points up.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]  # (n, 2)

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

_ELONGATED = 4.0  # times as wide as high: a shorter word is too short to say how its line climbs
_STEEPEST = 0.25  # a line of a tablet that climbs more is not level writing
_FLAT = 1e-6  # of its width: a line that is no higher has no size but its width
_LEAST_INK = 1e-6  # in any unit a tablet or a screen has
_PAUSE = 0.02  # of the line's size: a pen that moves less stands still


@dataclass(frozen=True, slots=True)
class Measured:
    """A level line that begins at the left end of its baseline, the pen's pauses taken out.

    `size` is the mean distance of its points from the line's middle, `advance` its width over the
    characters, both in the units of the strokes.
    """

    strokes: tuple[Points, ...]
    points_per_character: float
    size: float
    advance: float


def measure(
    strokes: Sequence[NDArray[np.floating]], text: str, steepest: float = _STEEPEST
) -> Measured | None:
    """Strokes `(n, 2)` that say `text`, levelled and measured; None if there is no ink in them. A
    line that climbs by `steepest` or more is taken as it is."""
    wide = [np.asarray(stroke, np.float64) for stroke in strokes if len(stroke)]
    every = np.concatenate(wide) if wide else np.zeros((0, 2))
    if not len(every) or not np.isfinite(every).all() or np.ptp(every, axis=0).max() < _LEAST_INK:
        return None
    wide = level(wide, steepest)
    every = np.concatenate(wide)
    origin = every[:, 0].min(), _baseline(wide)
    wide = [stroke - origin for stroke in wide]
    size, width = size_of(every), float(np.ptp(every[:, 0]))
    moving = [_without_pauses(stroke, _PAUSE * size) for stroke in wide]
    characters = len(text.replace(" ", ""))
    points = sum(map(len, moving)) / max(characters, 1)
    return Measured(tuple(moving), points, size, width / max(len(text), 1))


def size_of(points: NDArray[np.floating]) -> float:
    """The mean distance of a level line's points `(n, 2)` from its middle; of a flat one its
    width."""
    size = float(np.abs(points[:, 1] - np.median(points[:, 1])).mean())
    width = float(np.ptp(points[:, 0]))
    return width if size < _FLAT * width else size


def offsets(line: Measured, points_per_character: float, size: float) -> NDArray[np.float32]:
    """The line as offsets `(n, 3)` from the left end of its baseline: dx, dy, and 1 where the pen
    leaves the paper after the point.

    `points_per_character` and `size` are those of the hand, which become the model's.
    """
    stride = points_per_character / POINTS_PER_CHARACTER
    scale = UNITS_OF_SIZE / size
    strokes = [_resample(stroke, stride) * scale for stroke in line.strokes]
    points = np.concatenate(strokes)
    result = np.zeros((len(points), 3), np.float32)
    result[:, :2] = np.diff(points, axis=0, prepend=np.zeros((1, 2)))
    result[np.cumsum([len(s) for s in strokes]) - 1, 2] = 1
    return result


def level(strokes: Sequence[Points], steepest: float = _STEEPEST) -> list[Points]:
    """The strokes turned so that their line no longer climbs, if they are long enough to say."""
    every = np.concatenate(strokes)
    width, height = np.ptp(every, axis=0)
    slope = 0.0
    if width > height:
        tilt = float(np.polyfit(every[:, 0], every[:, 1], 1)[0])
        # A tilted line is higher than it is when level: what turning makes of it counts as well.
        shapes = (width, height), np.ptp(every @ _turn(tilt), axis=0)
        if abs(tilt) < steepest and any(w >= _ELONGATED * h for w, h in shapes):
            slope = tilt
    return [stroke @ _turn(slope) for stroke in strokes]


def _turn(slope: float) -> Points:
    return np.asarray(np.array([[1.0, -slope], [slope, 1.0]]) / np.hypot(1.0, slope))


def _baseline(strokes: Sequence[Points]) -> float:
    """The median of the lowest points of all arcs: most letters stand on the line."""
    lows = []
    for stroke in strokes:
        y = np.concatenate([[np.inf], stroke[:, 1], [np.inf]])
        lows.append(stroke[(y[1:-1] < y[:-2]) & (y[1:-1] <= y[2:]), 1])
    return float(np.median(np.concatenate(lows)))


def _without_pauses(stroke: Points, least: float) -> Points:
    """The stroke with one point at most for each `least` of its path; its ends stay."""
    steps = np.hypot(*np.diff(stroke, axis=0).T)
    place = np.floor(np.concatenate([[0.0], steps.cumsum()]) / least)
    kept = np.diff(place, prepend=-1) > 0
    kept[-1] = True
    return np.asarray(stroke[kept])


def _resample(stroke: Points, stride: float) -> Points:
    """Every `stride`-th sample in time, evenly, with both ends; what lies between is averaged."""
    last = len(stroke) - 1
    if last == 0:
        return stroke
    count = max(1, round(last / stride)) + 1
    # A mean over half a stride takes out the tremor of the tablet, not the corners.
    half = round(stride / 4)
    padded = np.pad(stroke, ((half, half), (0, 0)), mode="edge")
    width = 2 * half + 1
    smooth = np.stack(
        [np.convolve(axis, np.full(width, 1 / width), mode="valid") for axis in padded.T], axis=1
    )
    smooth[0], smooth[-1] = stroke[0], stroke[-1]
    at = np.linspace(0, last, count)
    return np.stack([np.interp(at, np.arange(last + 1), axis) for axis in smooth.T], axis=1)
