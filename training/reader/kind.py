"""Readers as a kind that can be trained."""

from typing import Any

from models.reader import ReaderConfig, ReaderModel, TwinModel, make_reader
from training.config import Place, Recipe
from training.ink.kind import on_pens
from training.reader.task import ReaderTask
from training.task import Task


def learned_reordered(facts: dict[str, Any]) -> bool:
    """Whether a reader with these facts of its training is used to lines whose delayed strokes
    stand where they belong."""
    return bool(facts["data"].get("reordered", 0) > 0)


class ReaderTraining:
    """Ink of a line, its text; on the lines a pen learns from, with the same writers held out."""

    name = "reader"
    unit = "character"
    calibrates = False
    # What it learns from varies by itself.
    options = frozenset({"marked", "figured", "reordered", "own", "growing"})
    config = ReaderConfig

    def model(self, hyperparameters: dict[str, Any]) -> ReaderModel | TwinModel:
        return make_reader(ReaderConfig(**hyperparameters | {"output_dropout": 0.0}))

    def task(self, recipe: Recipe, source: str, place: Place) -> tuple[Task, dict[str, Any]]:
        task, facts, amount = on_pens(ReaderTask, make_reader, recipe, source, place)
        return task, facts | {"characters": amount}
