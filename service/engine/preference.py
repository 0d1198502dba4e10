"""Whether a model runs faster with few threads or with many, found out while it serves.

That depends on who else is on the cores, other guests of a virtual machine included: the same run
takes 0.6 of the time with two threads or 1.5 of it, for seconds at a time.
"""

from dataclasses import dataclass

# Between two trials, unless the last was for a change.
_EVERY_S = 1.0
# So many more trials for a change than against it are no accident.
_MAJORITY = 4
# What follows a shorter run, or follows it later, meets colder caches or threads that sleep.
_LEAST_S, _PAUSE_S = 0.002, 0.05
# A change to few threads needs less than the time of many, one to many a good deal less than that
# of few: they keep cores from the event loop and others.
_TO_FEW, _TO_MANY = 1.0, 0.9


@dataclass(frozen=True, slots=True)
class Ran:
    """A run: all that its time should depend on, how long it took, and when it ended."""

    load: tuple[int, int, bool]
    took_s: float
    ended_s: float


class Preference:
    """Tries the other number of threads now and then, each time soon after a run that was alike,
    so that what slows the machine slows both."""

    def __init__(self, *, many: bool, now_s: float) -> None:
        """`now_s` counts as the time of the last trial."""
        self.many = many
        self._due_s = now_s + _EVERY_S
        self._ahead = 0
        # The last run as preferred, without filters and with them: a chunk may have one of either.
        self._before: dict[bool, Ran] = {}

    def choose(self, load: tuple[int, int, bool], now_s: float) -> bool:
        """Whether the next run, of this load, is to have many threads."""
        *_, filtered = load
        before = self._before.get(filtered)
        if before is None or before.load != load or now_s < self._due_s:
            return self.many
        alike = before.took_s >= _LEAST_S and now_s - before.ended_s <= _PAUSE_S
        return self.many ^ alike

    def follow(self, ran: Ran, *, many: bool) -> None:
        """Take note of the run that followed."""
        *_, filtered = ran.load
        before, self._before[filtered] = self._before.get(filtered), ran
        if many == self.many:
            return
        assert before is not None
        # The next one is as preferred, and the trial after it is compared with it.
        del self._before[filtered]
        faster = ran.took_s < before.took_s * (_TO_MANY if many else _TO_FEW)
        self._ahead = max(0, self._ahead + (1 if faster else -1))
        if self._ahead == _MAJORITY:
            self.many, self._ahead = many, 0
        if not self._ahead:
            self._due_s = ran.ended_s + _EVERY_S
