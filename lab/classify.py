"""Classification as a task of the training loop: examples drawn anew every epoch, error and nats.

Shapes: N examples, B rows, C classes.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lab.experiment import Figures, Metric
from models.cells import State
from training.task import Batch

ERROR = Metric(name="error", label="validation error, %")
NATS = Metric(name="nats", label="validation nats")
_ROWS_AT_ONCE = 500


class Examples(NamedTuple):
    """Inputs `(N, ...)` and their classes `(N,)`."""

    inputs: Tensor
    classes: Tensor


@dataclass
class Classification:
    """A model from inputs `(B, ...)` to logits `(B, C)`, learned by cross-entropy.

    Every epoch has an order of its own, by the seed; what does not fill a batch is left out.
    """

    model: nn.Module
    train: Examples
    validation: Examples
    held_out: Examples
    rows: int
    seed: int
    figures: Figures = field(default_factory=dict)
    steps_per_sequence: ClassVar[None] = None

    def __post_init__(self) -> None:
        self.updates_per_epoch = len(self.train.classes) // self.rows
        if not self.updates_per_epoch:
            raise ValueError(f"batch.rows is {self.rows}; there are {len(self.train.classes)}")
        self._epoch, self._order = -1, torch.empty(0)

    def batch(self, update: int) -> tuple[Batch, bool]:
        epoch, index = divmod(update, self.updates_per_epoch)
        if epoch != self._epoch:
            generator = torch.Generator().manual_seed(hash((self.seed, epoch)) & 0x7FFFFFFF)
            self._order = torch.randperm(len(self.train.classes), generator=generator)
            self._epoch = epoch
        rows = self._order[index * self.rows : (index + 1) * self.rows]
        return (self.train.inputs[rows], self.train.classes[rows]), True

    def initial_state(self) -> State:
        return ()

    def loss(self, batch: Batch, state: State) -> tuple[Tensor, State]:
        inputs, classes = batch
        return F.cross_entropy(self.model(inputs), classes), state

    def validate(self) -> float:
        self.figures = self.measure(self.validation)
        return self.figures["nats"]

    def test(self) -> Figures:
        return self.measure(self.held_out)

    @torch.no_grad()
    def measure(self, examples: Examples) -> Figures:
        """Error in percent and mean nats of the true class, in evaluation mode."""
        self.model.eval()
        wrong = nats = 0.0
        parts = zip(*(t.split(_ROWS_AT_ONCE) for t in examples), strict=True)
        for inputs, classes in parts:
            logits = self.model(inputs)
            wrong += int((logits.argmax(-1) != classes).sum())
            nats += F.cross_entropy(logits, classes, reduction="sum").item()
        self.model.train()
        total = len(examples.classes)
        return {
            "error": 100 * wrong / total,
            "nats": nats / total if math.isfinite(nats) else math.nan,
        }
