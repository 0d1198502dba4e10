"""The task `digits`: a permutation-invariant network at batches of 128 and of 4."""

from pathlib import Path

from lab.classify import ClassificationExperiment
from lab.tasks.digits.data import Digits, read_digits
from models.mlp import MLP, MLPConfig
from training.config import Recipe


class DigitsExperiment(ClassificationExperiment[Digits]):
    """784-1000-1000-10 on MNIST."""

    name = "digits"
    title = "digits without geometry, batches of 128 and 4"
    paper = "section 6.6, figure 6"
    claim = "layer norm learns faster than batch norm, and hardly minds a batch of 4"
    config = MLPConfig
    port = "pixels"

    def data(self, recipe: Recipe, source: Path | None) -> Digits:
        return read_digits(source, recipe.data.validation_fraction).flat()

    def network(self, config: MLPConfig, data: Digits) -> MLP:
        return MLP(config)


EXPERIMENT = DigitsExperiment()
