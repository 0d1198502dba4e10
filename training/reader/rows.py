"""Rows of ink a reader learns from: a writer's line, made a little different each time it is seen,
and cut as the strokes of a caller are.

Shapes: n points of a stroke, P numbers of a piece, T pieces of the longest row of a batch with its
rests, B rows, U symbols of the longest text.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from contract.alphabets import encode
from contract.pieces import PIECE, RESTS, Pieces, cut
from contract.reader import BLANK
from contract.strokes import UNITS_OF_SIZE, Points, size_of
from training.ink.prepare import Ink

# By how much a hand is varied: standard deviations of its lean, of the logarithms of its width and
# of its size, of the height of its baseline in units, and of every point in units.
_LEAN, _WIDTH, _SIZE, _HEIGHT, _TREMOR = 0.15, 0.12, 0.18, 0.5, 0.06


class ReadBatch(NamedTuple):
    """Rows side by side: `pieces (T, B, P)` with a rest before each and those after it, how many
    steps count `lengths (B,)`, `symbols (B, U)` and how many of them count, `counts (B,)`."""

    pieces: Tensor
    lengths: Tensor
    symbols: Tensor
    counts: Tensor


def strokes_of(ink: Ink) -> list[Points]:
    """The strokes `(n, 2)` that the offsets of prepared ink draw."""
    points = ink.offsets[:, :2].cumsum(0, dtype=np.float64)
    ends = np.flatnonzero(ink.offsets[:, 2] > 0) + 1
    return [stroke for stroke in np.split(points, ends) if len(stroke)]


def pieces_of(
    ink: Ink, generator: np.random.Generator | None = None, *, reordered: bool = False
) -> Pieces:
    """A row cut into pieces, of a hand that is varied if there is a generator; `reordered` as of
    `cut`.

    Prepared ink is level and on its baseline already; a row gets the size of a line of its own.
    """
    strokes = strokes_of(ink)
    points = np.concatenate(strokes)
    scale = UNITS_OF_SIZE / size_of(points)
    turn, height = np.eye(2) * scale, 0.0
    if generator is not None:
        size = scale * np.exp(generator.normal(0, _SIZE))
        width = size * np.exp(generator.normal(0, _WIDTH))
        turn = np.array([[width, 0.0], [size * generator.normal(0, _LEAN), size]])
        height = generator.normal(0, _HEIGHT)
        points = points + generator.normal(0, _TREMOR, points.shape)
    ends = np.cumsum([len(stroke) for stroke in strokes])[:-1]
    return cut(np.split(points @ turn + (0.0, height), ends), reordered=reordered)


def collate(rows: list[Pieces], texts: list[str]) -> ReadBatch:
    """Rows of different lengths as one batch."""
    encoded = [encode(text) for text in texts]
    lengths = [1 + len(row) + RESTS for row in rows]
    pieces = np.zeros((max(lengths), len(rows), PIECE), np.float32)
    symbols = np.full((len(rows), max(map(len, encoded))), BLANK, np.int64)
    for i, (row, text) in enumerate(zip(rows, encoded, strict=True)):
        pieces[1 : 1 + len(row), i] = row
        symbols[i, : len(text)] = text
    return ReadBatch(
        torch.from_numpy(pieces),
        torch.tensor(lengths),
        torch.from_numpy(symbols),
        torch.tensor([len(text) for text in encoded]),
    )
