"""Waves as a kind that can be trained: sines of random phase and pitch, made by a seed."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from models.cells import State
from tests.kinds.waves.model import WaveConfig, WaveModel, gaussian
from training.config import Place, Recipe
from training.task import Batch, Task


def sines(seed: int, rows: int, steps: int) -> Tensor:
    """`(T, B, 1)`."""
    random = np.random.default_rng(seed)
    pitch, phase = random.uniform(0.2, 0.6, rows), random.uniform(0, 2 * np.pi, rows)
    values = np.sin(np.arange(steps)[:, None] * pitch + phase) + random.normal(
        0, 0.05, (steps, rows)
    )
    return torch.from_numpy(values[..., None].astype(np.float32))


@dataclass
class WaveTask:
    """The next value from those before, every row from the zero state."""

    model: WaveModel
    rows: int
    steps: int
    seed: int
    updates_per_epoch: int = 50
    units_per_sequence: ClassVar[None] = None

    def batch(self, update: int) -> tuple[Batch, bool]:
        return (sines(self.seed * 10_000 + update, self.rows, self.steps),), True

    def initial_state(self) -> State:
        return self.model.initial_state(self.rows)

    def loss(self, batch: Batch, state: State) -> tuple[Tensor, State]:
        (values,) = batch
        inputs = torch.cat([torch.zeros_like(values[:1]), values[:-1]])
        raw, state = self.model(inputs, state)
        mean, log_sigma = gaussian(raw)
        distance = (values - mean) * torch.exp(-log_sigma)
        return (log_sigma + 0.5 * distance**2 + 0.5 * math.log(2 * math.pi)).mean(), state

    @torch.no_grad()
    def validate(self) -> float:
        loss, _ = self.loss((sines(1, 16, self.steps),), self.model.initial_state(16))
        return loss.item()


class WaveTraining:
    """The object of the training stage."""

    name = "waves"
    unit = "value"
    calibrates = False
    options = frozenset({"steps"})
    config = WaveConfig

    def model(self, hyperparameters: dict[str, Any]) -> WaveModel:
        return WaveModel(WaveConfig(**hyperparameters))

    def task(self, recipe: Recipe, source: str, place: Place) -> tuple[Task, dict[str, Any]]:
        task = WaveTask(
            WaveModel(recipe.model), recipe.batch.rows, recipe.batch.steps, recipe.training.seed
        )
        return task, {"name": source, "sha256": "made from a seed"}
