"""Which letter of a line each point of its ink is of, by where the window was and where pens come
down.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

# The window looks ahead: it leaves a letter some points before the pen does. Median of 8 hands.
_AHEAD = 3  # points
# A word begins where the pen comes down furthest right of all ink while the window is at the space:
# at the window's first point on the word or the one before in 90 of 100, and within so many.
_NEAR = 8  # points
# Gaps within a word may be as wide. A point further from the window's first one costs as much of a
# gap as this share of what the pen advances in a point on average.
_FARTHER = 0.5


def owners(
    text: str, characters: NDArray[np.int64], points: NDArray[np.float64]
) -> NDArray[np.int64]:
    """The place of the letter that each of the points `(n, 3)` is of, n at least 1, given the
    window's character at it `(n,)`."""
    found = np.concatenate([np.repeat(characters[:1], _AHEAD), characters])[: len(characters)]
    window, reached = np.maximum.accumulate(characters), np.maximum.accumulate(points[:, 0])
    downs = np.flatnonzero(points[:-1, 2] > 0.5) + 1
    spaces = [place for place, letter in enumerate(text) if letter == " "]
    costs = _FARTHER * (reached[-1] - reached[0]) / len(points)
    begins = 0  # where the word does
    for space, following in pairwise([*spaces, len(text)]):
        into, beyond, after = window.searchsorted([space, space + 1, following]).tolist()
        if beyond == len(characters):
            break
        # Of a word of one letter both gaps are near.
        first, last = max(into - _NEAR, begins + 1), min(beyond + _NEAR, max(after - 1, beyond))
        near = downs[(downs >= first) & (downs <= last)]
        if len(near):
            gaps = points[near, 0] - reached[near - 1]
            begins = int(near[(gaps - costs * np.abs(near - beyond)).argmax()])
            found[:begins] = found[:begins].clip(max=max(space - 1, 0))
            found[begins:] = found[begins:].clip(min=space + 1)
        found[found == space] += 1  # a letter is drawn there, as no word parts
    return found
