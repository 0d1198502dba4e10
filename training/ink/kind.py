"""Handwriting models as a kind that can be trained."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from torch import nn

from models.handwriting import HandwritingConfig, HandwritingModel
from training.config import Place, Recipe
from training.ink.corpus import read_pens
from training.ink.line import Tally
from training.ink.marks import is_mark
from training.ink.rows import RowTask
from training.ink.task import PenTask
from training.task import Task

T = TypeVar("T", bound=RowTask[Any])


class InkTraining:
    """Points of a pen, the next one from those before and the text."""

    name = "handwriting"
    unit = "point"
    config = HandwritingConfig

    def model(self, hyperparameters: dict[str, Any]) -> HandwritingModel:
        return HandwritingModel(HandwritingConfig(**hyperparameters))

    def task(self, recipe: Recipe, source: str, place: Place) -> tuple[Task, dict[str, Any]]:
        task, facts, amount = on_pens(PenTask, HandwritingModel, recipe, source, place)
        return task, facts | {"points": amount}


def on_pens(
    kind: type[T], model: Callable[[Any], nn.Module], recipe: Recipe, source: str, place: Place
) -> tuple[T, dict[str, Any], int]:
    """A task on rows of ink, the facts of all ink there is, and its amount."""
    tally = Tally()
    marked = recipe.data.marked
    corpus = read_pens(Path(source), tally, marked > 0)
    if marked and not any(is_mark(ink) for ink in corpus.inks):
        marked = 0.0  # and the provenance does not say otherwise
        if place.rank == 0:
            print(f"{source} has no single marks; data.marked has nothing to set")
    if place.rank == 0:
        print(tally.report())
    parts = corpus.split(recipe.data.validation_fraction)
    task = kind(
        model(recipe.model).to(place.device),
        *parts,
        recipe.batch.rows,
        recipe.training.seed,
        place.rank,
        place.world,
        recipe.batch.growing,
        marked,
    )
    facts = {"name": corpus.name, "sha256": corpus.sha256, "lines": len(corpus.inks)}
    if marked:
        facts["marked"] = marked
    return task, facts, kind.amount(corpus.inks)
