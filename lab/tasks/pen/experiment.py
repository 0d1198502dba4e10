"""The task `pen`: handwriting by three layers of 400 LSTM units, eight rows an update."""

from pathlib import Path
from typing import Any

from lab.experiment import Experiment, Figures, Metric, Part
from lab.tasks.pen.data import Pens, read
from lab.tasks.pen.model import mixtures, reading, step
from models.handwriting import HandwritingConfig, HandwritingModel, Text
from training.config import Recipe
from training.ink.corpus import PenBatch
from training.ink.rows import Growth
from training.ink.task import PenTask

_EXPORTED_POINTS = 200


class PenRun(PenTask):
    """Next-point prediction that tells its figures, and has rows that decide nothing."""

    growth = Growth(first=8, last=24, epochs=0.045)
    figures: Figures

    def __init__(self, pens: Pens, recipe: Recipe) -> None:
        model = HandwritingModel(recipe.model)
        rows, seed = recipe.batch.rows, recipe.training.seed
        super().__init__(model, pens.train, pens.validation, rows, seed)
        self.figures = {}
        self._test_inks = pens.test

    def validate(self) -> float:
        self.figures = {"nats": self.measure(self._validation)}
        return self.figures["nats"]

    def test(self) -> Figures:
        return {"nats": self.measure(self.rows_of(self._test_inks))}


class PenExperiment(Experiment[Pens]):
    """Handwriting synthesis (Graves 2013) on lines of UNIPEN. A pen has no batch norm: its rows end
    at different points."""

    name = "pen"
    title = "handwriting at batch 8"
    paper = "section 6.5, figure 5"
    claim = "with layer norm the model converges faster, to a comparable log-likelihood"
    norms = ("layer", "weight", "none")
    metrics = (Metric(name="nats", label="validation nats a point"),)
    config = HandwritingConfig

    def data(self, recipe: Recipe, source: Path | None) -> Pens:
        return read(source, recipe.data.validation_fraction)

    def facts(self, data: Pens) -> dict[str, Any]:
        points = sum(len(ink.offsets) for ink in data.corpus.inks)
        lines = {n: len(getattr(data, n)) for n in ("train", "validation", "test")}
        return {"name": data.corpus.name, "sha256": data.corpus.sha256, "points": points} | lines

    def task(self, recipe: Recipe, data: Pens) -> PenRun:
        return PenRun(data, recipe)

    def parts(self, task: PenRun) -> tuple[Part, ...]:
        batch, _ = task.batch(0)
        points, symbols, length, _ = PenBatch(*batch)
        inputs = reading(points[:_EXPORTED_POINTS], Text(symbols, length))
        return (Part(name="model", step=step, trained=mixtures, inputs=inputs, scan=True),)


EXPERIMENT = PenExperiment()
