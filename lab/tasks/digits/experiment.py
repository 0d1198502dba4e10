"""The task `digits`: a permutation-invariant network at batches of 128 and of 4."""

from pathlib import Path
from typing import Any

from lab.classify import ERROR, NATS, Classification
from lab.experiment import Experiment, Part
from lab.tasks.digits.data import Digits, read_digits
from lab.tasks.digits.model import classified, step
from models.mlp import MLP, MLPConfig
from training.config import Recipe

_EXPORTED_ROWS = 64


class DigitsExperiment(Experiment[Digits]):
    """784-1000-1000-10 on MNIST."""

    name = "digits"
    title = "digits without geometry, batches of 128 and 4"
    paper = "section 6.6, figure 6"
    claim = "layer norm learns faster than batch norm, and hardly minds a batch of 4"
    metrics = (NATS, ERROR)
    config = MLPConfig

    def data(self, recipe: Recipe, source: Path | None) -> Digits:
        return read_digits(source, recipe.data.validation_fraction).flat()

    def facts(self, data: Digits) -> dict[str, Any]:
        return data.facts()

    def task(self, recipe: Recipe, data: Digits) -> Classification:
        return Classification(
            MLP(recipe.model),
            data.train,
            data.validation,
            data.test,
            recipe.batch.rows,
            recipe.training.seed,
        )

    def parts(self, task: Classification) -> tuple[Part, ...]:
        inputs = {"pixels": task.held_out.inputs[:_EXPORTED_ROWS]}
        return (Part(name="model", step=step, trained=classified, inputs=inputs),)


EXPERIMENT = DigitsExperiment()
