"""Handwriting as a training task: whole rows of ink, each from the zero state.

Shapes: T points, B rows.
"""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from contract.alphabets import END, WINDOW_SYMBOLS
from contract.strokes import POINTS_PER_CHARACTER
from models.cells import State
from models.handwriting import HandwritingModel, Text
from models.mixture import log_density
from training.ink.compose import GAP
from training.ink.corpus import PenBatch, collate
from training.ink.prepare import Ink
from training.ink.rows import Growth, RowTask
from training.task import Batch

_ALIKE = 64  # points, of which padded rows are a multiple


class PenTask(RowTask[HandwritingModel]):
    """Next-point prediction; an epoch is as many points as the training lines have."""

    # Texts start short, because the window finds its way along a word before it can along a line.
    growth = Growth(first=8, last=40, epochs=1.5)
    amount_per_character = POINTS_PER_CHARACTER
    capturable = True

    @staticmethod
    def amount(inks: list[Ink]) -> int:
        return sum(len(ink.offsets) for ink in inks)

    def collated(self, inks: list[Ink], generator: np.random.Generator | None) -> PenBatch:
        if generator is None:
            return collate(inks, np.full(len(inks), np.mean(GAP)))
        gaps = generator.uniform(*GAP, len(inks))
        if self.varied:
            inks = [vary(ink, *generator.normal(0, self.varied, 3)) for ink in inks]
        return collate(inks, gaps)

    def padded(self, batch: Batch) -> Batch:
        points, symbols, length, counts = batch
        after = -len(points) % _ALIKE
        points, counts = F.pad(points, (0, 0, 0, 0, 0, after)), F.pad(counts, (0, 0, 0, after))
        symbols = F.pad(symbols, (0, WINDOW_SYMBOLS - symbols.shape[1]), value=END)
        return PenBatch(points, symbols, length, counts)

    def losses(self, batch: Batch, state: State) -> tuple[Tensor, State]:
        return point_losses(self.model, PenBatch(*batch), state)


def vary(ink: Ink, slant: float, width: float, height: float) -> Ink:
    """A row slanted by so much a unit of height, and made wider and higher by these logarithms. The
    baseline stays where it is."""
    change = np.array([[np.exp(width), slant], [0, np.exp(height)]])
    moves = np.column_stack([ink.offsets[:, :2] @ change.T, ink.offsets[:, 2]])
    advance = float(moves[:, 0].cumsum().max())
    return replace(ink, offsets=moves.astype(np.float32), advance=advance)


def point_losses(model: HandwritingModel, batch: PenBatch, state: State) -> tuple[Tensor, State]:
    """Nats of every point `(T, B)`, 0 where a row has none, and the state after."""
    inputs = torch.cat([torch.zeros_like(batch.points[:1]), batch.points[:-1]])
    raw, state = model(inputs, Text(batch.symbols, batch.length), state)
    return -log_density(raw, batch.points) * batch.counts, state
