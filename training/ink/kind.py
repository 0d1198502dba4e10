"""Handwriting models as a kind that can be trained."""

from pathlib import Path
from typing import Any

from models.handwriting import HandwritingConfig, HandwritingModel
from training.config import Place, Recipe
from training.ink.corpus import read_pens
from training.ink.line import Tally
from training.ink.task import PenTask
from training.task import Task


class InkTraining:
    """Points of a pen, the next one from those before and the text."""

    name = "handwriting"
    unit = "point"
    config = HandwritingConfig

    def model(self, hyperparameters: dict[str, Any]) -> HandwritingModel:
        return HandwritingModel(HandwritingConfig(**hyperparameters))

    def task(self, recipe: Recipe, source: str, place: Place) -> tuple[Task, dict[str, Any]]:
        tally = Tally()
        corpus = read_pens(Path(source), tally)
        if place.rank == 0:
            print(tally.report())
        train_inks, validation_inks = corpus.split(recipe.data.validation_fraction)
        task = PenTask(
            HandwritingModel(recipe.model).to(place.device),
            train_inks,
            validation_inks,
            recipe.batch.rows,
            recipe.training.seed,
            place.rank,
            place.world,
        )
        return task, {
            "name": corpus.name,
            "sha256": corpus.sha256,
            "lines": len(corpus.inks),
            "points": sum(len(ink.offsets) for ink in corpus.inks),
        }
