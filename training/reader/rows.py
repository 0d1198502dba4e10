"""Rows of ink a reader learns from: a writer's line, made a little different each time it is seen,
and cut as the strokes of a caller are.

Shapes: n points of a stroke, N pieces of a row, T of the longest of a batch with its rests, B rows,
U symbols of the longest text.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from contract.alphabets import encode
from contract.pieces import PIECE, RESTS, Pieces, cut
from contract.reader import BLANK
from contract.strokes import UNITS_OF_SIZE, Points
from training.ink.prepare import Ink

# By how much a hand is varied: standard deviations of its lean, of the logarithms of its width and
# of its size, of the height of its baseline in units, and of every point in units.
_LEAN, _WIDTH, _SIZE, _HEIGHT, _TREMOR = 0.15, 0.12, 0.18, 0.5, 0.06
# What bends it: so many waves in each direction, of lengths from a letter to some words in units,
# level but for a standard deviation in radians; and how far a stroke is out of its place, in units
# where space is stretched by 1.
_WAVES, _WAVE_LENGTHS, _WAVE_ANGLE = 2, (8.0, 40.0), 0.5
_MISPLACED = 1.5


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
    ink: Ink,
    generator: np.random.Generator | None = None,
    *,
    reordered: bool = False,
    bent: float = 0.0,
) -> Pieces:
    """A row cut into pieces, of a hand that is varied if there is a generator, and `bent` as of
    `_bend`; `reordered` as of `cut`.

    Prepared ink is level and on its baseline already; a row gets the size of a line of its own.
    """
    strokes = strokes_of(ink)
    points = np.concatenate(strokes)
    size = np.abs(points[:, 1] - np.median(points[:, 1])).mean()
    scale = UNITS_OF_SIZE / (size if size > 0 else np.ptp(points[:, 0]))
    turn, height = np.eye(2) * scale, 0.0
    if generator is not None:
        size = scale * np.exp(generator.normal(0, _SIZE))
        width = size * np.exp(generator.normal(0, _WIDTH))
        turn = np.array([[width, 0.0], [size * generator.normal(0, _LEAN), size]])
        height = generator.normal(0, _HEIGHT)
        points = points + generator.normal(0, _TREMOR, points.shape)
    sizes = [len(stroke) for stroke in strokes]
    points = points @ turn + (0.0, height)
    if generator is not None and bent:
        points = _bend(points, sizes, bent, generator)
    return cut(np.split(points, np.cumsum(sizes)[:-1]), reordered=reordered)


def _bend(
    points: Points, sizes: list[int], amount: float, generator: np.random.Generator
) -> Points:
    """Points `(n, 2)` of strokes of these sizes on paper that waves stretch by `amount`, as a
    standard deviation, in both directions; every stroke a little out of its place (elastic
    distortions as of Simard, Steinkraus and Platt 2003, a few waves in place of a random field).
    """
    bent = points.copy()
    for axis in (0, 1):
        for _ in range(_WAVES):
            length = np.exp(generator.uniform(*np.log(_WAVE_LENGTHS)))
            angle = generator.normal(0, _WAVE_ANGLE)
            along = points @ (np.cos(angle), np.sin(angle)) * (2 * np.pi / length)
            height = generator.normal(0, amount) * length / (2 * np.pi)
            bent[:, axis] += height * np.sin(along + generator.uniform(0, 2 * np.pi))
    places = generator.normal(0, amount * _MISPLACED, (len(sizes), 2))
    return bent + places.repeat(sizes, axis=0)


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
