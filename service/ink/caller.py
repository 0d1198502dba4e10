"""A caller's own strokes as ink the model can read: level, at its rate and size.

The caller's page has y down and any scale; how large and how fast the hand is, is judged by the
text it says it wrote. Shapes: k points of a stroke, n of a line.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from service.artifact import InkUnits
from service.errors import InvalidRequest

_LONGEST_OFFSET = 25.0  # units; what the model learned from has no longer move
_PAUSE = 0.02  # of the size: a pen that moves less stands still


def offsets_of(
    strokes: Sequence[Sequence[tuple[float, float]]], text: str, units: InkUnits
) -> NDArray[np.float32]:
    """Strokes in px that say `text` as offsets `(n, 3)` from the left end of their baseline.

    Raises `InvalidRequest` for ink that cannot be the text: none, or far too little.
    """
    paths = [np.array(s, np.float64) * (1, -1) for s in strokes if len(s)]
    characters = max(1, len(text.replace(" ", "")))
    every = np.concatenate(paths) if paths else np.zeros((1, 2))
    if not np.isfinite(every).all() or np.ptp(every, axis=0).max() == 0:
        raise InvalidRequest("style.strokes has no line in it", "style")
    size = float(np.abs(every[:, 1] - np.median(every[:, 1])).mean()) or float(np.ptp(every[:, 0]))
    paths = [_without_pauses(p - (every[:, 0].min(), _baseline(paths)), size) for p in paths]
    stride = sum(map(len, paths)) / characters / units.points_per_character
    if stride < 0.2:
        raise InvalidRequest(
            f"style.strokes has {sum(map(len, paths))} points for {characters} characters; "
            f"a pen makes {units.points_per_character:.0f} a character or more", "style",
        )  # fmt: skip
    resampled = [_resample(p, max(stride, 1.0)) * (units.units_of_size / size) for p in paths]
    points = np.concatenate(resampled)
    offsets = np.zeros((len(points), 3), np.float32)
    offsets[:, :2] = np.diff(points, axis=0, prepend=np.zeros((1, 2)))
    offsets[np.cumsum([len(s) for s in resampled]) - 1, 2] = 1
    np.clip(offsets[:, :2], -_LONGEST_OFFSET, _LONGEST_OFFSET, out=offsets[:, :2])
    return offsets


def _baseline(paths: Sequence[NDArray[np.float64]]) -> float:
    """The median of the lowest points of all arcs: most letters stand on the line."""
    lows = []
    for path in paths:
        y = np.concatenate([[np.inf], path[:, 1], [np.inf]])
        lows.append(path[(y[1:-1] < y[:-2]) & (y[1:-1] <= y[2:]), 1])
    return float(np.median(np.concatenate(lows)))


def _without_pauses(path: NDArray[np.float64], size: float) -> NDArray[np.float64]:
    steps = np.hypot(*np.diff(path, axis=0).T)
    place = np.floor(np.concatenate([[0.0], steps.cumsum()]) / (_PAUSE * size))
    kept = np.diff(place, prepend=-1) > 0
    kept[-1] = True
    return path[kept]


def _resample(path: NDArray[np.float64], stride: float) -> NDArray[np.float64]:
    """Every `stride`-th sample in time, evenly, with both ends; tremor in between is averaged."""
    last = len(path) - 1
    if last == 0:
        return path
    half = max(0, round(stride / 4))
    width = 2 * half + 1
    padded = np.pad(path, ((half, half), (0, 0)), mode="edge")
    smooth = np.stack(
        [np.convolve(axis, np.full(width, 1 / width), mode="valid") for axis in padded.T], axis=1
    )
    smooth[0], smooth[-1] = path[0], path[-1]
    at = np.linspace(0, last, max(1, round(last / stride)) + 1)
    return np.stack([np.interp(at, np.arange(last + 1), axis) for axis in smooth.T], axis=1)
