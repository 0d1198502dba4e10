"""A caller's strokes, whose page has y down, as ink with y up."""

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from contract.strokes import Points

# A line shorter than this is a slip of the pen, whatever it says.
_LEAST_PX = 1e-3


def upright(strokes: Sequence[Sequence[Sequence[float]]]) -> list[Points]:
    """Strokes of points `[x, y]` in px, y down, as arrays `(n, 2)` with y up; no strokes where all
    of the ink together is a slip of the pen.

    That has to be known before a line is fitted to the ink: so far from the origin, so little ink
    has too few digits to fit anything to. And of points that repeat the one before nothing is left:
    the size of a line is a mean over points, and where a pen rests, a tablet may tell hundreds.
    """
    paths = [
        np.array([place for place, _ in groupby(stroke)], np.float64) * (1, -1)
        for stroke in strokes
    ]
    if paths and np.ptp(np.concatenate(paths), axis=0).max() >= _LEAST_PX:
        return paths
    return []
