"""From offsets in model units to points on the page, in whatever portions they come.

Shapes: `n` offsets or points, `k` points of one stroke.
"""

import math
from collections import deque
from statistics import median

import numpy as np
from numpy.typing import NDArray

from service.ink.layout import Layout

# A model that knows offsets alone cannot see the ruled line, and climbs or sinks along it. A writer
# looks where the last letters stand, and comes back towards the line whenever the pen is lifted.
_ARCS_SEEN = 9  # the lowest places of so many arcs; descenders are the fewer
_ARCS_NEEDED = 5
_GAIN = 0.4  # of the distance that is made good at one lift
_MOST_UNITS = 0.8  # a lift; a small letter is about three units high


class LinePen:
    """A pen at the origin of line number `line` of a page, moved by offsets, kept on the line."""

    def __init__(self, layout: Layout, line: int) -> None:
        self._origin_px = layout.origin_px(line)
        # The model's y points up, the page's down.
        self._scale = np.array([layout.px_per_unit, -layout.px_per_unit])
        self._x = 0.0
        self._y = 0.0
        self._stroke: list[float] = []  # the heights of its last three points at most
        self._lows: deque[float] = deque(maxlen=_ARCS_SEEN)

    def move(self, offsets: NDArray[np.floating]) -> NDArray[np.float64]:
        """Follow offsets `(n, 3)`: dx, dy, pen_up; the points, `(n, 3)`: x and y in px, pen_up.

        Portions of any size give the bits that all offsets at once give: every point is added to
        the one before it, in model units, and then placed by itself.
        """
        places = np.zeros((len(offsets), 2))
        for i, (dx, dy, up) in enumerate(offsets.tolist()):
            self._x += dx
            self._y += dy
            places[i] = self._x, self._y
            self._look(up > 0.5)
            if up > 0.5:
                self._come_back()
        return np.concatenate([self._origin_px + places * self._scale, offsets[:, 2:]], axis=1)

    def _look(self, up: bool) -> None:
        """Remember where an arc of the stroke was lowest, its ends included."""
        self._stroke = [*self._stroke[-2:], self._y]
        earlier, before, here = ([math.inf] * 2 + self._stroke)[-3:]
        if before < earlier and before <= here:
            self._lows.append(before)
        if up:
            if here < before:
                self._lows.append(here)
            self._stroke = []

    def _come_back(self) -> None:
        """Move the pen, which is off the paper, towards the line the last letters should be on."""
        if len(self._lows) < _ARCS_NEEDED:
            return
        step = min(max(-_GAIN * median(self._lows), -_MOST_UNITS), _MOST_UNITS)
        self._y += step
        self._lows = deque((low + step for low in self._lows), maxlen=_ARCS_SEEN)


def strokes(points: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """The strokes `(k, 2)` of points `(n, 3)`, each ended by pen_up; the last may be unfinished."""
    ends = np.flatnonzero(points[:, 2] > 0.5) + 1
    return [stroke for stroke in np.split(points[:, :2], ends) if len(stroke)]
