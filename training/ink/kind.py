"""Handwriting models as a kind that can be trained."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from torch import nn

from models.handwriting import HandwritingConfig, HandwritingModel
from training.config import Place, Recipe
from training.ink.corpus import read_pens
from training.ink.isolated import is_figure, is_mark
from training.ink.line import Tally
from training.ink.prepare import is_own
from training.ink.rows import RowTask
from training.ink.task import PenTask
from training.task import Task

T = TypeVar("T", bound=RowTask[Any])
# Options that want ink which not all data has: which that is, and what it is called.
_OF_SOME_DATA = {
    "marked": (is_mark, "isolated ones"),
    "figured": (is_figure, "isolated ones"),
    "own": (is_own, "lines of a pen"),
}


class InkTraining:
    """Points of a pen, the next one from those before and the text."""

    name = "handwriting"
    unit = "point"
    calibrates = False
    # A pen learns ink in the order in which it was written.
    options = frozenset({"marked", "figured", "varied", "own", "growing"})
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
    data = recipe.data
    corpus = read_pens(Path(source), tally, data.marked > 0, data.figured > 0)
    options = data.options()
    for name, (which, what) in _OF_SOME_DATA.items():
        if name in options and not any(map(which, corpus.inks)):
            del options[name]  # and the provenance does not say otherwise
            if place.rank == 0:
                print(f"{source} has no {what}; data.{name} has nothing to set")
    if place.rank == 0:
        print(tally.report())
    parts = corpus.split(data.validation_fraction)
    task = kind(
        model(recipe.model).to(place.device),
        *parts,
        batch_size=recipe.batch.rows,
        seed=recipe.training.seed,
        rank=place.rank,
        world=place.world,
        growing=recipe.batch.growing,
        **options,
    )
    facts = {"name": corpus.name, "sha256": corpus.sha256, "lines": len(corpus.inks)} | options
    return task, facts, kind.amount(corpus.inks)
