"""Rows of a writer's ink as a training task, whatever is learned from them: drawn anew for every
few updates, sorted by length, each from the zero state.

Shapes: B rows. A batch ends with its counts `(..., B)`: how much of what the loss is a mean over
each row has. Of its tensors the integers have their rows first, and the others second.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor, distributed, nn

from models.cells import State
from training.group import among_others
from training.ink.compose import Rows
from training.ink.corpus import has_lines
from training.ink.prepare import Ink
from training.task import Batch, Diverged

# Rows are drawn for so many updates at once and sorted, so that those of a batch are alike in
# length and little of it is padding.
_POOL_UPDATES = 8
_SHORTEST = 1  # characters
_VALIDATION_ROWS, _VALIDATION_BATCH = 256, 64
_VALIDATION_CHARACTERS = 20


class RowModel(Protocol):
    """What a row can be learned by: a network with a state."""

    def initial_state(self, batch: int) -> State:
        """The state of so many rows before the first step."""
        ...

    def parameters(self) -> Iterator[nn.Parameter]:
        """As `nn.Module` has it, and so are the two below."""
        ...

    def train(self) -> Any: ...

    def eval(self) -> Any: ...


M = TypeVar("M", bound=RowModel)


@dataclass(frozen=True, slots=True)
class Growth:
    """The longest text of a row, in characters: at first, and after so many epochs."""

    first: int
    last: int
    epochs: float


@dataclass
class RowTask(ABC, Generic[M]):
    """An epoch is as much as the training lines have of what the loss is a mean over.

    In data-parallel training process `rank` of `world` takes every `world`-th row.
    """

    growth: ClassVar[Growth]
    amount_per_character: ClassVar[float]

    model: M
    train_inks: list[Ink]
    validation_inks: list[Ink]
    batch_size: int
    seed: int
    rank: int = 0
    world: int = 1
    growing: bool = True
    marked: float = 0.0
    figured: float = 0.0
    varied: float = 0.0
    reordered: float = 0.0
    own: float = 0.0

    def __post_init__(self) -> None:
        for inks, what in ((self.train_inks, "training"), (self.validation_inks, "validation")):
            if not has_lines(inks):
                raise ValueError(f"no lines of ink are left for {what}")
        mean_row = self.amount_per_character * (_SHORTEST + self.growth.last) / 2
        amount = self.amount(self.train_inks)
        self.updates_per_epoch = max(1, round(amount / (self.batch_size * mean_row)))
        self._rows = Rows(self.train_inks, self.marked, self.figured, self.own)
        self._pool: list[Batch] = []
        self._pool_number = -1
        self._validation = self.rows_of(self.validation_inks)

    @staticmethod
    @abstractmethod
    def amount(inks: list[Ink]) -> int:
        """How much lines have of what the loss is a mean over."""

    @abstractmethod
    def collated(self, inks: list[Ink], generator: np.random.Generator | None) -> Batch:
        """Rows as one batch: made a little different by a generator, as they are without."""

    @abstractmethod
    def losses(self, batch: Batch, state: State) -> tuple[Tensor, State]:
        """Nats `(..., B)` of all that counts in the rows, and the state after."""

    @property
    def units_per_sequence(self) -> float:
        """From nats per unit to nats per sequence, as the literature reports them."""
        counts = [batch[-1] for batch in self._validation]
        return sum(c.sum().item() for c in counts) / sum(c.shape[-1] for c in counts)

    def batch(self, update: int) -> tuple[Batch, bool]:
        number, place = divmod(update, _POOL_UPDATES)
        if number != self._pool_number:
            self._pool = self._draw_pool(number)
            self._pool_number = number
        return self._placed(self._mine(tensor) for tensor in self._pool[place]), True

    def initial_state(self) -> State:
        return self.model.initial_state(len(range(self.rank, self.batch_size, self.world)))

    def loss(self, batch: Batch, state: State) -> tuple[Tensor, State]:
        nats, state = self.losses(batch, state)
        count = batch[-1].sum().to(nats.dtype)
        if self.world > 1:
            # Gradients are averaged over processes, whose rows differ in length.
            with among_others():
                distributed.all_reduce(count)
            count = count / self.world
        return nats.sum() / count, state

    def validate(self) -> float:
        loss = self.measure(self._validation)
        if not math.isfinite(loss):
            raise Diverged("the validation loss is not finite; lower the learning rate")
        return loss

    @torch.no_grad()
    def measure(self, batches: list[Batch]) -> float:
        """The mean loss in nats over some rows, whatever they are."""
        self.model.eval()
        total = count = 0.0
        for batch in batches:
            counts = batch[-1]
            nats, _ = self.losses(batch, self.model.initial_state(counts.shape[-1]))
            total, count = total + nats.sum().item(), count + counts.sum().item()
        self.model.train()
        return total / count

    def rows_of(self, inks: list[Ink]) -> list[Batch]:
        """The same rows each time, of lines that are not learned from, as they were written."""
        source = Rows(inks, self.marked, self.figured)
        wanted = np.full(_VALIDATION_ROWS, _VALIDATION_CHARACTERS)
        batches = _drawn(source, wanted, _VALIDATION_BATCH, np.random.default_rng(0))
        return [self._placed(self.collated(batch, None)) for batch in batches]

    def _draw_pool(self, number: int) -> list[Batch]:
        generator = np.random.default_rng([self.seed, number])
        epochs = number * _POOL_UPDATES / (self.growth.epochs * self.updates_per_epoch)
        more = (min(1.0, epochs) if self.growing else 1.0) * (self.growth.last - self.growth.first)
        longest = round(self.growth.first + more)
        wanted = generator.integers(_SHORTEST, longest + 1, _POOL_UPDATES * self.batch_size)
        batches = _drawn(self._rows, wanted, self.batch_size, generator)
        order = generator.permutation(len(batches))
        return [self.collated(batches[i], generator) for i in order]

    def _mine(self, tensor: Tensor) -> Tensor:
        rows_first = tensor.dtype == torch.int64
        return tensor[self.rank :: self.world] if rows_first else tensor[:, self.rank :: self.world]

    def _placed(self, tensors: Iterator[Tensor] | Batch) -> Batch:
        device = next(self.model.parameters()).device
        return tuple(tensor.to(device) for tensor in tensors)


def _drawn(
    source: Rows, wanted: np.ndarray, batch_size: int, generator: np.random.Generator
) -> list[list[Ink]]:
    """Rows of about so many characters each, in batches of rows that are alike in length."""
    rows = [source.draw(int(characters), generator) for characters in wanted]
    rows.sort(key=lambda ink: len(ink.offsets))
    return [rows[i : i + batch_size] for i in range(0, len(rows), batch_size)]
