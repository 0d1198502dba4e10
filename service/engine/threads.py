"""How many threads a model's session gets when the settings do not say: what is fastest here."""

import logging
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

from service.artifact import Artifact
from service.engine.runtime import Runner, Runtime, make_runner

log = logging.getLogger(__name__)

_STEPS = 8  # of a run, as short as the first of a request
_RUNS = 9
_WARM_UP_RUNS = 2
# More threads must win by this much: they keep cores from the event loop and other models.
_GAIN = 0.95


def fastest_runner(
    artifact: Artifact,
    runtime: Runtime,
    *,
    cores: int | None = None,
    run_s: Callable[[Artifact, Runner], float] | None = None,
) -> tuple[Runner, Runtime]:
    """The runner of one model with one thread, or two, four and so on while more are faster.

    More than a small model can use are slower, and so are more than the neighbours leave free.
    `run_s` measures a runner; None takes this machine's `cores`, and the time of one row's run.
    """
    cores = cores or len(os.sched_getaffinity(0))
    run_s = run_s or _median_s
    best = replace(runtime, threads=1)
    runner = make_runner(artifact, best)
    taken_s = {1: run_s(artifact, runner)}
    while best.threads < cores:
        more = replace(best, threads=min(2 * best.threads, cores))
        other = make_runner(artifact, more)
        taken_s[more.threads] = run_s(artifact, other)
        if taken_s[more.threads] > _GAIN * taken_s[best.threads]:
            break
        runner, best = other, more
    measured = ", ".join(f"{n}: {s / _STEPS * 1e6:.0f}" for n, s in taken_s.items())
    log.info("%s: %d threads (µs a step: %s)", artifact.name, best.threads, measured)
    return runner, best


def _median_s(artifact: Artifact, runner: Runner) -> float:
    """Of one row's run."""
    golden, first = artifact.golden, artifact.golden.plain_rows[0]
    runner.load(0, artifact.initial_state())
    steps = {name: array[:_STEPS, None] for name, array in golden.step_inputs(first).items()}
    row = {name: array[None] for name, array in golden.row_inputs(first).items()}
    taken_s = []
    for _ in range(_WARM_UP_RUNS + _RUNS):
        began_s = time.perf_counter()
        runner.run([0], steps, row, filtered=False)
        taken_s.append(time.perf_counter() - began_s)
    return statistics.median(taken_s[_WARM_UP_RUNS:])
