"""A baseline that wanders, as that of a person on plain paper does: a line rises or falls on the
whole, and swings about that slowly.
"""

import numpy as np
from numpy.typing import NDArray

from contract.noise import UniformStream
from service.ink.layout import Layout

# Of the randomness of a seed: the draws of lines are numbered from 0, and 16 at most.
_CHOICE = 1 << 32
# How far one swing goes along the line, in line heights: one of a few words, and one of a sentence.
_SWINGS = (4.0, 11.0)
_EACH = 1 + len(_SWINGS)
# A straight line from -a to a has the mean square a²/3, a uniform factor from -1 to 1 another third
# of it, a sine of amplitude b the mean square b²/2. Rise and swings have half of the whole each.
_RISE = 3 / np.sqrt(2)
_SWING = 1 / np.sqrt(len(_SWINGS))


class Baseline:
    """That of line number `line`. The root of its mean square, over places and lines, is
    `layout.wander` line heights; the same seed has the same, however much of it is asked for."""

    def __init__(self, layout: Layout, seed: int, line: int) -> None:
        self._left_px, _ = layout.origin_px(line)
        self._room_px = layout.width_px - 2 * layout.margin_px
        self._height_px = layout.line_height_px
        self._wander_px = layout.wander * layout.line_height_px
        uniforms = UniformStream(seed, _CHOICE).take(_EACH * line, _EACH).astype(np.float64)
        self._rise, self._phases = 2 * uniforms[0] - 1, uniforms[1:]

    def below_px(self, x_px: NDArray[np.float64]) -> NDArray[np.float64]:
        """How far it is below its place at `x_px (n,)`: `(n,)`."""
        along_px = x_px - self._left_px
        away: NDArray[np.float64] = _RISE * self._rise * (2 * along_px / self._room_px - 1)
        for length, phase in zip(_SWINGS, self._phases, strict=True):
            away += _SWING * np.sin(2 * np.pi * (along_px / (length * self._height_px) + phase))
        away *= self._wander_px
        return away
