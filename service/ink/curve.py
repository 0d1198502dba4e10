"""A smooth curve through the points of a stroke, and how SVG writes it.

Shapes: `k` points of one stroke, `m` of them left when repeated ones are dropped.
"""

from itertools import compress

import numpy as np
from numpy.typing import NDArray

DECIMALS = 2  # of a px, as points are shown and drawn: finer than any screen


def beziers(stroke: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Where a stroke `(k, 2)`, `k` at least 1, begins `(2,)`, and two control points and the end of
    each cubic Bézier through its points `(m - 1, 6)`; none if it stays at one point."""
    points = stroke.round(DECIMALS)
    moved = (points[1:] != points[:-1]).any(axis=1)
    if not moved.all():
        # Not by an index. For one numpy lets go of the interpreter, too shortly for anybody else to
        # take it: stroke after stroke, others waited for 200 ms.
        points = np.array([points[0].tolist(), *compress(points[1:].tolist(), moved.tolist())])
    if len(points) == 1:
        return points[0], np.zeros((0, 6))
    return points[0], np.concatenate([*_handles(points), points[1:]], axis=1)


def _handles(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The two inner control points `(m - 1, 2)` of each segment between points `(m, 2)`.

    Centripetal Catmull-Rom (Yuksel et al. 2011): the knots are the root of the distance apart, so
    that unevenly spaced points make no loop and no cusp within a segment. The velocity at a point
    is that of the parabola through it and its neighbours. At either end the neighbour
    that is missing is the mirror image of the one that is there.
    """
    chords = np.diff(points, axis=0)  # (m - 1, 2)
    spans = np.sqrt(np.sqrt((chords**2).sum(axis=1, keepdims=True)))  # (m - 1, 1)
    before, after = np.concatenate([chords[:1], chords]), np.concatenate([chords, chords[-1:]])
    span_in, span_out = np.concatenate([spans[:1], spans]), np.concatenate([spans, spans[-1:]])
    velocities = (
        before / span_in - (before + after) / (span_in + span_out) + after / span_out
    )  # (m, 2)
    thirds = spans / 3
    return points[:-1] + velocities[:-1] * thirds, points[1:] - velocities[1:] * thirds


def path(start: NDArray[np.float64], segments: NDArray[np.float64]) -> str:
    """The path data of what `beziers` gives. A stroke that stays at one point becomes a line of no
    length, which round caps make a dot."""
    begin = f"M{pair(start)}"
    if not len(segments):
        return f"{begin} L{pair(start)}"
    return " ".join([begin, *(f"C{pair(segment)}" for segment in segments)])


def pair(numbers: NDArray[np.float64]) -> str:
    """Coordinates as text, with as many decimals as they need and `DECIMALS` at most."""
    return ",".join(f"{number:.15g}" for number in numbers.round(DECIMALS).tolist())
