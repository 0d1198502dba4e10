"""The slots of a runner as the schedule has them: jobs are placed, parked and retired there between
two chunks.
"""

import threading
from collections.abc import Sequence
from contextlib import suppress

from contract.golden import Arrays
from service.engine import terms
from service.engine.pace import Pace
from service.engine.runners import Runner, stack_rows
from service.engine.schedule import Schedule, Ticket
from service.errors import ServiceError
from service.metrics import EngineMetrics


class Slots:
    """Who runs on a runner, and who waits for that. The engine's thread makes all calls;
    where it is stuck, another one that of `end_all`."""

    def __init__(self, runner: Runner, metrics: EngineMetrics, slice_s: float) -> None:
        self.runner = runner
        self.schedule = Schedule(runner.width, slice_s)
        self.handing_out = threading.Lock()  # no job ends for another reason meanwhile
        self._metrics = metrics
        self._rows: dict[tuple[int, ...], Arrays] = {}  # row inputs of slots, until jobs change

    def tend(self, now_s: float) -> None:
        """Let go of jobs that nobody wants or whose time is up, and of slots nobody reads from, and
        fill what is free."""
        self._clear(now_s)
        while (following := self.schedule.next(now_s)) is not None:
            self._place(*following, now_s)
        self._count()

    def groups(self, pace: Pace) -> list[tuple[list[int], bool]]:
        """The slots that run together, and whether filtered: filtered rows have a run of their own
        where that is faster."""
        tickets = self.schedule.slots
        slots = sorted(tickets)
        filtered = [slot for slot in slots if tickets[slot].job.filtered]
        plain = [slot for slot in slots if slot not in filtered]
        divided = plain and filtered and self.runner.divides
        if divided and pace.parts(len(plain), len(filtered)):
            return [(plain, False), (filtered, True)]
        return [(slots, bool(filtered))]

    def row(self, slots: Sequence[int]) -> Arrays:
        """The row inputs of jobs in slots, `(B, ...)`."""
        row = self._rows.get(tuple(slots))
        if row is None:
            jobs = [self.schedule.slots[slot].job for slot in slots]
            row = self._rows[tuple(slots)] = stack_rows([job.row for job in jobs], axis=0)
        return row

    @property
    def occupied(self) -> float:
        """The part of the slots beside one that others have; 0 where there is but one."""
        return (len(self.schedule.slots) - 1) / max(1, self.runner.width - 1)

    def park(self, slot: int) -> None:
        """Its state is a value: the job keeps it until it is placed again."""
        ticket = self.schedule.slots[slot]
        ticket.job.publish()
        ticket.job.state = self.runner.read(slot)
        self.schedule.waiting.append(ticket)
        self.retire(slot)

    def retire(self, slot: int) -> None:
        """The slot is free; what the job had there is lost."""
        del self.schedule.slots[slot]
        self._rows.clear()
        self._metrics.running.set(len(self.schedule.slots))

    def move_to(self, runner: Runner) -> None:
        """Let all go on where another runner is."""
        for slot in list(self.schedule.slots):
            self.park(slot)
        self.runner = runner

    def end_all(self, error: ServiceError, *, states_known: bool) -> None:
        """End whoever runs or waits, with its state where that is known."""
        with self.handing_out:
            for slot, ticket in list(self.schedule.slots.items()):
                if states_known:
                    with suppress(Exception):  # of a device that is lost nobody has them
                        self.park(slot)
                        continue
                ticket.job.fail(error)
            for ticket in self.schedule.waiting:
                ticket.end(error)
            self.schedule.slots.clear()
            self.schedule.waiting.clear()
            self._count()

    def _clear(self, now_s: float) -> None:
        for slot, ticket in list(self.schedule.slots.items()):
            if ticket.job.cancelled:
                self.retire(slot)
            elif ticket.job.paused or now_s > ticket.deadline_s:
                self.park(slot)
        for ticket in list(self.schedule.waiting):
            if ticket.job.cancelled:
                self.schedule.waiting.remove(ticket)
            elif now_s > ticket.deadline_s:
                self.schedule.waiting.remove(ticket)
                ticket.end(terms.late())

    def _place(self, slot: int, ticket: Ticket, now_s: float) -> None:
        if slot in self.schedule.slots:
            self.park(slot)
        self.schedule.place(slot, ticket, now_s)
        self.runner.load(slot, ticket.job.state)

    def _count(self) -> None:
        self._metrics.waiting.set(len(self.schedule.waiting))
        self._metrics.running.set(len(self.schedule.slots))
