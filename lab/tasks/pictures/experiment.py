"""The task `pictures`: a small convolutional network, normalised over all units or per channel."""

from pathlib import Path

from lab.classify import ClassificationExperiment
from lab.tasks.digits.data import Digits, read_digits
from models.convolution import ConvolutionalNetwork, ConvolutionConfig
from training.config import Recipe


class PicturesExperiment(ClassificationExperiment[Digits]):
    """Three convolutions on MNIST, which `digits` reads."""

    name = "pictures"
    title = "pictures by convolution"
    paper = "section 6.7"
    claim = "layer norm is better than no normalisation, and batch norm is better than both"
    norms = ("layer", "channels", "batch", "weight", "none")
    config = ConvolutionConfig
    port = "picture"

    def data(self, recipe: Recipe, source: Path | None) -> Digits:
        return read_digits(source, recipe.data.validation_fraction).colored()

    def network(self, config: ConvolutionConfig, data: Digits) -> ConvolutionalNetwork:
        return ConvolutionalNetwork(config)


EXPERIMENT = PicturesExperiment()
