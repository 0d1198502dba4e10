"""DRAW as a task of the training loop: binarised digits, their order and noise by seed and update.

Shapes: N pictures, T steps, B rows, P pixels, Z latent.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from lab.epochs import Epochs, evaluating, generator_of
from lab.experiment import Figures, Metric
from lab.tasks.draw.model import Bound, Draw
from models.cells import State
from training.task import Batch

NATS = Metric(name="nats", label="validation bound, nats")
METRICS = (
    NATS,
    Metric(name="reconstruction", label="reconstruction, nats", plotted=False),
    Metric(name="divergence", label="KL divergence, nats", plotted=False),
)
_ROWS_AT_ONCE = 500
_NOISE_OF_FIGURES = 2015


@dataclass(frozen=True, slots=True)
class Binary:
    """Pictures of 0 and 1, `(N, P)`."""

    train: Tensor
    validation: Tensor
    test: Tensor


@dataclass
class DrawTask(Epochs):
    """The network learns the evidence bound, in nats a picture; one sample of it a row."""

    model: Draw
    data: Binary
    rows: int
    seed: int

    @property
    def examples(self) -> int:
        return len(self.data.train)

    def batch(self, update: int) -> tuple[Batch, bool]:
        place = divmod(update, self.updates_per_epoch)
        noise = self.noise(self.rows, generator_of(self.seed, *place))
        return (self.data.train[self.drawn(update)], noise), True

    def noise(self, rows: int, generator: torch.Generator) -> Tensor:
        """Standard normal, `(T, B, Z)`."""
        config = self.model.config
        return torch.randn((config.steps, rows, config.latent), generator=generator)

    def loss(self, batch: Batch, state: State) -> tuple[Tensor, State]:
        bound: Bound = self.model(*batch)
        return (bound.reconstruction + bound.divergence).mean(), state

    def validate(self) -> float:
        self.figures = self.measure(self.data.validation)
        return self.figures["nats"]

    def test(self) -> Figures:
        return self.measure(self.data.test)

    def measure(self, pictures: Tensor) -> Figures:
        """The bound and its two terms, nats a picture, in evaluation mode; the noise is always the
        same. NaN where training diverged."""
        generator = torch.Generator().manual_seed(_NOISE_OF_FIGURES)
        totals = torch.zeros(2, dtype=torch.float64)
        with evaluating(self.model):
            for part in pictures.split(_ROWS_AT_ONCE):
                bound: Bound = self.model(part, self.noise(len(part), generator))
                totals += torch.stack(list(bound)).double().sum(-1)
        reconstruction, divergence = (totals / len(pictures)).tolist()
        found = {"reconstruction": reconstruction, "divergence": divergence}
        found["nats"] = reconstruction + divergence
        return {name: value if math.isfinite(value) else math.nan for name, value in found.items()}
