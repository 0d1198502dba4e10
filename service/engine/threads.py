"""How many threads a model's session gets when the settings do not say: what is fastest here."""

import logging
import math
import os
import statistics
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

from service.artifact import Artifact
from service.engine.pace import median_step_s
from service.engine.runners import Runner, given_up, make_runner
from service.engine.runtime import Runtime

log = logging.getLogger(__name__)

# By turns, so that a burst of other work falls on both sides, or on few rounds.
_ROUNDS = 7
_CROWD = 8  # rows
# More threads must win by this much: they keep cores from the event loop and other models. Where
# one row neither wins nor loses it, the crowd decides.
_GAIN = 0.95


def usable_cores(root: Path = Path("/")) -> int:
    """How many cores a session may keep busy: those of this process's affinity or, if that is less,
    the whole ones of the CPU quota of its control group or of one around that; 1 at least.

    Threads of a session spin while they wait for each other. What a quota does not cover is paid
    for with time in which nothing of the process runs, so half a core is no core. `root` is where
    `/proc` and `/sys` are.
    """
    cores = len(os.sched_getaffinity(0))
    return max(1, math.floor(min([cores, *_quotas(root)])))


def _quotas(root: Path) -> Iterator[float]:
    """In cores, of version 1 and version 2; groups without one are left out."""
    with suppress(OSError):  # no control groups here
        for line in (root / "proc/self/cgroup").read_text("utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "cpu" not in controllers.split(","):
                continue
            mounted = root / "sys/fs/cgroup" / (controllers and "cpu")
            group = mounted / path.strip("/")
            groups = [group, *group.parents]
            # A container may have its own group mounted there, whatever the path says.
            for folder in groups[: groups.index(mounted) + 1]:
                yield from _quota(folder)


def _quota(group: Path) -> Iterator[float]:
    with suppress(OSError, ValueError):  # it has no such file, or says "max"
        if (both := group / "cpu.max").exists():
            quota, period = map(int, both.read_text("utf-8").split())
        else:
            quota = int((group / "cpu.cfs_quota_us").read_text("utf-8"))
            period = int((group / "cpu.cfs_period_us").read_text("utf-8"))
        if quota > 0:  # -1 of version 1 is none
            yield quota / period


def fastest_runners(
    artifact: Artifact,
    runtime: Runtime,
    *,
    cores: int | None = None,
    limit_s: float = math.inf,
    step_s: Callable[[Artifact, Runner, int], float] | None = None,
) -> tuple[Mapping[int, Runner], Runtime]:
    """Tries one thread, ever more of the cores and all of them while more are faster. The runtime
    with the fastest number and the one next to it, which may be faster at another time, and the
    runners of both, by their threads.

    More than a small model can use are slower, and so are more than the neighbours leave free.
    `step_s` measures a runner at a number of rows; None takes the `usable_cores`, and the time of a
    step. No measurement may take longer than `limit_s`.
    """
    cores = cores or usable_cores()
    measure = step_s or partial(median_step_s, runs=1)

    def timed(runner: Runner, rows: int) -> float:
        with given_up(runner, limit_s):
            return measure(artifact, runner, rows)

    def share(few: Runner, many: Runner, rows: int) -> float:
        rounds = [(timed(few, rows), timed(many, rows)) for _ in range(_ROUNDS)]
        return statistics.median(after / before for before, after in rounds)

    best = replace(runtime, threads=1)
    runners = {1: make_runner(artifact, best)}
    told = ""
    for threads, more in pairwise(_numbers(cores)):
        few = runners[threads]
        many = make_runner(artifact, replace(runtime, threads=more))
        runners = {threads: few, more: many}
        taken = share(few, many, 1)
        if _GAIN < taken <= 1 / _GAIN:
            taken = share(few, many, min(_CROWD, many.width))
        told += f"; {more} take {taken:.2f} of the time of {threads}"
        if taken > _GAIN:
            best = replace(runtime, threads=threads, other_threads=more)
            break
        best = replace(runtime, threads=more, other_threads=threads)
    log.info("%s: %d threads of %d%s", artifact.name, best.threads, cores, told)
    return runners, best


def _numbers(cores: int) -> list[int]:
    """1, ..., a quarter of the cores, half of them, all: an engine that has to make do with half
    has a runner for it."""
    return sorted({cores >> halvings for halvings in range(cores.bit_length())})
