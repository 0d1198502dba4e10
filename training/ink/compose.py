"""Rows of ink put together from pieces: one writer's words side by side, and marks among them."""

from collections import defaultdict
from collections.abc import Iterable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from contract.alphabets import WINDOW_SYMBOLS
from training.ink.isolated import is_figure, is_mark
from training.ink.prepare import LONGEST_INK, Ink, is_own

# The space between two words put side by side, in units: from tight to loose.
GAP = (2.5, 5.5)
# Between a mark and what it touches, and how often it touches it.
TOUCHING = (0.3, 1.8)
_TOUCHES = 0.6
_ABOUT = 4  # so many characters more are as good as those that were wanted
# A text is drawn the more often the rarer its rarest character, by this power, up to this often.
_RARITY_POWER = 0.35
_MOST_OFTEN = 8.0

T = TypeVar("T")


class Rows:
    """Rows of about a wanted number of characters, each by one writer but for isolated characters.

    Where a word could stand next in a row, `marked` is how often a mark does, and `figured` how
    often a figure or a letter: each kind as often as every other, and whoever wrote it, as few who
    wrote words have written them all. `own` is how often a row is a line that a pen wrote.
    """

    def __init__(
        self, inks: list[Ink], marked: float = 0.0, figured: float = 0.0, own: float = 0.0
    ) -> None:
        self._inks = [ink for ink in inks if not (ink.isolated or is_own(ink))]
        self._own_lines = [ink for ink in inks if is_own(ink)]
        self._own = own if self._own_lines else 0.0
        self._by_writer: dict[str, list[Ink]] = defaultdict(list)
        for ink in self._inks:
            self._by_writer[ink.writer].append(ink)
        self._marks, self._figures = (_kinds(filter(which, inks)) for which in (is_mark, is_figure))
        self._marked = marked if self._marks else 0.0
        self._figured = figured if self._figures else 0.0
        self._sets_isolated = self._marked + self._figured > 0
        cumulative = _rarity(self._inks).cumsum()
        self._cumulative = cumulative / cumulative[-1]  # not their sum, which is rounded otherwise
        self._sizes = np.array([len(ink.text) for ink in self._inks])

    def draw(self, characters: int, generator: np.random.Generator) -> Ink:
        """A row of about `characters`, unless its writer wrote nothing that fits."""
        if self._own and generator.random() < self._own:
            return self._own_line(characters, generator)
        row = last = self._inks[self._pick(characters, generator)]
        words = self._by_writer[row.writer]
        if kinds := self._isolated(generator):
            row = self._beside(_any(_any(kinds, generator), generator), row, True, generator)
        for _ in range(characters):
            if len(row.text) + 2 >= characters:
                break
            kinds = self._isolated(generator)
            piece = _any(_any(kinds, generator) if kinds else words, generator)
            joined = self._beside(row, piece, last.isolated, generator)
            if len(joined.text) < WINDOW_SYMBOLS and len(joined.offsets) < LONGEST_INK:
                row, last = joined, piece
        return row

    def _beside(self, left: Ink, right: Ink, isolated: bool, generator: np.random.Generator) -> Ink:
        """Words stand apart from each other and from a figure that follows; all else may touch,
        and so what comes after an `isolated` piece."""
        touches = isolated or not (left.text[-1].isalnum() and right.text[0].isalnum())
        if touches and self._sets_isolated and generator.random() < _TOUCHES:
            return join(left, right, generator.uniform(*TOUCHING), "")
        return join(left, right, generator.uniform(*GAP))

    def _isolated(self, generator: np.random.Generator) -> list[list[Ink]] | None:
        """The kinds of what stands here instead of a word, if anything does."""
        if not self._sets_isolated:
            return None
        drawn = generator.random()
        if drawn < self._marked:
            return self._marks
        return self._figures if drawn < self._marked + self._figured else None

    def _own_line(self, characters: int, generator: np.random.Generator) -> Ink:
        """One of about so many characters, or any if there are hardly any such."""
        line = _any(self._own_lines, generator)
        for _ in range(50):
            if abs(len(line.text) - characters) <= _ABOUT:
                break
            line = _any(self._own_lines, generator)
        return line

    def _pick(self, characters: int, generator: np.random.Generator) -> int:
        for _ in range(50):
            place = int(np.searchsorted(self._cumulative, generator.random()))
            if self._sizes[place] <= characters + _ABOUT:
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


def _kinds(inks: Iterable[Ink]) -> list[list[Ink]]:
    by_text: dict[str, list[Ink]] = defaultdict(list)
    for ink in inks:
        by_text[ink.text].append(ink)
    return [by_text[text] for text in sorted(by_text)]


def _any(pieces: list[T], generator: np.random.Generator) -> T:
    return pieces[generator.integers(len(pieces))]


def _rarity(inks: list[Ink]) -> NDArray[np.float64]:
    counts = np.zeros(256)
    for ink in inks:
        np.add.at(counts, np.frombuffer(ink.text.encode(), np.uint8), 1)
    rarest = np.array([counts[list(ink.text.encode())].min() for ink in inks])
    return np.asarray(np.minimum((counts.max() / rarest) ** _RARITY_POWER, _MOST_OFTEN))
