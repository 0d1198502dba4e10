"""How many threads a model's session gets when the settings do not say: what is fastest here."""

import logging
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from service.artifact import Artifact
from service.engine.pace import median_step_s
from service.engine.runtime import Runner, Runtime, make_runner

log = logging.getLogger(__name__)

_RUNS = 9
# More threads must win by this much: they keep cores from the event loop and other models.
_GAIN = 0.95


def fastest_runner(
    artifact: Artifact,
    runtime: Runtime,
    *,
    cores: int | None = None,
    step_s: Callable[[Artifact, Runner], float] | None = None,
) -> tuple[Runner, Runtime]:
    """The runner of one model with one thread, or two, four and so on while more are faster.

    More than a small model can use are slower, and so are more than the neighbours leave free.
    `step_s` measures a runner; None takes this machine's `cores`, and the time of one row's step.
    """
    cores = cores or len(os.sched_getaffinity(0))
    step_s = step_s or partial(median_step_s, rows=1, runs=_RUNS)
    best = replace(runtime, threads=1)
    runner = make_runner(artifact, best)
    taken_s = {1: step_s(artifact, runner)}
    while best.threads < cores:
        more = replace(best, threads=min(2 * best.threads, cores))
        other = make_runner(artifact, more)
        taken_s[more.threads] = step_s(artifact, other)
        if taken_s[more.threads] > _GAIN * taken_s[best.threads]:
            break
        runner, best = other, more
    measured = ", ".join(f"{n}: {s * 1e6:.0f}" for n, s in taken_s.items())
    log.info("%s: %d threads (µs a step: %s)", artifact.name, best.threads, measured)
    return runner, best
