"""Models of eight bits beside the exact ones they were trained on from: which of the two answers
requests that name no model, and how fast they are here. A model that is named is never exchanged.
"""

import logging
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from service.artifact import Artifact
from service.engine.given import GivenSteps, run_steps
from service.models import ServedModel, Speedup
from service.settings import Precision

log = logging.getLogger(__name__)

_STEPS = 32  # of a run, so that handing it to the engine and back is a small part
_RUNS = 9
_MOST_S = 0.2  # for all runs of a pair with as many rows; the one under way may end later
_CROWD = 8  # rows side by side
S = TypeVar("S", bound=ServedModel)


def pairs(models: Sequence[S]) -> Iterator[tuple[S, S]]:
    """Every model of eight bits that has its exact one beside it, after that one."""
    for eight in models:
        exact = _exact_of(eight, models)
        if exact is not None:
            yield exact, eight


def _exact_of(model: S, models: Iterable[S]) -> S | None:
    """The exact model that one of eight bits belongs to: that from which its manifest says it was
    trained on or else, as of a model that was rounded, another that began from the same one."""
    match model.artifact.manifest.provenance:
        case {"from": {"name": str(name)} as origin} if model.precision == "int8":
            exact = [other for other in models if other.precision == "float32"]
            named = [other for other in exact if other.name == name]
            alike = [o for o in exact if o.artifact.manifest.provenance.get("from") == origin]
            return next(iter(named + alike), None)
    return None


def choose(models: Sequence[S], wanted: Precision) -> S | None:
    """The model that answers requests which name none: the only one there is, or one of those that
    are the same model in either precision; None where several were trained apart.

    Eight bits answer only once they have been attested; with `auto`, once they were faster too,
    alone and among others: on a CPU without VNNI they may be so alone.
    """
    eights = {eight.name: eight for _, eight in pairs(models)}
    apart = [model for model in models if model.name not in eights]
    if len(apart) != 1 or wanted == "exact":
        return apart[0] if len(apart) == 1 else None
    able = [eight for eight in eights.values() if eight.engine.ready]
    if wanted == "auto":
        able = [eight for eight in able if _is_faster(speedup_of(eight, models))]
    return able[0] if able else apart[0]


def speedup_of(model: S, models: Sequence[S]) -> Speedup | None:
    """That of a model of eight bits beside its exact one of these, if it has been measured."""
    exact = _exact_of(model, models)
    return None if exact is None else model.speedups.get(exact)


def _is_faster(speedup: Speedup | None) -> bool:
    return speedup is not None and min(speedup) > 1


async def compare(exact: ServedModel, eight: ServedModel) -> None:
    """Measure both, a row alone and then some side by side. Raises what `run_steps` raises."""
    alone, crowded = await _times(exact, eight, 1), await _times(exact, eight, _CROWD)
    eight.speedups[exact] = Speedup(alone, crowded)


async def _times(exact: ServedModel, eight: ServedModel, rows: int) -> float:
    """Through the queue, as requests; in turn, so that what slows the machine slows both."""
    taken_s: tuple[list[float], list[float]] = ([], [])
    until_s = time.perf_counter() + _MOST_S
    for _ in range(_RUNS):
        for model, runs_s in zip((exact, eight), taken_s, strict=True):
            jobs = [_some_steps(model.artifact) for _ in range(rows)]
            steps = jobs[0].steps_wanted()
            began_s = time.perf_counter()
            await run_steps(model.engine, jobs, admitted=True)
            runs_s.append((time.perf_counter() - began_s) / steps)
        if time.perf_counter() >= until_s:
            break
    exact_s, eight_s = map(statistics.median, taken_s)
    speedup = round(exact_s / eight_s, 3)
    log.info(
        "%s, rows %d: %.2f times as fast as %s (µs a step: %.0f and %.0f)",
        eight.name,
        rows,
        speedup,
        exact.name,
        eight_s * 1e6,
        exact_s * 1e6,
    )
    return speedup


def _some_steps(artifact: Artifact) -> GivenSteps:
    golden, row = artifact.golden, artifact.golden.plain_rows[0]
    steps = {name: array[:_STEPS] for name, array in golden.step_inputs(row).items()}
    return GivenSteps(artifact.initial_state(), golden.row_inputs(row), steps)
