"""A run: a recipe carried out in a folder, with a checkpoint, a log and a plot to show for it."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from contract.files import alone_in, forget_unfinished, require_writable
from training import checkpoint
from training.config import Place, Recipe
from training.files import MissingData
from training.kind import TrainingKind
from training.kinds import KINDS
from training.log import LOG
from training.loop import CHECKPOINT, Trainer
from training.start import begin_from, require_start

PICTURE = "loss.png"


def data_folder() -> Path:
    """Where corpora are looked up: `EVENKEEL_DATA`, or `data`."""
    return Path(os.environ.get("EVENKEEL_DATA", "data"))


def data_at(source: str, folder: Path) -> str:
    """Where the data source that a recipe names is: the path in the data `folder` if it exists, or
    else the source as it is, a path from here or a word such as `pydoc`."""
    place = folder / source
    return str(place) if place.exists() else source


def typed_data(source: str) -> str:
    """The data source that was typed on a command line: as an absolute path if it exists here, so
    that it is not looked up in the data folder, or else as it is."""
    return str(Path(source).absolute()) if os.path.exists(source) else source


def carry_out(
    recipe: Recipe, run: Path, device: str, folder: Path, start: Path | None = None
) -> None:
    """Train in the folder `run`, or go on with the run that is there.

    A relative data source is looked for in `folder` first. A new run begins with the weights of the
    artifact `start`, if there is one. Raises `ValueError` for data that is missing or too small, an
    artifact of another model, a folder that nothing may be written to or another training works in,
    and for a run of other settings.
    """
    world = distributed.get_world_size() if distributed.is_initialized() else 1
    rank = distributed.get_rank() if world > 1 else 0
    kind = KINDS[recipe.kind]
    _require_sense(recipe, kind, start, world)
    _require_use(recipe, kind, run / CHECKPOINT)
    require_writable(run)
    facts: dict[str, Any] = {
        "kind": recipe.kind,
        "model": asdict(recipe.model),
        "batch": asdict(recipe.batch),
    }
    _require_same_settings(run / CHECKPOINT, facts | {"training": asdict(recipe.training)})
    torch.manual_seed(recipe.training.seed)
    source = data_at(recipe.data.source, folder)
    try:
        task, data = kind.task(recipe, source, Place(device=device, rank=rank, world=world))
    except MissingData as error:
        raise ValueError(f"{error}, here or in {folder}/ (EVENKEEL_DATA)") from error
    facts["data"] = data | {"validation_fraction": recipe.data.validation_fraction}
    if start is not None:
        facts["from"] = begin_from(start, task.model, recipe)
    with alone(run) if rank == 0 else nullcontext():
        trainer = Trainer(task, recipe.training, run, facts)
        if rank == 0 and trainer.total_updates <= recipe.training.warmup_updates:
            _warn_of_warm_up(trainer.total_updates)
        with trainer.group.together():
            trainer.run()
        if rank == 0:
            _plot(run, f"{run.resolve().name} on {data['name']}", kind.unit)
    if rank == 0:
        loss = trainer.progress.best_loss
        if trainer.progress.temperature is not None:
            print(f"logits divided by {trainer.progress.temperature:.4f}")
        print(f"{run / CHECKPOINT}: validation loss {loss:.4f} nats/{kind.unit}")
        if task.units_per_sequence is not None:
            print(f"that is {loss * task.units_per_sequence:.1f} nats/sequence")


def _require_sense(recipe: Recipe, kind: TrainingKind, start: Path | None, world: int) -> None:
    """Raises `ValueError` for what no data will mend: to read it takes minutes."""
    if recipe.batch.rows % world:
        raise ValueError(f"batch.rows is {recipe.batch.rows}; {world} processes need a multiple")
    if recipe.training.blend and start is None:
        raise ValueError("training.blend is of the weights a run begins from: say --from ARTIFACT")
    if recipe.training.calibrated and not kind.calibrates:
        raise ValueError(
            f"training.calibrated is of models with logits; one of kind {kind.name} has none"
        )
    if start is not None:
        require_start(start, recipe)  # and once more when its weights are read


def _require_use(recipe: Recipe, kind: TrainingKind, begun: Path) -> None:
    """Raises `ValueError` for options that the kind has not. Up to 0.4.0 those of a batch were
    passed over, and a run that was `begun` with them goes on."""
    data, batch = (sorted(t.options().keys() - kind.options) for t in (recipe.data, recipe.batch))
    if batch and begun.exists() and checkpoint.facts_of(begun).get("batch") == asdict(recipe.batch):
        batch = []
    if others := [f"data.{name}" for name in data] + [f"batch.{name}" for name in batch]:
        told = ", ".join(others)
        raise ValueError(f"{told}: a model of kind {kind.name} has no use for that")


def _require_same_settings(path: Path, settings: dict[str, Any]) -> None:
    """Raises `ValueError` for a run of other settings; of its data, once those have been read."""
    if path.exists():
        theirs = checkpoint.facts_of(path)
        checkpoint.require_same(path, theirs, theirs | settings)


def _warn_of_warm_up(updates: int) -> None:
    print(
        f"only {updates} updates, all of them of the warm-up: a network that has hardly learnt "
        "amplifies rounding, so its parity report may be red; take more data, or "
        "--set training.epochs=N",
        file=sys.stderr,
    )


@contextmanager
def alone(run: Path) -> Iterator[None]:
    """Hold the lock of a run's folder. Raises `ValueError` where another training holds it: each
    would replace what the other keeps."""
    run.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        try:
            stack.enter_context(alone_in(run, waits=False))
        except BlockingIOError as error:
            raise ValueError(
                f"{run}: another training is at work there; wait for it, or train elsewhere"
            ) from error
        except OSError:
            pass  # of a file system that keeps nobody out
        yield


def _plot(run: Path, title: str, unit: str) -> None:
    """The losses of the log as a picture, where there is something to draw with."""
    if find_spec("matplotlib") is None:
        print(f"{run / LOG}: not drawn, as there is no matplotlib", file=sys.stderr)
        return
    if not (run / LOG).exists():  # only the checkpoint was brought here
        return
    from training.curves import plot_losses

    forget_unfinished(run / PICTURE)
    plot_losses(run / LOG, run / PICTURE, title, unit)
