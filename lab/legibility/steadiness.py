"""Does a hand keep its lean and its size down a page? How far a late line lies from the first five
of its page, beside how far a person's line lies from five others of that person's.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lab.legibility import held_out
from lab.legibility.reading import Offsets
from service.ink.measure import measure
from training.ink.prepare import Ink

FIRST = 5  # lines, whose mean the others are held against
_LEAST = FIRST + 2  # lines of a person


@dataclass(frozen=True, slots=True)
class Strays:
    """Of so many lines of so many hands, the root mean square of how far one lies from the mean of
    the first five: the lean in degrees, and the size as a share of that mean."""

    hands: int
    lines: int
    slant_degrees: float
    size: float


def of_pages(pages: Iterable[Sequence[tuple[str, Offsets]]]) -> Strays:
    """The last line of every page, of `(text, offsets)` from the top."""
    return _strays([[*lines[:FIRST], lines[-1]] for lines in pages])


def of_people(inks: Sequence[Ink]) -> Strays:
    """Every further line of every writer with lines enough, in the order of their hashes."""
    by_writer: dict[str, list[tuple[str, Offsets]]] = defaultdict(list)
    for ink in held_out.candidates(inks):
        by_writer[ink.writer].append((ink.text, ink.offsets))
    return _strays([lines for lines in by_writer.values() if len(lines) >= _LEAST])


def _strays(hands: Sequence[Sequence[tuple[str, Offsets]]]) -> Strays:
    away = [_away(np.array([_looks(*line) for line in lines])) for lines in hands]
    every = np.concatenate(away)
    slant, size = np.sqrt((every**2).mean(axis=0))
    return Strays(len(hands), len(every), float(slant), float(size))


def _looks(text: str, offsets: Offsets) -> tuple[float, float]:
    looks = measure(offsets, len(text))
    return looks.slant_degrees, looks.size_units


def _away(looks: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far slants and sizes `(lines, 2)` after the first five are from those: `(n, 2)`."""
    middle = looks[:FIRST].mean(axis=0)
    away: NDArray[np.float64] = (looks[FIRST:] - middle) / (1.0, middle[1])
    return away
