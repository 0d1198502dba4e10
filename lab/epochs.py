"""Rows of a batch by seed and update: what the laboratory's own tasks of the training loop share.

Shapes: B rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import torch
from torch import Tensor, nn

from lab.experiment import Figures
from models.cells import State


class Epochs(ABC):
    """Every epoch has an order of its own, by the seed; what does not fill a batch is left out.

    A row is an example from the zero state. Subclasses are dataclasses with `rows` and `seed`.
    """

    rows: int
    seed: int
    units_per_sequence: ClassVar[None] = None

    def __post_init__(self) -> None:
        self.figures: Figures = {}
        self.updates_per_epoch = self.examples // self.rows
        if not self.updates_per_epoch:
            raise ValueError(f"batch.rows is {self.rows}; it must be 1 to {self.examples}")
        self._epoch, self._order = -1, torch.empty(0)

    @property
    @abstractmethod
    def examples(self) -> int:
        """How many there are to learn from."""

    def order(self, generator: torch.Generator) -> Tensor:
        """The places of an epoch's examples."""
        return torch.randperm(self.examples, generator=generator)

    def drawn(self, update: int) -> Tensor:
        """The places of an update's examples, `(B,)`."""
        epoch, index = divmod(update, self.updates_per_epoch)
        if epoch != self._epoch:
            self._order, self._epoch = self.order(generator_of(self.seed, epoch)), epoch
        return self._order[index * self.rows : (index + 1) * self.rows]

    def initial_state(self) -> State:
        """Nothing: every row begins anew."""
        return ()


def generator_of(*numbers: int) -> torch.Generator:
    """A generator that some numbers decide."""
    return torch.Generator().manual_seed(hash(numbers) & 0x7FFFFFFF)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients; afterwards the mode it was in."""
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)
