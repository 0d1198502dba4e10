"""Ink to train on: a corpus of prepared lines, and batches of rows put together from it.

Shapes: T points of the longest row, B rows, U symbols of the longest text, N points of a corpus.
"""

import hashlib
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from contract.alphabets import END, WINDOW_SYMBOLS, encode
from models.handwriting import POINT
from training.ink.line import Tally
from training.ink.prepare import LONGEST_INK, Ink, prepare

# The space between two words put side by side, in units: from tight to loose.
GAP = (2.5, 5.5)
# A text is drawn the more often the rarer its rarest character, by this power, up to this often.
_RARITY_POWER = 0.35
_MOST_OFTEN = 8.0


class PenBatch(NamedTuple):
    """Rows side by side, padded at their ends: `points (T, B, 3)`, `symbols (B, U)`, `length (B,)`,
    and `counts (T, B)`, 1 where a row has a point."""

    points: Tensor
    symbols: Tensor
    length: Tensor
    counts: Tensor


@dataclass(frozen=True)
class PenCorpus:
    """Prepared lines and where they came from; a `.npz` file holds all of it."""

    name: str
    inks: list[Ink] = field(repr=False)

    @cached_property
    def sha256(self) -> str:
        """Of every text, writer and offset in order."""
        digest = hashlib.sha256()
        for ink in self.inks:
            digest.update(f"{ink.writer}\0{ink.text}\0".encode())
            digest.update(ink.offsets.tobytes())
        return digest.hexdigest()

    def split(self, validation_fraction: float) -> tuple[list[Ink], list[Ink]]:
        """Lines to train on and to validate: a writer is in one or the other, by a hash."""
        parts: tuple[list[Ink], list[Ink]] = ([], [])
        for ink in self.inks:
            number = int.from_bytes(hashlib.sha256(ink.writer.encode()).digest()[:8], "big")
            parts[number < validation_fraction * 2**64].append(ink)
        return parts

    def save(self, path: Path) -> None:
        """Write the corpus as one compressed file."""
        np.savez_compressed(
            path,
            name=self.name,
            texts=[ink.text for ink in self.inks],
            writers=[ink.writer for ink in self.inks],
            sources=[ink.source for ink in self.inks],
            advances=[ink.advance for ink in self.inks],
            lengths=[len(ink.offsets) for ink in self.inks],
            offsets=np.concatenate([ink.offsets for ink in self.inks]),
        )


def read_pens(source: Path, tally: Tally) -> PenCorpus:
    """A folder of pen data, `synthetic`, or a corpus that was saved. Raises `ValueError`."""
    from training.ink.sources import read_lines

    if source.suffix == ".npz":
        return _load(source)
    return PenCorpus(source.name, prepare(read_lines(source, tally), tally))


def _load(path: Path) -> PenCorpus:
    with np.load(path) as file:
        content: dict[str, Any] = {name: file[name] for name in file.files}
    ends = content["lengths"].cumsum()
    columns = zip(
        content["texts"],
        np.split(content["offsets"], ends[:-1]),
        content["advances"],
        content["writers"],
        content["sources"],
        strict=True,
    )
    inks = [Ink(str(t), o, float(a), str(w), str(s)) for t, o, a, w, s in columns]
    return PenCorpus(str(content["name"]), inks)


class Rows:
    """Rows of about a wanted number of characters, each by one writer: words side by side."""

    def __init__(self, inks: list[Ink]) -> None:
        self._inks = inks
        self._by_writer: dict[str, list[int]] = defaultdict(list)
        for i, ink in enumerate(inks):
            self._by_writer[ink.writer].append(i)
        weights = _rarity(inks)
        self._cumulative = weights.cumsum() / weights.sum()
        self._sizes = np.array([len(ink.text) for ink in inks])

    def draw(self, characters: int, generator: np.random.Generator) -> Ink:
        """A row of `characters` or a few more, unless its writer wrote nothing that fits."""
        row = self._inks[self._pick(characters, generator)]
        words = self._by_writer[row.writer]
        for _ in range(characters):
            if len(row.text) + 2 >= characters:
                break
            word = self._inks[words[generator.integers(len(words))]]
            joined = join(row, word, generator.uniform(*GAP))
            if len(joined.text) < WINDOW_SYMBOLS and len(joined.offsets) < LONGEST_INK:
                row = joined
        return row

    def _pick(self, characters: int, generator: np.random.Generator) -> int:
        for _ in range(50):
            place = int(np.searchsorted(self._cumulative, generator.random()))
            if self._sizes[place] <= characters + 4:
                return place
        return int(self._sizes.argmin())


def _rarity(inks: list[Ink]) -> NDArray[np.float64]:
    counts = np.zeros(256)
    for ink in inks:
        np.add.at(counts, np.frombuffer(ink.text.encode(), np.uint8), 1)
    rarest = np.array([counts[list(ink.text.encode())].min() for ink in inks])
    return np.asarray(np.minimum((counts.max() / rarest) ** _RARITY_POWER, _MOST_OFTEN))


def join(left: Ink, right: Ink, gap: float) -> Ink:
    """Two pieces of one writer on one baseline, `gap` units and a space apart."""
    end = left.offsets[:, :2].sum(0)
    offsets = right.offsets.copy()
    offsets[0, :2] += np.array([left.advance + gap, 0.0], np.float32) - end
    return Ink(
        f"{left.text} {right.text}",
        np.concatenate([left.offsets, offsets]),
        left.advance + gap + right.advance,
        left.writer,
        left.source,
    )


def with_end(ink: Ink, gap: float) -> NDArray[np.float32]:
    """The offsets `(N + 1, 3)` with one move more, to where a next word would begin.

    It is what a network learns to emit when the text is over; nothing of it is on the paper.
    """
    x, y = ink.offsets[:, :2].sum(0)
    last = np.array([[ink.advance + gap - x, -y, 1.0]], np.float32)
    return np.concatenate([ink.offsets, last])


def collate(inks: list[Ink], gaps: NDArray[np.float64]) -> PenBatch:
    """Rows of different lengths as one batch."""
    rows = [with_end(ink, gap) for ink, gap in zip(inks, gaps, strict=True)]
    texts = [encode(ink.text) for ink in inks]
    points = np.zeros((max(map(len, rows)), len(rows), POINT), np.float32)
    counts = np.zeros(points.shape[:2], np.float32)
    symbols = np.full((len(rows), max(map(len, texts)) + 1), END, np.int64)
    for i, (row, text) in enumerate(zip(rows, texts, strict=True)):
        points[: len(row), i] = row
        counts[: len(row), i] = 1
        symbols[i, : len(text)] = text
    length = torch.tensor([len(text) for text in texts])
    return PenBatch(
        torch.from_numpy(points), torch.from_numpy(symbols), length, torch.from_numpy(counts)
    )
