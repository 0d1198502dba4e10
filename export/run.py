"""A run: a recipe carried out in a folder, with a checkpoint, a log and a plot to show for it."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from export.curves import plot_losses
from export.pen_data import read_pens
from export.pen_task import PenTask
from export.pens.line import Tally
from export.recipe import DataConfig, Recipe
from export.tasks import LanguageTask, Task
from export.text_data import read_corpus
from export.train import CHECKPOINT, LOG, Trainer
from models.handwriting import HandwritingConfig, HandwritingModel
from models.language import LanguageConfig, LanguageModel

# What one step of each kind is.
UNITS = {"language": "byte", "handwriting": "point"}


def carry_out(recipe: Recipe, run: Path, device: str, data_folder: Path) -> None:
    """Train in the folder `run`, or go on with the run that is there.

    A relative data source is looked for in `data_folder` first. Raises `ValueError` for data
    that is missing or too small, and for a run of other settings.
    """
    world = distributed.get_world_size() if distributed.is_initialized() else 1
    rank = distributed.get_rank() if world > 1 else 0
    torch.manual_seed(recipe.training.seed)
    source = data_folder / recipe.data.source
    name = str(source) if source.exists() else recipe.data.source
    make = _writing if isinstance(recipe.model, HandwritingConfig) else _reading
    task, facts = make(recipe, name, device, rank, world)
    facts |= {"model": asdict(recipe.model), "batch": asdict(recipe.batch)}
    trainer = Trainer(task, recipe.training, run, facts)
    trainer.run()
    if rank == 0:
        unit = UNITS[facts["kind"]]
        title = f"{run.name} on {facts['data']['name']}"
        plot_losses(run / LOG, run / "loss.png", title, unit)
        loss = trainer.progress.best_loss
        print(f"{run / CHECKPOINT}: validation loss {loss:.4f} nats/{unit}")
        if isinstance(task, PenTask):
            print(f"that is {loss * task.validation_points_per_row:.1f} nats/sequence")


def _reading(
    recipe: Recipe, source: str, device: str, rank: int, world: int
) -> tuple[Task, dict[str, Any]]:
    assert isinstance(recipe.model, LanguageConfig)
    corpus = read_corpus(source)
    train_tokens, validation_tokens = corpus.split(recipe.data.validation_fraction)
    task = LanguageTask(
        LanguageModel(recipe.model).to(device),
        train_tokens,
        validation_tokens,
        recipe.batch.rows,
        recipe.batch.steps,
        recipe.training.seed,
        rank,
        world,
    )
    size = {"bytes": len(corpus.content)}
    return task, _facts("language", corpus.name, corpus.sha256, size, recipe.data)


def _writing(
    recipe: Recipe, source: str, device: str, rank: int, world: int
) -> tuple[Task, dict[str, Any]]:
    assert isinstance(recipe.model, HandwritingConfig)
    tally = Tally()
    corpus = read_pens(Path(source), tally)
    if rank == 0:
        print(tally.report())
    train_inks, validation_inks = corpus.split(recipe.data.validation_fraction)
    task = PenTask(
        HandwritingModel(recipe.model).to(device),
        train_inks,
        validation_inks,
        recipe.batch.rows,
        recipe.training.seed,
        rank,
        world,
    )
    size = {"lines": len(corpus.inks), "points": sum(len(ink.offsets) for ink in corpus.inks)}
    return task, _facts("handwriting", corpus.name, corpus.sha256, size, recipe.data)


def _facts(
    kind: str, name: str, sha256: str, size: dict[str, int], data: DataConfig
) -> dict[str, Any]:
    content = {"name": name, "sha256": sha256} | size
    return {
        "kind": kind,
        "data": content | {"validation_fraction": data.validation_fraction},
    }
