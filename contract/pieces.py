"""Ink as a reader sees it: strokes cut into pieces, all of one length but the last of each.

How fast a pen moved is not in them, so any tablet will do, and nothing of a text has to be known.
Rows to train on, the strokes of a caller and those still being written are cut here.
Shapes: n points of a stroke, N pieces; units are those of ink, y points up.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from contract.strokes import LONGEST_OFFSET, UNITS_OF_SIZE, Points, measure

# A letter is some three pieces. Four offsets in each are about as fine as ten points a character.
PIECE_UNITS = 4.0
_OFFSETS = 4
# The move to it through the air (x, y), the offsets along its path, how high its end is over the
# baseline, and 1 where the pen leaves the paper there. All zeros is a rest: nobody moves the pen.
PIECE = 2 + 2 * _OFFSETS + 2
# After the ink a reader may think for so many rests.
RESTS = 4

Pieces = NDArray[np.float32]  # (N, PIECE)
_CRUMB = 1e-6  # of a piece: what is left of a path that is a whole number of them long
# A stroke is delayed if what stands after its place reaches so many units further right than it.
_DELAYED = 2.0


def line_of(strokes: Sequence[NDArray[np.floating]]) -> list[Points] | None:
    """A line of strokes `(n, 2)` in any unit, y up, as level ink in units from the left end of its
    baseline; None if there is no ink in it."""
    line = measure(strokes, "")
    if line is None:
        return None
    return [stroke * (UNITS_OF_SIZE / line.size) for stroke in line.strokes]


def counts(lengths: NDArray[np.float64], *, lifted: bool = True) -> NDArray[np.int64]:
    """How many pieces `cut` makes of each of the strokes that are so long `(S,)`, in units."""
    whole = lengths / PIECE_UNITS
    found = np.maximum(np.ceil(whole - _CRUMB), 1).astype(np.int64)
    if not lifted:
        found[-1] = int(whole[-1] + _CRUMB)
    return found


def cut(
    strokes: Sequence[Points],
    at: Points | None = None,
    *,
    lifted: bool = True,
    reordered: bool = False,
) -> Pieces:
    """The pieces of strokes `(n, 2)`, of a point or more each, in order.

    `at (2,)` is where the pen was before, if not at the left end of the baseline. Unless the pen is
    `lifted` after the last stroke, what does not fill a piece of it yet is left out. `reordered`
    has delayed strokes, a bar of t or a dot of i after the word, where they stand, in the midst of
    another stroke if need be; such ink has to be whole.
    """
    sizes = np.array([len(stroke) for stroke in strokes])
    points = np.concatenate(strokes)
    lasts = sizes.cumsum() - 1
    number = np.arange(len(strokes))
    steps = np.hypot(*np.diff(points, axis=0, prepend=points[:1]).T)
    steps[lasts[:-1] + 1] = 0.0  # through the air
    path = steps.cumsum()
    begins = path[lasts - sizes + 1]
    lengths = path[lasts] - begins
    each = counts(lengths, lifted=lifted)
    stroke = np.repeat(number, each)  # (N,)
    place = np.arange(each.sum()) - np.repeat(each.cumsum() - each, each)
    ends = np.minimum((place + 1) * PIECE_UNITS, lengths[stroke])
    along = np.linspace(place * PIECE_UNITS, ends, _OFFSETS + 1, axis=1)  # (N, _OFFSETS + 1)
    # Strokes follow each other by a unit that is on none of them: one interpolation serves all.
    known = path + np.repeat(number, sizes)
    wanted = along + (begins + number)[stroke][:, None]
    places = np.stack([np.interp(wanted, known, axis) for axis in points.T], axis=-1)
    ups = np.diff(stroke, append=len(sizes) - (not lifted)) > 0
    if reordered:
        order = _order(places[..., 0], stroke)
        places, ups = places[order], ups[order]
    before = np.concatenate([np.zeros((1, 2)) if at is None else at[None], places[:-1, -1]])
    pieces = np.zeros((len(stroke), PIECE), np.float32)
    if len(pieces):
        # A gap this wide is a gap, however wide it is.
        pieces[:, :2] = (places[:, 0] - before).clip(-LONGEST_OFFSET, LONGEST_OFFSET)
        pieces[:, 2:-2] = np.diff(places, axis=1).reshape(len(pieces), -1)
        pieces[:, -2] = places[:, -1, 1]
        pieces[:, -1] = ups
    return pieces


def _order(x: NDArray[np.float64], stroke: NDArray[np.int64]) -> NDArray[np.int64]:
    """The pieces `(N,)` in the order in which they stand, if delayed strokes were not delayed: such
    a one after the last piece that reaches left of its middle. `x (N, points)` of every piece."""
    left, right = x.min(axis=1), x.max(axis=1)
    begins = np.flatnonzero(np.diff(stroke, prepend=-1))
    ends = np.maximum.reduceat(right, begins)
    middles = (np.minimum.reduceat(left, begins) + ends) / 2
    order = np.arange(len(x))
    stops = [*begins[1:], len(x)]
    for begin, stop, end, middle in zip(begins, stops, ends, middles, strict=True):
        # Of nearly every stroke the piece before it reaches left of its middle.
        if begin == 0 or left[order[begin - 1]] <= middle:
            continue
        reach = np.flatnonzero(left[order[:begin]] <= middle)
        after = int(reach[-1]) + 1 if len(reach) else 0
        if right[order[after:begin]].max() > end + _DELAYED:
            order[after:stop] = np.concatenate([order[begin:stop], order[after:begin]])
    return order
