"""Rows of ink put together from pieces: one writer's words side by side, and marks among them."""

from collections import defaultdict
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from contract.alphabets import WINDOW_SYMBOLS
from training.ink.marks import is_mark
from training.ink.prepare import LONGEST_INK, Ink

# The space between two words put side by side, in units: from tight to loose.
GAP = (2.5, 5.5)
# Between a mark and what it touches, and how often it touches it.
TOUCHING = (0.3, 1.8)
_TOUCHES = 0.6
# A text is drawn the more often the rarer its rarest character, by this power, up to this often.
_RARITY_POWER = 0.35
_MOST_OFTEN = 8.0

T = TypeVar("T")


class Rows:
    """Rows of about a wanted number of characters, each by one writer but for isolated marks.

    Where a word could stand next in a row, `marked` is how often a mark does: each kind of mark as
    often as every other, and whoever wrote it, as few who wrote words have written them all.
    """

    def __init__(self, inks: list[Ink], marked: float = 0.0) -> None:
        self._inks = [ink for ink in inks if not is_mark(ink)]
        self._by_writer: dict[str, list[Ink]] = defaultdict(list)
        for ink in self._inks:
            self._by_writer[ink.writer].append(ink)
        kinds: dict[str, list[Ink]] = defaultdict(list)
        for ink in filter(is_mark, inks):
            kinds[ink.text].append(ink)
        self._marks = [kinds[text] for text in sorted(kinds)]
        self._marked = marked if self._marks else 0.0
        weights = _rarity(self._inks)
        self._cumulative = weights.cumsum() / weights.sum()
        self._sizes = np.array([len(ink.text) for ink in self._inks])

    def draw(self, characters: int, generator: np.random.Generator) -> Ink:
        """A row of `characters` or a few more, unless its writer wrote nothing that fits."""
        row = self._inks[self._pick(characters, generator)]
        words = self._by_writer[row.writer]
        if self._sets_mark(generator):
            row = self._beside(_any(_any(self._marks, generator), generator), row, generator)
        for _ in range(characters):
            if len(row.text) + 2 >= characters:
                break
            pieces = _any(self._marks, generator) if self._sets_mark(generator) else words
            joined = self._beside(row, _any(pieces, generator), generator)
            if len(joined.text) < WINDOW_SYMBOLS and len(joined.offsets) < LONGEST_INK:
                row = joined
        return row

    def _beside(self, left: Ink, right: Ink, generator: np.random.Generator) -> Ink:
        beside_mark = not (left.text[-1].isalnum() and right.text[0].isalnum())
        if self._marked and beside_mark and generator.random() < _TOUCHES:
            return join(left, right, generator.uniform(*TOUCHING), "")
        return join(left, right, generator.uniform(*GAP))

    def _sets_mark(self, generator: np.random.Generator) -> bool:
        return self._marked > 0 and generator.random() < self._marked

    def _pick(self, characters: int, generator: np.random.Generator) -> int:
        for _ in range(50):
            place = int(np.searchsorted(self._cumulative, generator.random()))
            if self._sizes[place] <= characters + 4:
                return place
        return int(self._sizes.argmin())


def join(left: Ink, right: Ink, gap: float, between: str = " ") -> Ink:
    """Two pieces on one baseline, `gap` units apart, and what stands between their texts."""
    end = left.offsets[:, :2].sum(0)
    offsets = right.offsets.copy()
    offsets[0, :2] += np.array([left.advance + gap, 0.0], np.float32) - end
    return Ink(
        f"{left.text}{between}{right.text}",
        np.concatenate([left.offsets, offsets]),
        left.advance + gap + right.advance,
        left.writer,
        left.source,
    )


def _any(pieces: list[T], generator: np.random.Generator) -> T:
    return pieces[generator.integers(len(pieces))]


def _rarity(inks: list[Ink]) -> NDArray[np.float64]:
    counts = np.zeros(256)
    for ink in inks:
        np.add.at(counts, np.frombuffer(ink.text.encode(), np.uint8), 1)
    rarest = np.array([counts[list(ink.text.encode())].min() for ink in inks])
    return np.asarray(np.minimum((counts.max() / rarest) ** _RARITY_POWER, _MOST_OFTEN))
