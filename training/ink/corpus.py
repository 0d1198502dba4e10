"""Ink to train on: a corpus of prepared lines, and batches of the rows that come of it.

Shapes: T points of the longest row, B rows, U symbols of the longest text, N points of a corpus.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from contract.alphabets import END, encode
from contract.files import printable, replacing
from models.handwriting import POINT
from training.files import MissingData, unpacking
from training.ink.line import Tally
from training.ink.prepare import Ink, is_own

# Of every ink, in a file: in the order of the fields of `Ink`.
_SAVED = ("texts", "offsets", "advances", "writers", "sources", "isolated")


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
        """Ink to train on and to validate: a writer is in one or the other, by a hash. Where all
        lines would be in one, as those of one writer are, what a writer wrote is in one or the
        other. What a pen wrote is trained on alone."""
        parts = self._split(validation_fraction, lambda ink: ink.writer)
        if not all(map(has_lines, parts)):
            parts = self._split(validation_fraction, lambda ink: f"{ink.writer}\0{ink.text}")
        return parts

    def _split(
        self, validation_fraction: float, name: Callable[[Ink], str]
    ) -> tuple[list[Ink], list[Ink]]:
        parts: tuple[list[Ink], list[Ink]] = ([], [])
        for ink in self.inks:
            parts[is_held_out(name(ink), validation_fraction) and not is_own(ink)].append(ink)
        return parts

    def save(self, path: Path) -> None:
        """Write the corpus as one compressed file, or leave that which is there as it was."""
        with replacing(path) as temporary, temporary.open("wb") as opened:
            np.savez_compressed(
                opened,
                name=self.name,
                texts=[ink.text for ink in self.inks],
                writers=[ink.writer for ink in self.inks],
                sources=[ink.source for ink in self.inks],
                isolated=[ink.isolated for ink in self.inks],
                advances=[ink.advance for ink in self.inks],
                lengths=[len(ink.offsets) for ink in self.inks],
                offsets=np.concatenate([ink.offsets for ink in self.inks]),
            )


def is_held_out(name: str, fraction: float) -> bool:
    """Whether a writer, or a writer's text, is one of the fraction that is validated on: by a hash
    of the name alone."""
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
    return number < fraction * 2**64


def read_pens(source: Path, tally: Tally, marks: bool = False, figures: bool = False) -> PenCorpus:
    """A folder of pen data, `synthetic`, or a corpus that was saved; with isolated characters where
    a folder has them. Raises `ValueError`."""
    from training.ink.sources import SYNTHETIC, read_inks

    if source.suffix == ".npz":
        corpus = _load(source)
        tally.kept += len(corpus.inks)
        return corpus
    if source.is_file():
        raise ValueError(
            f"{source} is a file; pen data is a folder, a corpus that was saved, which ends with "
            f".npz, or the word {SYNTHETIC}"
        )
    return PenCorpus(printable(source.resolve().name), read_inks(source, tally, marks, figures))


def _load(path: Path) -> PenCorpus:
    if not path.is_file():
        raise MissingData(f"{path} is no file; it must be a corpus that was saved")
    try:
        # Of a file that is none, `np.load` says how to load it unsafely.
        with unpacking(path), path.open("rb") as opened, np.lib.npyio.NpzFile(opened) as file:
            content: dict[str, Any] = {name: file[name] for name in (*_SAVED, "lengths", "name")}
        _check(content)
    except (KeyError, ValueError) as error:
        raise ValueError(f"{path} is no corpus that was saved whole: {error}") from error
    ends = content["lengths"].cumsum()
    content["offsets"] = np.split(content["offsets"], ends[:-1])
    columns = zip(*(content[name] for name in _SAVED), strict=True)
    inks = [Ink(str(t), o, float(a), str(w), str(s), bool(i)) for t, o, a, w, s, i in columns]
    return PenCorpus(str(content["name"]), inks)


def _check(content: dict[str, NDArray[Any]]) -> None:
    """Raise `ValueError` unless every text has its ink, and every number is one."""
    kinds = {"lengths": "iu", "offsets": "f", "advances": "f", "isolated": "b"}
    for name, array in content.items():
        if array.dtype.kind not in kinds.get(name, "U"):
            raise ValueError(f"{name} is of {array.dtype}")
    lengths, offsets = content["lengths"], content["offsets"]
    if offsets.dtype != np.float32 or offsets.shape != (lengths.sum(), POINT):
        raise ValueError(f"offsets is of {offsets.dtype} and shape {offsets.shape}")
    for name in {*_SAVED, "lengths"} - {"offsets"}:
        if content[name].shape != (len(content["texts"]),):
            raise ValueError(f"{name} has not one value for each text")
    if not (lengths >= 1).all():
        raise ValueError("a text has no points")
    if not (np.isfinite(offsets).all() and np.isfinite(content["advances"]).all()):
        raise ValueError("a number is not finite")


def has_lines(inks: list[Ink]) -> bool:
    """Whether there is a person's line: of isolated characters and a pen's lines alone no rows are
    made."""
    return not all(ink.isolated or is_own(ink) for ink in inks)


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
