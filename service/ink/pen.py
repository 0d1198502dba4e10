"""From offsets in model units to points on the page, in whatever portions they come.

Shapes: `n` offsets or points, `k` points of one stroke.
"""

import numpy as np
from numpy.typing import NDArray

from service.ink.layout import Layout


class LinePen:
    """A pen at the origin of line number `line` of a page, moved by offsets."""

    def __init__(self, layout: Layout, line: int) -> None:
        self._origin_px = layout.origin_px(line)
        # The model's y points up, the page's down.
        self._scale = np.array([layout.px_per_unit, -layout.px_per_unit])
        self._position = np.zeros((1, 2))

    def move(self, offsets: NDArray[np.floating]) -> NDArray[np.float64]:
        """Follow offsets `(n, 3)`: dx, dy, pen_up; the points, `(n, 3)`: x and y in px, pen_up.

        Portions of any size give the bits that all offsets at once give: the sum runs one by one
        from the position carried, in model units, and each sum is then placed by itself.
        """
        steps = np.concatenate([self._position, offsets[:, :2]], dtype=np.float64)
        positions = np.cumsum(steps, axis=0)
        self._position = positions[-1:]
        places = self._origin_px + positions[1:] * self._scale
        return np.concatenate([places, offsets[:, 2:]], axis=1)


def strokes(points: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """The strokes `(k, 2)` of points `(n, 3)`, each ended by pen_up; the last may be unfinished."""
    ends = np.flatnonzero(points[:, 2] > 0.5) + 1
    return [stroke for stroke in np.split(points[:, :2], ends) if len(stroke)]
