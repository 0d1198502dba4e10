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
        if recipe.data.reordered:
            raise ValueError("data.reordered is of readers; a pen learns ink as it was written")
        task, facts, amount = on_pens(PenTask, HandwritingModel, recipe, source, place)
        return task, facts | {"points": amount}


def on_pens(
    kind: type[T], model: Callable[[Any], nn.Module], recipe: Recipe, source: str, place: Place
) -> tuple[T, dict[str, Any], int]:
    """A task on rows of ink, the facts of all ink there is, and its amount."""
    tally = Tally()
    wanted = {"marked": recipe.data.marked, "figured": recipe.data.figured}
    corpus = read_pens(Path(source), tally, *(share > 0 for share in wanted.values()))
    shares = {}  # and the provenance does not say otherwise
    for (name, share), which in zip(wanted.items(), (is_mark, is_figure), strict=True):
        if share and any(map(which, corpus.inks)):
            shares[name] = share
        elif share and place.rank == 0:
            print(f"{source} has no isolated ones; data.{name} has nothing to set")
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
        shares.get("marked", 0.0),
        shares.get("figured", 0.0),
        recipe.data.varied,
        recipe.data.reordered,
    )
    others = {"varied": recipe.data.varied, "reordered": recipe.data.reordered}
    told = shares | {name: share for name, share in others.items() if share}
    facts = {"name": corpus.name, "sha256": corpus.sha256, "lines": len(corpus.inks)} | told
    return task, facts, kind.amount(corpus.inks)
