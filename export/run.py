"""A run: a recipe carried out in a folder, with a checkpoint, a log and a plot to show for it."""

from dataclasses import asdict
from pathlib import Path

import torch
from torch import distributed

from export.curves import plot_losses
from export.recipe import Recipe
from export.tasks import LanguageTask
from export.text_data import read_corpus
from export.train import CHECKPOINT, LOG, Trainer
from models.language import LanguageModel


def carry_out(recipe: Recipe, run: Path, device: str, data_folder: Path) -> None:
    """Train in the folder `run`, or go on with the run that is there.

    A relative data source is looked for in `data_folder` first. Raises `ValueError` for data
    that is missing or too small, and for a run of other settings.
    """
    source = data_folder / recipe.data.source
    corpus = read_corpus(str(source) if source.exists() else recipe.data.source)
    train_tokens, validation_tokens = corpus.split(recipe.data.validation_fraction)
    torch.manual_seed(recipe.training.seed)
    model = LanguageModel(recipe.model).to(device)
    world = distributed.get_world_size() if distributed.is_initialized() else 1
    rank = distributed.get_rank() if world > 1 else 0
    task = LanguageTask(
        model,
        train_tokens,
        validation_tokens,
        recipe.batch.rows,
        recipe.batch.steps,
        recipe.training.seed,
        rank,
        world,
    )
    facts = {
        "kind": "language",
        "model": asdict(recipe.model),
        "batch": asdict(recipe.batch),
        "data": {
            "name": corpus.name,
            "sha256": corpus.sha256,
            "bytes": len(corpus.content),
            "validation_fraction": recipe.data.validation_fraction,
        },
    }
    trainer = Trainer(task, recipe.training, run, facts)
    trainer.run()
    if rank == 0:
        plot_losses(run / LOG, run / "loss.png", f"{run.name} on {corpus.name}")
        print(f"{run / CHECKPOINT}: validation loss {trainer.progress.best_loss:.4f} nats/byte")
