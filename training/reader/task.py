"""Reading as a training task: whole rows of ink, each from the zero state, and their texts.

Shapes: T steps, B rows, V symbols.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, distributed
from torch.nn import functional as F

from contract.reader import BLANK
from models.cells import State
from models.reader import ReaderModel, TwinModel
from training.ink.corpus import Rows
from training.ink.prepare import Ink
from training.reader.rows import ReadBatch, collate, pieces_of
from training.task import Batch

# As for a pen: rows are drawn for so many updates at once and sorted, so that little is padding.
_POOL_UPDATES = 8
# Texts start short, because where a letter is has to be found out first.
_SHORTEST, _FIRST_LONGEST, _LONGEST = 1, 6, 32  # characters
_GROWING_EPOCHS = 1.0
_VALIDATION_ROWS = 256
_VALIDATION_CHARACTERS = 20


@dataclass
class ReaderTask:
    """The text of a row from its ink; an epoch is as many characters as the training lines have.

    In data-parallel training process `rank` of `world` takes every `world`-th row.
    """

    model: ReaderModel | TwinModel
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
        characters = sum(len(ink.text) for ink in self.train_inks)
        mean_row = (_SHORTEST + _LONGEST) / 2
        self.updates_per_epoch = max(1, round(characters / (self.batch_size * mean_row)))
        self._rows = Rows(self.train_inks)
        self._pool: list[ReadBatch] = []
        self._pool_number = -1
        self._validation = self.rows_of(self.validation_inks)

    @property
    def steps_per_sequence(self) -> float:
        """From nats per character to nats per row."""
        counts = torch.cat([batch.counts for batch in self._validation])
        return counts.double().mean().item()

    def batch(self, update: int) -> tuple[Batch, bool]:
        number, place = divmod(update, _POOL_UPDATES)
        if number != self._pool_number:
            self._pool = self._draw_pool(number)
            self._pool_number = number
        whole = self._pool[place]
        rows = slice(self.rank, None, self.world)
        by_row = (tensor[rows] for tensor in whole[1:])
        return self._placed(ReadBatch(whole.pieces[:, rows], *by_row)), True

    def initial_state(self) -> State:
        return self.model.initial_state(len(range(self.rank, self.batch_size, self.world)))

    def loss(self, batch: Batch, state: State) -> tuple[Tensor, State]:
        given = ReadBatch(*batch)
        nats, state = row_losses(self.model, given, state)
        characters = given.counts.sum().to(nats.dtype)
        if self.world > 1:
            # Gradients are averaged over processes, whose rows differ in length.
            distributed.all_reduce(characters)
            characters = characters / self.world
        return nats.sum() / characters, state

    @torch.no_grad()
    def validate(self) -> float:
        self.model.eval()
        total = count = 0.0
        for batch in self._validation:
            nats, _ = row_losses(self.model, batch, self.model.initial_state(len(batch.lengths)))
            total, count = total + nats.sum().item(), count + batch.counts.sum().item()
        self.model.train()
        if not math.isfinite(total):
            raise ValueError("the validation loss is not finite; lower the learning rate")
        return total / count

    def rows_of(self, inks: list[Ink]) -> list[ReadBatch]:
        """The same rows each time, of lines that are not learned from, as they were written."""
        generator = np.random.default_rng(0)
        source = Rows(inks)
        rows = [source.draw(_VALIDATION_CHARACTERS, generator) for _ in range(_VALIDATION_ROWS)]
        rows.sort(key=lambda ink: len(ink.offsets))
        batches = [rows[i : i + 64] for i in range(0, len(rows), 64)]
        return [ReadBatch(*self._placed(_cut(batch, None))) for batch in batches]

    def _draw_pool(self, number: int) -> list[ReadBatch]:
        generator = np.random.default_rng([self.seed, number])
        grown = min(1.0, number * _POOL_UPDATES / (_GROWING_EPOCHS * self.updates_per_epoch))
        longest = round(_FIRST_LONGEST + grown * (_LONGEST - _FIRST_LONGEST))
        wanted = generator.integers(_SHORTEST, longest + 1, _POOL_UPDATES * self.batch_size)
        rows = [self._rows.draw(int(characters), generator) for characters in wanted]
        rows.sort(key=lambda ink: len(ink.offsets))
        batches = [rows[i : i + self.batch_size] for i in range(0, len(rows), self.batch_size)]
        return [_cut(batches[i], generator) for i in generator.permutation(len(batches))]

    def _placed(self, batch: ReadBatch) -> ReadBatch:
        device = self.model.readout.weight.device
        return ReadBatch(*(tensor.to(device) for tensor in batch))


def row_losses(
    model: ReaderModel | TwinModel, batch: ReadBatch, state: State
) -> tuple[Tensor, State]:
    """Nats of the text of every row `(B,)`, over all the ways its steps can say it, and the state
    after the last step. A row too short to say its text counts for nothing."""
    logits, state = model(batch.pieces, batch.lengths, state)
    nats = F.ctc_loss(
        F.log_softmax(logits, dim=-1),
        batch.symbols,
        batch.lengths,
        batch.counts,
        blank=BLANK,
        reduction="none",
        zero_infinity=True,
    )
    return nats, state


def _cut(inks: list[Ink], generator: np.random.Generator | None) -> ReadBatch:
    return collate([pieces_of(ink, generator) for ink in inks], [ink.text for ink in inks])
