"""Handwriting as a training task: whole rows of ink, each from the zero state.

Shapes: T points, B rows.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, distributed

from contract.strokes import POINTS_PER_CHARACTER
from models.cells import State
from models.handwriting import HandwritingModel, Text
from models.mixture import log_density
from training.ink.corpus import PenBatch, Rows, collate
from training.ink.prepare import Ink
from training.task import Batch

# Rows are drawn for so many updates at once and sorted, so that those of a batch are alike in
# length and little of it is padding.
_POOL_UPDATES = 8
# Texts start short, because the window finds its way along a word before it can along a line.
_SHORTEST, _FIRST_LONGEST, _LONGEST = 1, 8, 40  # characters
_GROWING_EPOCHS = 1.5
_VALIDATION_ROWS = 256
_VALIDATION_CHARACTERS = 20


@dataclass
class PenTask:
    """Next-point prediction; an epoch is as many points as the training lines have.

    In data-parallel training process `rank` of `world` takes every `world`-th row.
    """

    model: HandwritingModel
    train_inks: list[Ink]
    validation_inks: list[Ink]
    batch_size: int
    seed: int
    rank: int = 0
    world: int = 1

    def __post_init__(self) -> None:
        for inks, what in ((self.train_inks, "training"), (self.validation_inks, "validation")):
            if not inks:
                raise ValueError(f"no lines of ink are left for {what}")
        points = sum(len(ink.offsets) for ink in self.train_inks)
        mean_row = POINTS_PER_CHARACTER * (_SHORTEST + _LONGEST) / 2
        self.updates_per_epoch = max(1, round(points / (self.batch_size * mean_row)))
        self._rows = Rows(self.train_inks)
        self._pool: list[PenBatch] = []
        self._pool_number = -1
        self._validation = self.rows_of(self.validation_inks)

    def batch(self, update: int) -> tuple[Batch, bool]:
        number, place = divmod(update, _POOL_UPDATES)
        if number != self._pool_number:
            self._pool = self._draw_pool(number)
            self._pool_number = number
        mine = self._pool[place]
        return tuple(self._mine(t) for t in mine), True

    @property
    def steps_per_sequence(self) -> float:
        """From nats per point to nats per sequence, as the literature reports them."""
        counts = [batch.counts for batch in self._validation]
        rows = sum(c.shape[1] for c in counts)
        return sum(c.sum().item() for c in counts) / rows

    def initial_state(self) -> State:
        return self.model.initial_state(len(range(self.rank, self.batch_size, self.world)))

    def loss(self, batch: Batch, state: State) -> tuple[Tensor, State]:
        nats, counts, state = point_losses(self.model, PenBatch(*batch), state)
        points = counts.sum()
        if self.world > 1:
            # Gradients are averaged over processes, whose rows have different numbers of points.
            distributed.all_reduce(points)
            points = points / self.world
        return nats.sum() / points, state

    def validate(self) -> float:
        loss = self.measure(self._validation)
        if not math.isfinite(loss):
            raise ValueError("the validation loss is not finite; lower the learning rate")
        return loss

    @torch.no_grad()
    def measure(self, batches: list[PenBatch]) -> float:
        """Nats per point over some rows, whatever they are."""
        self.model.eval()
        total = count = 0.0
        for batch in batches:
            rows = batch.points.shape[1]
            nats, counts, _ = point_losses(self.model, batch, self.model.initial_state(rows))
            total, count = total + nats.sum().item(), count + counts.sum().item()
        self.model.train()
        return total / count

    def _draw_pool(self, number: int) -> list[PenBatch]:
        generator = np.random.default_rng([self.seed, number])
        grown = min(1.0, number * _POOL_UPDATES / (_GROWING_EPOCHS * self.updates_per_epoch))
        longest = round(_FIRST_LONGEST + grown * (_LONGEST - _FIRST_LONGEST))
        wanted = generator.integers(_SHORTEST, longest + 1, _POOL_UPDATES * self.batch_size)
        rows = [self._rows.draw(int(characters), generator) for characters in wanted]
        rows.sort(key=lambda ink: len(ink.offsets))
        batches = [rows[i : i + self.batch_size] for i in range(0, len(rows), self.batch_size)]
        order = generator.permutation(len(batches))
        return [collate(batches[i], generator.uniform(2.5, 5.5, self.batch_size)) for i in order]

    def rows_of(self, inks: list[Ink]) -> list[PenBatch]:
        """The same rows each time, of lines that are not learned from."""
        generator = np.random.default_rng(0)
        source = Rows(inks)
        rows = [source.draw(_VALIDATION_CHARACTERS, generator) for _ in range(_VALIDATION_ROWS)]
        rows.sort(key=lambda ink: len(ink.offsets))
        size = 64
        device = self.model.readout.weight.device
        return [
            PenBatch(*(t.to(device) for t in collate(rows[i : i + size], np.full(size, 4.0))))
            for i in range(0, len(rows), size)
        ]

    def _mine(self, tensor: Tensor) -> Tensor:
        rows_first = tensor.dim() == 1 or tensor.dtype == torch.int64
        mine = tensor[self.rank :: self.world] if rows_first else tensor[:, self.rank :: self.world]
        return mine.to(self.model.readout.weight.device)


def point_losses(
    model: HandwritingModel, batch: PenBatch, state: State
) -> tuple[Tensor, Tensor, State]:
    """Nats of every point `(T, B)`, 0 where a row has none, the counts, and the state after."""
    inputs = torch.cat([torch.zeros_like(batch.points[:1]), batch.points[:-1]])
    raw, state = model(inputs, Text(batch.symbols, batch.length), state)
    return -log_density(raw, batch.points) * batch.counts, batch.counts, state
