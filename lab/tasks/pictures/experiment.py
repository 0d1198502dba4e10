"""The task `pictures`: a small convolutional network, normalised over all units or per channel."""

from pathlib import Path
from typing import Any

from lab.classify import ERROR, NATS, Classification
from lab.experiment import Experiment, Part
from lab.tasks.digits.data import Digits
from lab.tasks.pictures.data import read_pictures
from lab.tasks.pictures.model import classified, step
from models.convolution import ConvolutionalNetwork, ConvolutionConfig
from training.config import Recipe

_EXPORTED_ROWS = 64


class PicturesExperiment(Experiment[Digits]):
    """Three convolutions on MNIST."""

    name = "pictures"
    title = "pictures by convolution"
    paper = "section 6.7"
    claim = "layer norm is better than no normalisation, and batch norm is better than both"
    norms = ("layer", "channels", "batch", "weight", "none")
    metrics = (NATS, ERROR)
    config = ConvolutionConfig

    def data(self, recipe: Recipe, source: Path | None) -> Digits:
        return read_pictures(source, recipe.data.validation_fraction)

    def facts(self, data: Digits) -> dict[str, Any]:
        return data.facts()

    def task(self, recipe: Recipe, data: Digits) -> Classification:
        return Classification(
            ConvolutionalNetwork(recipe.model),
            data.train,
            data.validation,
            data.test,
            recipe.batch.rows,
            recipe.training.seed,
        )

    def parts(self, task: Classification) -> tuple[Part, ...]:
        inputs = {"picture": task.held_out.inputs[:_EXPORTED_ROWS]}
        return (Part(name="model", step=step, trained=classified, inputs=inputs),)


EXPERIMENT = PicturesExperiment()
