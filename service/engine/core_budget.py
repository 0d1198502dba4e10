"""How the engines of a process share its cores: each has all the threads it gains from while they
fit, and fewer while others are at work.

Threads of a session wait for each other by spinning. Two sessions of two threads on two cores
spend half of both on that, and leave the event loop nothing.
"""

import threading


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
        """Whether it has more threads than `fewer`, and those and the threads of the others at
        work are more than there are cores."""
        wanted = self._budget.wanted - self._taken + self._threads
        return self._threads > self.fewer and wanted > self._budget.cores

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
