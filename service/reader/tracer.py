"""Strokes that are still being written, cut into pieces as far as they go.

Shapes: n points; units are those of ink, y points up.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from contract.pieces import PIECE_UNITS, Pieces, counts, cut
from service.errors import InvalidRequest
from service.online import MOST_STEPS

Point = tuple[float, float]
_PAUSE = 0.03  # units: a pen that moves less stands still


class Tracer:
    """A pen followed point by point. `at` is where it was when the last piece ended, None at the
    left end of the baseline; `path` are the points of a stroke since then, if one is being written.
    """

    def __init__(self, at: Point | None = None, path: Sequence[Point] = ()) -> None:
        self.at = at
        self.path = list(path)

    def follow(self, points: Sequence[Point], *, lifted: bool) -> Pieces:
        """The pieces that more points of a stroke complete, all of it if the pen is then lifted."""
        for point in points:
            if not self.path or np.hypot(*np.subtract(point, self.path[-1])) > _PAUSE:
                self.path.append(point)
        if lifted and points and self.path[-1] != points[-1]:
            self.path.append(points[-1])
        path = np.array(self.path, np.float64)
        require_short([path], lifted=lifted)
        at = None if self.at is None else np.array(self.at, np.float64)
        pieces = cut([path], at, lifted=lifted)
        if lifted:
            self.at, self.path = self.path[-1], []
        elif len(pieces):
            self._forget(path, len(pieces) * PIECE_UNITS)
        return pieces

    def _forget(self, path: NDArray[np.float64], length: float) -> None:
        """The beginning of the path, of this length, is in pieces."""
        run = np.concatenate([[0.0], np.hypot(*np.diff(path, axis=0).T).cumsum()])
        x, y = (float(np.interp(length, run, axis)) for axis in path.T)
        self.at = (x, y)
        self.path = [self.at, *(self.path[i] for i in np.flatnonzero(run > length))]


@contextmanager
def come_by(field: str) -> Iterator[None]:
    """Refusals of ink name the field that it came by."""
    try:
        yield
    except InvalidRequest as error:
        raise InvalidRequest(error.message, field) from error


def require_short(strokes: Sequence[NDArray[np.float64]], *, lifted: bool = True) -> None:
    """Raise `InvalidRequest` for strokes `(n, 2)` of more pieces than a message may have."""
    lengths = np.array([np.hypot(*np.diff(stroke, axis=0).T).sum() for stroke in strokes])
    require_few(int(counts(lengths, lifted=lifted).sum()))


def require_few(pieces: int) -> None:
    """Raise `InvalidRequest` for more pieces than a message may have."""
    if pieces > MOST_STEPS:
        raise InvalidRequest(f"the ink is {pieces} pieces long, for its size; at most {MOST_STEPS}")
