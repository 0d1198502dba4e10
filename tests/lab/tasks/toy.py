"""A task that is done in a moment: a line through points, with one unit and no norm worth it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

from lab import command, curves, experiment, jobs
from lab.compare import Laboratory
from lab.experiment import Experiment, LabTask, Metric, Part
from models.cells import State
from training.config import Recipe

RECIPE = """
[training]
epochs = 4
warmup_updates = 1
average_decay = 0.0

[data]
source = "points"

[lab]
rates = [3e-2, 1e-1]
sweep_epochs = 1.0
seeds = 2
minutes = 1

[cases.plain]

[cases.longer]
"training.epochs" = 6

[quick]
"training.epochs" = 2

[quick.longer]
"training.epochs" = 3
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineConfig:
    """A norm, which does nothing here."""

    norm: str = "layer"


class LineTask:
    """Four updates an epoch; `fail_at` raises at an update, as a machine that goes down does."""

    updates_per_epoch = 4
    units_per_sequence: ClassVar[None] = None
    fail_at: ClassVar[int | None] = None
    updates_done: ClassVar[int] = 0

    def __init__(self) -> None:
        self.model = nn.Linear(1, 1)
        self.figures: dict[str, float] = {}

    def batch(self, update: int) -> tuple[tuple[Tensor, ...], bool]:
        if update == LineTask.fail_at:
            raise KeyboardInterrupt
        LineTask.updates_done += 1
        x = torch.randn(8, 1, generator=torch.Generator().manual_seed(update))
        return (x, 3 * x), True

    def initial_state(self) -> State:
        return ()

    def loss(self, batch: tuple[Tensor, ...], state: State) -> tuple[Tensor, State]:
        x, y = batch
        return (self.model(x) - y).square().mean(), ()

    def validate(self) -> float:
        off = (self.model.weight - 3).abs().item()
        self.figures = {"off": off, "near": -off}
        return off

    def test(self) -> dict[str, float]:
        self.validate()
        return self.figures


class Line(Experiment[None]):
    """The toy as a task."""

    name = "line"
    title = "a line"
    paper = "section 0"
    claim = "none"
    norms = ("layer", "none")
    metrics = (Metric(name="off", label="off"),)
    config = LineConfig

    def data(self, recipe: Recipe, source: Path | None) -> None:
        return None

    def facts(self, data: None) -> dict[str, Any]:
        return {"name": "points", "sha256": "0"}

    def task(self, recipe: Recipe, data: None) -> LineTask:
        return LineTask()

    def parts(self, task: LineTask) -> tuple[Part, ...]:
        return ()


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy stands in for every task; runs and results go to a folder, where one is then. No
    curves are drawn, which takes as long as all runs of the toy."""
    (folder / "tasks" / "line").mkdir(parents=True)
    (folder / "tasks" / "line" / "recipe.toml").write_text(RECIPE)
    (folder / "data" / "points").mkdir(parents=True)
    line = Line()
    for module in (jobs, command.experiment):
        monkeypatch.setattr(module, "load", lambda _: line)
    monkeypatch.setattr(experiment, "TASKS", folder / "tasks")
    monkeypatch.setattr(command, "_MOST_WORKERS", 1)
    monkeypatch.setattr(curves, "plot", lambda *_: None)
    monkeypatch.setenv("EVENKEEL_DATA", str(folder / "data"))
    monkeypatch.chdir(folder)
    LineTask.fail_at, LineTask.updates_done = None, 0


def asked_for(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Norm and seed of every model that a laboratory is asked for from now on."""
    asked: list[tuple[str, int]] = []
    trained = Laboratory.trained

    def noted(laboratory: Laboratory, norm: str, seed: int) -> LabTask:
        asked.append((norm, seed))
        return trained(laboratory, norm, seed)

    monkeypatch.setattr(Laboratory, "trained", noted)
    return asked
