"""What is trained: a task gives the training loop its model, batches, loss and validation.

Shapes: T time, B batch.
"""

from typing import Protocol, runtime_checkable

from torch import Tensor, nn

from models.cells import State

Batch = tuple[Tensor, ...]


class Diverged(ValueError):
    """A validation whose loss is no number."""


class Task(Protocol):
    """Everything the loop needs to know. `batch` is a function of the update alone, so a resumed
    run sees what an uninterrupted one would have seen."""

    updates_per_epoch: int

    @property
    def units_per_sequence(self) -> float | None:
        """From nats per unit to nats per sequence, where data comes in sequences; None if not."""
        ...

    @property
    def model(self) -> nn.Module:
        """What is trained."""
        ...

    def batch(self, update: int) -> tuple[Batch, bool]:
        """The batch of an update, and whether the recurrent state starts anew with it."""
        ...

    def initial_state(self) -> State:
        """The state of all rows of a batch at the start of a stream."""
        ...

    def loss(self, batch: Batch, state: State) -> tuple[Tensor, State]:
        """Mean loss in nats per unit, as `TrainingKind.unit` has it, and the state to carry on."""
        ...

    def validate(self) -> float:
        """Nats per unit over the validation data, dropout off. May raise `Diverged`."""
        ...


@runtime_checkable
class Calibrates(Protocol):
    """A task whose model has logits."""

    def calibrate(self) -> float:
        """Divide the logits by the temperature at which the validation data are likeliest, dropout
        off, and return it."""
        ...
