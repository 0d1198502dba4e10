"""When a text of ink is over: the pen has left the last letter for the place of a next one.

The graph says at every step whether the window rests past the text while the pen is up. People put
dots and bars after the letter they belong to, so that alone would cut them off. A writer who is
done moves on to the right of all that was written; who has a stroke left does not.
Shapes: n steps or points; offsets are dx, dy in units of the model, and 1 where the pen leaves.
"""

import numpy as np
from numpy.typing import NDArray

# Less than the narrowest space between two words that a pen has learned. A dot or a bar of the last
# letter lies nearer.
PAST_INK_UNITS = 2.0


class Ending:
    """Follows the ink of one line from left to right. `reach` is how far right of the pen its ink
    goes, in units, 0 or more."""

    def __init__(self, reach: float = 0.0) -> None:
        self._x = 0.0
        self._right = reach

    @property
    def reach(self) -> float:
        """See the class."""
        return self._right - self._x

    def follow(self, ink: NDArray[np.floating]) -> None:
        """Take in ink `(n, 3)`: in portions of any size the same as at once."""
        if len(ink):
            x, right = self._places(ink)
            self._x, self._right = float(x[-1]), float(right[-1])

    def first(self, past: NDArray[np.bool_], drawn: NDArray[np.floating]) -> int | None:
        """The first of the steps `(n,)` that are `past` the text whose point, of `drawn (n, 3)`, is
        no ink any more; None if there is none among them."""
        x, right = self._places(drawn)
        over = np.flatnonzero(past & (x[1:] > right[:-1] + PAST_INK_UNITS))
        return int(over[0]) if len(over) else None

    def _places(self, ink: NDArray[np.floating]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Where the pen is, and the right end of its ink: before `(n, 3)`, and after each."""
        x = np.cumsum([self._x, *ink[:, 0]])
        return x, np.maximum(np.maximum.accumulate(x), self._right)
