"""A task with each norm under one budget: a sweep of the rate, then full runs of a few seeds.

Every run is one of `training.loop`, in a folder of its own below `runs/lab/TASK`; one that is
finished has a `result.json` and is not repeated, one that was interrupted goes on.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from contract.files import forget_unfinished
from export.results import write_json
from lab.experiment import Experiment, Figures, LabTask, Metric
from lab.plan import LADDER, Plan
from training import checkpoint
from training.config import Recipe
from training.log import LOG
from training.loop import CHECKPOINT, Trainer

RUNS = Path("runs", "lab")
RESULT, WEIGHTS = "result.json", "weights.safetensors"
Curve = list[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run: its data, how long it took, the figures of every validation and the test."""

    data: dict[str, Any]
    updates: int
    seconds: float
    validations: list[dict[str, float]]
    test: Figures

    def curve(self, metric: Metric) -> Curve:
        """Updates and a metric."""
        return [(int(row["update"]), row[metric.name]) for row in self.validations]

    def best(self, metric: Metric) -> float:
        """The best the metric was at any validation; NaN where it never was a number."""
        values = [value for _, value in self.curve(metric) if math.isfinite(value)]
        return metric.best(values) if values else math.nan


@dataclass(frozen=True, slots=True)
class Contender:
    """All runs of a norm: one for each rate of the sweep, one for each seed at the best rate."""

    norm: str
    sweep: dict[float, Run]
    rate: float
    runs: list[Run]


class Laboratory:
    """Carries out the runs of a task with its data, which is read once, below the folder `runs`."""

    def __init__(
        self, experiment: Experiment[Any], plan: Plan, source: Path | None, runs: Path
    ) -> None:
        self.experiment, self.plan = experiment, plan
        self.folder = runs / experiment.name / plan.case
        self._source = source

    @cached_property
    def data(self) -> Any:
        """What the runs learn from."""
        return self.experiment.data(self.plan.recipe, self._source)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What the results say of the data."""
        return self.experiment.facts(self.data)

    def compete(self, norm: str, seeds: int) -> Contender:
        """All runs of a norm, those that are missing."""
        sweep = self._sweep(norm)
        rate = best_rate(sweep, self.experiment.metrics[0])
        full = [
            self.run(self.plan.full(norm, rate, seed), self.name(norm, seed), keep=True)
            for seed in range(seeds)
        ]
        return Contender(norm, sweep, rate, full)

    def _sweep(self, norm: str) -> dict[float, Run]:
        """The short runs of a norm by rate, in order: those of the recipe, then one further on
        while the best of several is at an end."""
        missing, sweep = list(self.plan.budget.rates), dict[float, Run]()
        while missing:
            for rate in missing:
                sweep[rate] = self.run(self.plan.sweep(norm, rate), f"{norm}-sweep-{rate:g}")
            sweep = dict(sorted(sweep.items()))
            missing = beyond(sweep, self.experiment.metrics[0])
        return sweep

    def name(self, norm: str, seed: int) -> str:
        """The folder of a full run."""
        return f"{norm}-seed-{seed}"

    def run(self, recipe: Recipe, name: str, *, keep: bool = False) -> Run:
        """One run, or what it found if it is finished; `keep` its best weights.

        Raises `ValueError` where another recipe or other data was run in its folder.
        """
        folder = self.folder / name
        if not (folder / RESULT).exists():
            self._train(recipe, folder, keep=keep)
        # Here, as one may be killed once the result is there.
        (folder / CHECKPOINT).unlink(missing_ok=True)
        found = _read(folder / RESULT)
        self._require_same(recipe, folder, found)
        del found["recipe"]
        return Run(**found)

    def _require_same(self, recipe: Recipe, folder: Path, found: dict[str, Any]) -> None:
        """Raise `ValueError` where a finished run is of another recipe or of other data."""
        now = {"recipe": _plain(asdict(recipe)), "data": _plain(self.facts)}
        if other := [what for what in now if found[what] != now[what]]:
            raise ValueError(
                f"{folder} is of a run with another {other[0]}; remove it to run this one"
            )

    def recipe(self, norm: str, seed: int) -> Recipe:
        """The recipe of a finished full run.

        Raises `ValueError` where there is none, or one of another recipe or of other data.
        """
        folder = self.folder / self.name(norm, seed)
        if not (folder / WEIGHTS).exists():
            raise ValueError(
                f"{folder} has no {WEIGHTS}; first train the task by `python -m lab TASK`, with "
                "--quick where it is asked for here"
            )
        found = _read(folder / RESULT)
        recipe = self.plan.full(norm, found["recipe"]["training"]["learning_rate"], seed)
        self._require_same(recipe, folder, found)
        return recipe

    def trained(self, norm: str, seed: int) -> LabTask:
        """The task of a finished full run, its model with the best weights; raises as `recipe`."""
        task = self._task(self.recipe(norm, seed))
        weights = self.folder / self.name(norm, seed) / WEIGHTS
        task.model.load_state_dict(checkpoint.load(weights)[0])
        return task

    def _task(self, recipe: Recipe) -> LabTask:
        torch.manual_seed(recipe.training.seed)
        return self.experiment.task(recipe, self.data)

    def _train(self, recipe: Recipe, folder: Path, *, keep: bool) -> None:
        task = self._task(recipe)
        # As JSON has them: a resumed run compares its facts with those of its checkpoint.
        facts = _plain({
            "task": self.experiment.name,
            "data": self.facts,
            "recipe": asdict(recipe),
        })  # fmt: skip
        trainer = Trainer(task, recipe.training, folder, facts, lambda: task.figures)
        best = trainer.run()
        task.model.load_state_dict(best)
        with torch.no_grad():
            test = task.test()
        if not math.isfinite(trainer.progress.best_loss):
            test = dict.fromkeys(test, math.nan)  # of weights that no validation found able
        if keep:
            checkpoint.save(folder / WEIGHTS, best, {})
        rows = [json.loads(line) for line in (folder / LOG).read_text("utf-8").splitlines()]
        forget_unfinished(folder / RESULT)
        write_json(
            folder / RESULT,
            {
                "recipe": facts["recipe"],
                "data": facts["data"],
                "updates": trainer.progress.update,
                "seconds": round(trainer.progress.elapsed_s, 1),
                "validations": rows,
                "test": test,
            },
        )


def best_rate(sweep: dict[float, Run], metric: Metric) -> float:
    """The rate whose short run got furthest; the lowest where every one diverged."""
    found = {rate: run.best(metric) for rate, run in sweep.items()}
    able = {rate: value for rate, value in found.items() if math.isfinite(value)}
    if not able:
        return min(sweep)
    best = metric.best(list(able.values()))
    return next(rate for rate, value in able.items() if value == best)


def beyond(sweep: dict[float, Run], metric: Metric) -> list[float]:
    """The rate a sweep has yet to try, if any: the next on the ladder past the end that was best.
    A sweep of one rate is none."""
    rates, best = list(sweep), best_rate(sweep, metric)
    if len(rates) == 1 or best not in (rates[0], rates[-1]):
        return []
    place = LADDER.index(best) + (1 if best == rates[-1] else -1)
    return [LADDER[place]] if 0 <= place < len(LADDER) else []


def budget_of(plan: Plan, contenders: Iterable[Contender]) -> dict[str, Any]:
    """What the comparison was allowed, and what it took."""
    contenders = list(contenders)
    sweeps = [run for c in contenders for run in c.sweep.values()]
    full = [run for c in contenders for run in c.runs]
    return {
        "rates": list(plan.budget.rates),
        "sweep_updates_each": sweeps[0].updates,
        "full_updates_each": full[0].updates,
        "sweep_seconds": round(sum(run.seconds for run in sweeps), 1),
        "full_seconds": round(sum(run.seconds for run in full), 1),
    }


def _read(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is cut short or no JSON; remove it to run this again") from error
    return found


def _plain(content: Any) -> Any:
    return json.loads(json.dumps(content))
