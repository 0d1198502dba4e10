"""A line that would run past its margin, made narrower as it is written.

No hand keeps to its average advance, and a line may be a third wider than it was expected to be.
Writers who see the margin come near make what is left narrower; so does this, evenly over the rest
of the line. Ink of a line that is expected to fit all along is left as it is, bit for bit.
Shapes: n points; px from the left edge of the page.
"""

import numpy as np
from numpy.typing import NDArray

from service.ink.breaking import AVERAGE, width_of
from service.ink.layout import Layout

# Average characters: when so many have been written, how wide they were counts for as much as how
# wide they were expected to be.
_TRUSTED = 8.0
_NARROWEST = 0.5  # of its width; what still runs on is held back between the margin and the edge


class Squeeze:
    """Where the points of a line go from left to right, in whatever portions they come."""

    def __init__(self, layout: Layout, text: str) -> None:
        widths = np.array([width_of(character) for character in text]) / AVERAGE
        self._before = np.concatenate([[0.0], widths.cumsum()])
        self._advance_px = layout.units_per_character * layout.px_per_unit
        self._left_px = layout.margin_px
        self._right_px = layout.width_px - layout.margin_px
        self._spare_px = max(layout.margin_px - layout.stroke_width_px / 2, 0.0)
        self._character = 0
        self._farthest_px = self._left_px
        # From here on a px of the pen is so much of one on the page: the pen's x, the page's, and
        # the share, which is 1 to the left of the first.
        self._turns: list[tuple[float, float, float]] = []

    def place(self, x: NDArray[np.float64], characters: NDArray[np.int64]) -> NDArray[np.float64]:
        """The points `x (n,)` of a pen, each drawn while the window was at a character `(n,)`."""
        placed = x.copy()
        for i, (pen, character) in enumerate(zip(x.tolist(), characters.tolist(), strict=True)):
            if character > self._character:
                self._character = character
                self._turn()
            self._farthest_px = max(self._farthest_px, pen)
            placed[i] = self._within(self._at(pen))
        return placed

    def _turn(self) -> None:
        """Begin a character: what is left is as wide as it may be."""
        done = float(self._before[self._character])
        left = float(self._before[-1]) - done
        pace = (_TRUSTED + (self._farthest_px - self._left_px) / self._advance_px) / (
            _TRUSTED + done
        )
        here = self._at(self._farthest_px)
        share = (self._right_px - here) / (left * pace * self._advance_px)
        share = min(max(share, _NARROWEST), 1.0)
        if share != (self._turns[-1][2] if self._turns else 1.0):
            self._turns.append((self._farthest_px, here, share))

    def _at(self, pen: float) -> float:
        # A pen goes back to cross a t, as far as some characters: the turn is among the last.
        for begin, page, share in reversed(self._turns):
            if pen >= begin:
                return page + share * (pen - begin)
        return pen

    def _within(self, page: float) -> float:
        """Nothing is drawn beyond the edge, however lost the pen is."""
        beyond = page - self._right_px
        if beyond <= 0:
            return page
        return self._right_px + self._spare_px * beyond / (self._spare_px + beyond)
