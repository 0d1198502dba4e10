"""What came out of a comparison, as `docs/results/lab/TASK.json`: curves, medians, who was sooner.

A figure of several seeds is told as its median and its range.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from export.results import machine
from lab.compare import Contender, Curve, budget_of
from lab.experiment import Experiment, Metric
from lab.measured.table import Json
from lab.plan import Plan

BASELINE = "none"
_DIGITS = 5  # of a figure in a curve


def outcome(
    experiment: Experiment[Any],
    command: str,
    found: dict[str, tuple[Plan, list[Contender]]],
) -> Json:
    """All of it, as it is written."""
    return {
        "task": experiment.name,
        "title": experiment.title,
        "paper": experiment.paper,
        "claim": experiment.claim,
        "command": command,
        "machine": machine(),
        "metrics": [asdict(metric) for metric in experiment.metrics],
        "cases": {
            case: _case(experiment, plan, contenders) for case, (plan, contenders) in found.items()
        },
    }


def _case(experiment: Experiment[Any], plan: Plan, contenders: Sequence[Contender]) -> Json:
    first = experiment.metrics[0]
    curves = {c.norm: [run.curve(first) for run in c.runs] for c in contenders}
    return {
        "recipe": asdict(plan.recipe),
        "data": contenders[0].runs[0].data,
        "budget": budget_of(plan, contenders),
        "winner": winner(contenders, first),
        "norms": {
            c.norm: {
                "rate": c.rate,
                "rates": {f"{rate:g}": _told(run.best(first)) for rate, run in c.sweep.items()},
                "seconds": [run.seconds for run in c.runs],
                "test": _tests(c, experiment.metrics),
                "updates_to_best_of_none": sooner(curves, c.norm, first),
                # Of every run the same: one budget, and nothing stops early.
                "updates": [update for update, _ in c.runs[0].curve(first)],
                "curves": {
                    m.name: [[_told(value) for _, value in run.curve(m)] for run in c.runs]
                    for m in experiment.metrics
                },
            }
            for c in contenders
        },
    }


def _tests(contender: Contender, metrics: Sequence[Metric]) -> Json:
    """Each figure of the test at the best weights: of every seed, their median and range."""
    by_name = {metric.name: metric for metric in metrics}
    found = {}
    for name in contender.runs[0].test:
        values = [run.test[name] for run in contender.runs]
        finite = [v for v in values if math.isfinite(v)]
        higher = name in by_name and by_name[name].higher_is_better
        found[name] = {
            "seeds": [_told(v) for v in values],
            "median": _told(_median(values, higher=higher)),
            # A seed that diverged is no figure, and is seen among the seeds.
            "range": [_told(min(finite)), _told(max(finite))] if finite else None,
        }
    return found


def median_curve(curves: Sequence[Curve], metric: Metric) -> Curve:
    """The median over seeds at each validation."""
    rows = zip(*curves, strict=True)
    higher = metric.higher_is_better
    return [(row[0][0], _median([v for _, v in row], higher=higher)) for row in rows]


def _median(values: Sequence[float], *, higher: bool) -> float:
    """Of the seeds; one that diverged counts as the worst there is, or the fewer there were that
    did not, the better a norm would look."""
    worst = -math.inf if higher else math.inf
    return median(v if math.isfinite(v) else worst for v in values)


def updates_to_reach(curve: Curve, goal: float, metric: Metric) -> int | None:
    """The first update whose validation is as good as `goal`, if any is."""
    return next((u for u, v in curve if v == goal or metric.better(v, goal)), None)


def sooner(curves: dict[str, list[Curve]], norm: str, metric: Metric) -> Json | None:
    """How many updates a norm takes to the best of no normalisation, and its ratio to the updates
    that one took: of the median curves, then of each pair of seeds. A baseline that diverged sets
    no goal: None where there is no other, and no ratio of such a seed."""
    goal = median_curve(curves.get(BASELINE, []), metric)
    if not _has_figures(goal):
        return None
    updates, ratio = _race(median_curve(curves[norm], metric), goal, metric)
    pairs = zip(curves[norm], curves[BASELINE], strict=False)
    ratios = [_race(mine, theirs, metric)[1] for mine, theirs in pairs if _has_figures(theirs)]
    return {"updates": updates, "ratio": ratio, "ratio_of_seeds": ratios}


def _has_figures(curve: Curve) -> bool:
    return any(math.isfinite(value) for _, value in curve)


def _race(mine: Curve, theirs: Curve, metric: Metric) -> tuple[int | None, float | None]:
    best = metric.best([value for _, value in theirs if math.isfinite(value)])
    needed = updates_to_reach(theirs, best, metric)
    reached = updates_to_reach(mine, best, metric)
    if reached is None or needed is None:
        return reached, None
    return reached, round(reached / needed, 3)


def winner(contenders: Sequence[Contender], metric: Metric) -> str | None:
    """The norm with the best median of the first metric on the test data; several joined by `=`
    where their figures are the same. None where nothing converged."""
    tests = {c.norm: _tests(c, [metric])[metric.name]["median"] for c in contenders}
    able = {norm: value for norm, value in tests.items() if value is not None}
    if not able:
        return None
    best = metric.best(list(able.values()))
    return " = ".join(norm for norm, value in able.items() if value == best)


def _told(value: float) -> float | None:
    """Short enough for a file people read; null where it is no number."""
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
