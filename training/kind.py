"""What training has to know of a kind of model."""

from typing import Any, Protocol

from torch import nn

from training.config import Place, Recipe
from training.task import Task


class TrainingKind(Protocol):
    """One kind of model, from a recipe's `[model]` table to a task on data."""

    @property
    def name(self) -> str:
        """The kind, as manifests and recipes spell it."""
        ...

    @property
    def unit(self) -> str:
        """What the loss is a mean over: it is in nats per unit."""
        ...

    @property
    def calibrates(self) -> bool:
        """Whether its tasks are `training.task.Calibrates`."""
        ...

    @property
    def options(self) -> frozenset[str]:
        """Which of the options of `training.config.DataConfig` and `BatchConfig` say something of
        its data and its batches."""
        ...

    @property
    def config(self) -> type:
        """The class of the `[model]` table."""
        ...

    def model(self, hyperparameters: dict[str, Any]) -> nn.Module:
        """The model of a run as it is served: fresh weights, every dropout rate 0."""
        ...

    def task(self, recipe: Recipe, source: str, place: Place) -> tuple[Task, dict[str, Any]]:
        """What is trained, and the facts of its data: `name`, `sha256` and how much there is.

        Raises `ValueError` for data that is missing or too small.
        """
        ...
