"""How the engines of a process share its cores: each has all the threads it gains from while they
fit, and fewer while others are at work.

Threads of a session wait for each other by spinning. Two sessions of two threads on two cores
spend half of both on that, and leave the event loop nothing.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

from contract.golden import Arrays
from service.artifact import Artifact
from service.engine.runners import Runner, ScanRunner, make_runner
from service.engine.runtime import Runtime


class CoreBudget:
    """So many cores, and the threads of the engines at work on them."""

    def __init__(self, cores: int) -> None:
        self.cores = cores
        self.wanted = 0  # threads of all that are at work
        self._lock = threading.Lock()

    def share(self, threads: int) -> "CoreShare":
        """That of an engine whose runs gain from so many threads."""
        return CoreShare(self, threads)

    def add(self, threads: int) -> None:
        """So many more threads are wanted, or fewer."""
        with self._lock:
            self.wanted += threads


class CoreShare:
    """One engine's share of the cores, which it acquires when it has work and releases when it has
    none."""

    def __init__(self, budget: CoreBudget, threads: int) -> None:
        self._budget, self._threads = budget, threads
        self._taken = 0

    @property
    def oversubscribed(self) -> bool:
        """Whether its threads and those of the others at work are more than there are cores."""
        return self._budget.wanted - self._taken + self._threads > self._budget.cores

    @property
    def fewer(self) -> int:
        """How many threads it makes do with while the cores are `oversubscribed`."""
        return max(1, self._budget.cores // 2)

    def acquire(self) -> None:
        """Count this engine's threads among those at work."""
        self._change(self._threads)

    def release(self) -> None:
        """Count them no more."""
        self._change(0)

    def _change(self, threads: int) -> None:
        if threads != self._taken:
            self._budget.add(threads - self._taken)
            self._taken = threads


class SharingRunner:
    """Two runners of one model over the same slots, the `narrow` one with fewer threads: it runs
    while the cores are oversubscribed. On the CPU the bits are the same whatever the threads."""

    divides, taken = True, False

    def __init__(self, wide: ScanRunner, narrow: ScanRunner, share: CoreShare) -> None:
        narrow.share(wide)
        self._wide, self._narrow, self._share = wide, narrow, share
        self.width = wide.width
        self.parts: Sequence[Runner] = (wide, narrow)
        self.load, self.read = wide.load, wide.read

    def run(self, slots: Sequence[int], steps: Arrays, row: Arrays, *, filtered: bool) -> Arrays:
        runner = self._narrow if self._share.oversubscribed else self._wide
        return runner.run(slots, steps, row, filtered=filtered)

    def give_up(self) -> None:
        for part in self.parts:
            part.give_up()


def sharing(
    artifact: Artifact, runtime: Runtime, share: CoreShare, made: Mapping[int, Runner] | None = None
) -> Runner:
    """The runner of a model: one that uses fewer threads while others are at work, if it has more
    than that. Runners that are `made` already, by their number of threads, are not made again."""
    made = made or {}
    wide = made.get(runtime.threads) or make_runner(artifact, runtime)
    fewer = replace(runtime, threads=share.fewer)
    if not isinstance(wide, ScanRunner) or runtime.threads <= fewer.threads:
        return wide
    narrow = made.get(fewer.threads) or make_runner(artifact, fewer)
    assert isinstance(narrow, ScanRunner)
    return SharingRunner(wide, narrow, share)
