"""Readers as a kind that can be trained."""

from pathlib import Path
from typing import Any

from models.reader import ReaderConfig, ReaderModel, TwinModel, make_reader
from training.config import Place, Recipe
from training.ink.corpus import read_pens
from training.ink.line import Tally
from training.reader.task import ReaderTask
from training.task import Task


class ReaderTraining:
    """Ink of a line, its text; on the lines a pen learns from, with the same writers held out."""

    name = "reader"
    unit = "character"
    config = ReaderConfig

    def model(self, hyperparameters: dict[str, Any]) -> ReaderModel | TwinModel:
        return make_reader(ReaderConfig(**hyperparameters | {"output_dropout": 0.0}))

    def task(self, recipe: Recipe, source: str, place: Place) -> tuple[Task, dict[str, Any]]:
        tally = Tally()
        corpus = read_pens(Path(source), tally)
        if place.rank == 0:
            print(tally.report())
        train_inks, validation_inks = corpus.split(recipe.data.validation_fraction)
        task = ReaderTask(
            make_reader(recipe.model).to(place.device),
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
            "characters": sum(len(ink.text) for ink in corpus.inks),
        }
