"""Whether a model stops when its text is over and stays on its line, whatever it is asked to write.

How large ink may be is taken from the training lines.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lab.legibility.reading import Offsets
from lab.legibility.write_ink import Written
from training.ink.prepare import Ink

_PERCENTILE = 99.9
_TIMES = 2.0


@dataclass(frozen=True, slots=True)
class Extent:
    """The box around a line of ink, in model units."""

    width_per_character: float
    height: float


@dataclass(frozen=True, slots=True)
class Tidiness:
    """Of how many lines how many ended by the rule, and those that left the bounds."""

    lines: int
    ended: int
    scribbled: int
    widest_per_character: float
    tallest: float


def extent(offsets: Offsets, characters: int) -> Extent:
    """Of a line `(N, 3)` of so many characters; 0 where nothing is written."""
    if not len(offsets):
        return Extent(0.0, 0.0)
    width, height = np.ptp(offsets[:, :2].cumsum(axis=0, dtype=np.float64), axis=0)
    return Extent(float(width) / characters, float(height))


def bounds(training: Sequence[Ink]) -> Extent:
    """The 99.9th percentiles of lines that people wrote. Ink of twice these has gone astray."""
    extents = [extent(ink.offsets, len(ink.text)) for ink in training]
    return Extent(
        float(np.percentile([e.width_per_character for e in extents], _PERCENTILE)),
        float(np.percentile([e.height for e in extents], _PERCENTILE)),
    )


def tidiness(texts: Sequence[str], written: Sequence[Written], people: Extent) -> Tidiness:
    """Judge the lines written for `texts` by what people do."""
    extents = [extent(w.offsets, len(t)) for t, w in zip(texts, written, strict=True)]
    astray = [
        e.width_per_character > _TIMES * people.width_per_character
        or e.height > _TIMES * people.height
        for e in extents
    ]
    return Tidiness(
        lines=len(texts),
        ended=sum(w.ended for w in written),
        scribbled=sum(astray),
        widest_per_character=max(e.width_per_character for e in extents),
        tallest=max(e.height for e in extents),
    )
