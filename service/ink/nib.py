"""How wide a stroke is: where the pen was fast it is thinner, as that of a nib is.

Points come at even times, so how far one is from the next is the speed. The page draws the same
(`service/web/nib.js`). Shapes: `m` points of one stroke without repeated ones, x and y.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from service.ink.curve import beziers
from service.ink.layout import Layout

Array = NDArray[np.float64]
# Line heights a point: what stored hands make on average. There half of the thinning is seen.
USUAL_SPEED = 0.07
# Widths told apart: of neighbours that are equal one path is made.
STEPS = 16


def runs(stroke: Array, layout: Layout) -> Iterator[tuple[float, Array, Array]]:
    """The parts of a stroke `(k, 2)` in px that are of one width: the width in px, and where the
    part begins `(2,)` with its cubic Béziers `(n, 6)`, as `beziers` has them.

    The width is `stroke_width * (1 - thinning * v / (v + usual))` for a speed of v px a point.
    """
    start, segments = beziers(stroke)
    if not layout.thinning or not len(segments):
        yield layout.stroke_width_px, start, segments
        return
    points = np.concatenate([start[None], segments[:, 4:]])  # (m, 2)
    speed = _smooth(np.sqrt((np.diff(points, axis=0) ** 2).sum(axis=1)))  # (m - 1,)
    usual = USUAL_SPEED * layout.line_height_px
    steps = np.floor(STEPS * speed / (speed + usual) + 0.5)
    first = 0
    for end in [*(np.flatnonzero(np.diff(steps)) + 1).tolist(), len(steps)]:
        width_px = layout.stroke_width_px * (1 - layout.thinning * steps[first] / STEPS)
        yield float(width_px), points[first], segments[first:end]
        first = end


def _smooth(lengths: Array) -> Array:
    """Each length with half a share of either neighbour, itself where there is none."""
    around = np.concatenate([lengths[:1], lengths, lengths[-1:]])
    smooth: Array = (around[:-2] + 2 * lengths + around[2:]) / 4
    return smooth
