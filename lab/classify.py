"""Classification as a task: divided data, error and nats, and what is exported of a classifier.

Shapes: N examples, B rows, C classes.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

from torch import Tensor, nn
from torch.nn import functional as F

from lab.epochs import Epochs, evaluating
from lab.experiment import Experiment, Figures, Metric, Named, Part
from lab.steps import RowStep
from models.cells import State
from models.generation import Port
from training.config import Recipe
from training.task import Batch

ERROR = Metric(name="error", label="validation error, %")
NATS = Metric(name="nats", label="validation nats")
_ROWS_AT_ONCE = 500


class Examples(NamedTuple):
    """Inputs `(N, ...)` and their classes `(N,)`."""

    inputs: Tensor
    classes: Tensor


@dataclass(frozen=True)
class Divided:
    """Examples to learn from, to validate and to test, and where they came from."""

    name: str
    sha256: str
    train: Examples
    validation: Examples
    test: Examples

    @property
    def parts(self) -> tuple[Examples, Examples, Examples]:
        """To learn from, to validate, to test."""
        return self.train, self.validation, self.test

    def facts(self) -> dict[str, Any]:
        """For the results."""
        names = ("train", "validation", "test")
        counts = {n: len(part.classes) for n, part in zip(names, self.parts, strict=True)}
        return {"name": self.name, "sha256": self.sha256} | counts


@dataclass
class Classification(Epochs):
    """A model from inputs `(B, ...)` to logits `(B, C)`, learned by cross-entropy."""

    model: nn.Module
    train: Examples
    validation: Examples
    held_out: Examples
    rows: int
    seed: int

    @property
    def examples(self) -> int:
        return len(self.train.classes)

    def batch(self, update: int) -> tuple[Batch, bool]:
        rows = self.drawn(update)
        return (self.train.inputs[rows], self.train.classes[rows]), True

    def loss(self, batch: Batch, state: State) -> tuple[Tensor, State]:
        inputs, classes = batch
        return F.cross_entropy(self.model(inputs), classes), state

    def validate(self) -> float:
        self.figures = self.measure(self.validation)
        return self.figures["nats"]

    def test(self) -> Figures:
        return self.measure(self.held_out)

    def measure(self, examples: Examples) -> Figures:
        """Error in percent and mean nats of the true class, in evaluation mode."""
        wrong = nats = 0.0
        with evaluating(self.model):
            for inputs, classes in zip(*(t.split(_ROWS_AT_ONCE) for t in examples), strict=True):
                logits = self.model(inputs)
                wrong += int((logits.argmax(-1) != classes).sum())
                nats += F.cross_entropy(logits, classes, reduction="sum").item()
        total = len(examples.classes)
        return {
            "error": 100 * wrong / total,
            "nats": nats / total if math.isfinite(nats) else math.nan,
        }


Data = TypeVar("Data", bound=Divided)


class ClassificationExperiment(Experiment[Data]):
    """Divided data and one network, exported whole: its `port` in, logits out."""

    metrics = (NATS, ERROR)
    port: ClassVar[str]
    exported_rows: ClassVar[int] = 64

    @abstractmethod
    def network(self, config: Any, data: Data) -> nn.Module:
        """What is trained; its last layer is called `readout`."""

    def facts(self, data: Data) -> dict[str, Any]:
        return data.facts()

    def task(self, recipe: Recipe, data: Data) -> Classification:
        model = self.network(recipe.model, data)
        return Classification(model, *data.parts, recipe.batch.rows, recipe.training.seed)

    def parts(self, task: Any) -> tuple[Part, ...]:
        return (classifier(self.port, task.held_out.inputs[: self.exported_rows]),)


def classifier(port: str, inputs: Tensor) -> Part:
    """A classifier as one graph, with some inputs `(B, ...)`."""

    def step(model: Any) -> RowStep:
        readout = model.readout
        real = readout.weight.dtype
        put = Port(port, real if inputs.is_floating_point() else inputs.dtype, inputs.shape[1:])
        return RowStep(model, put, Port("logits", real, (readout.out_features,)))

    def trained(model: Any, named: Named) -> Named:
        return {"logits": model(named[port])}

    return Part(name="model", step=step, trained=trained, inputs={port: inputs})
