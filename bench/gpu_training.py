"""Milliseconds of an update on a GPU: `python -m bench.gpu_training`.

The training loop's own updates by shipped recipes, on data that needs no download: every kernel
launched by PyTorch, and all of them as a CUDA graph (`training.capture`). The same updates of each
side in turn, after one of each that is not timed, in which graphs are captured. Writes JSON to
docs/results, or to `--out`; `--device cpu` rehearses what needs no GPU.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from bench.gpu import on_device
from bench.peers.launch import end_in_order
from bench.rows import percentiles
from export.results import command, machine, results_folder, write_json
from training.capture import gradients_of
from training.config import Place
from training.kinds import KINDS
from training.loop import Trainer
from training.recipe import read_recipe

# And what they are trained on here, unless told something else.
RECIPES = {"shakespeare": "pydoc", "handwriting": "synthetic"}
SIDES = {"launched": False, "graph": True}  # whether a graph may be captured


@dataclass(frozen=True, slots=True)
class GpuTrainingRow:
    """A side of a recipe; `first_ms` of an update is the longest of those that were not timed."""

    recipe: str
    rows: int
    side: str
    p50_ms: float
    p90_ms: float
    first_ms: float
    updates: int


def measure(
    recipe: str, source: str, updates: int, device: str, rows: int | None = None
) -> Iterator[GpuTrainingRow]:
    """Both sides of a recipe, with its own number of rows unless told another."""
    changes = ["batch.growing=false", *([f"batch.rows={rows}"] if rows else [])]
    asked = read_recipe(recipe, changes)
    task, _ = KINDS[asked.kind].task(asked, source, Place(device=device))
    with tempfile.TemporaryDirectory() as folder:
        trainers = {}
        for side, captures in SIDES.items():
            trainer = Trainer(deepcopy(task), asked.training, Path(folder, side), {})
            trainer._gradients = gradients_of(
                trainer.task, trainer.weights.parameters.values(), alone=captures
            )
            trainer.task.model.train()
            trainers[side] = trainer
        first = {side: [_timed(t) for _ in range(updates)] for side, t in trainers.items()}
        for trainer in trainers.values():
            trainer.progress.update = 0  # the same batches once more
        times: dict[str, list[float]] = {side: [] for side in SIDES}
        for _ in range(updates):
            for side, trainer in trainers.items():
                times[side].append(_timed(trainer))
    for side, taken in times.items():
        p50, p90 = percentiles(taken, 0.5, 0.9, digits=1)
        longest = round(max(first[side]), 1)
        yield GpuTrainingRow(recipe, asked.batch.rows, side, p50, p90, longest, updates)


def _timed(trainer: Trainer) -> float:
    began = time.perf_counter()
    trainer._update().item()  # which waits for the device
    return (time.perf_counter() - began) * 1e3


def main(arguments: list[str] | None = None) -> None:
    """Print a row per side, and write them."""
    parser = argparse.ArgumentParser(prog="python -m bench.gpu_training", description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--updates", type=int, default=32)
    for recipe, source in RECIPES.items():
        parser.add_argument(f"--{recipe}", default=source, help=f"what to train on ({source})")
    parser.add_argument("--rows", type=int, nargs="*", default=[], help="more batches than its own")
    parser.add_argument("--out", type=results_folder, default="docs/results", help="where to write")
    options = on_device(parser, arguments)
    found = []
    for recipe in RECIPES:
        for rows in (None, *options.rows):
            for row in measure(
                recipe, vars(options)[recipe], options.updates, options.device, rows
            ):
                print(row, flush=True)
                found.append(row)
    if options.device == "cuda":
        content: dict[str, Any] = {"command": command("bench.gpu_training", arguments)}
        content |= {"device": torch.cuda.get_device_name(), "machine": machine()}
        content |= {"rows": [asdict(row) for row in found]}
        write_json(options.out / "gpu-training.json", content)


if __name__ == "__main__":
    end_in_order(main)
