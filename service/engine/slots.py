"""The slots of a runner as the schedule has them: jobs are placed, parked and retired there between
two chunks.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress

from contract.golden import Arrays
from service.engine import terms
from service.engine.pace import Pace
from service.engine.runners import Runner, stack_rows
from service.engine.schedule import Schedule, Ticket
from service.errors import ServiceError
from service.metrics import EngineMetrics


class Slots:
    """Who runs on a runner, and who waits for that. The engine's thread makes all calls;
    where it is stuck, another one that of `end_all`.

    A job changes places under `lock`: who has it counts nobody twice. It is never held while a slot
    is read or loaded, for a device may be stuck; all may have been ended when that returns. Slots
    that are read or loaded together are so in one turn of the runner: another model on its device
    would run before each.
    """

    def __init__(self, runner: Runner, metrics: EngineMetrics, slice_s: float) -> None:
        self.runner = runner
        self.lock = threading.Condition()
        self.schedule = Schedule(runner.width, slice_s)
        self.handing_out = threading.Lock()  # no job ends for another reason meanwhile
        self._metrics = metrics
        self._rows: dict[tuple[int, ...], Arrays] = {}  # row inputs of slots, until jobs change

    def tend(self, now_s: float) -> None:
        """Let go of jobs that nobody wants or whose time is up, and of slots nobody reads from, and
        fill what is free."""
        with self.lock:
            leaving = list(self._leaving(now_s))
        self._park_all(leaving)
        with self.lock:
            self._let_go(now_s)
        with ExitStack() as turn:
            while (following := self._next(now_s)) is not None:
                turn.enter_context(self.runner.turn)
                self._place(*following, now_s)
        with self.lock:  # or whoever comes just then is counted wrongly from then on
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
        state = self.runner.read(slot)
        with self.lock:
            if (ticket := self.schedule.slots.get(slot)) is not None:
                ticket.job.publish()
                ticket.job.state = state
                self.schedule.waiting.append(ticket)
                self.retire(slot)

    def retire(self, slot: int) -> None:
        """The slot is free; what the job had there is lost."""
        del self.schedule.slots[slot]
        self._rows.clear()
        self._metrics.running.set(len(self.schedule.slots))

    def move_to(self, runner: Runner) -> None:
        """Let all go on where another runner is."""
        self._park_all(list(self.schedule.slots))
        self.runner = runner

    def end_all(self, error: ServiceError, *, states_known: bool) -> None:
        """End whoever runs or waits, with its state where that is known."""
        if states_known:  # but of a device that is lost nobody has them
            self._park_all(list(self.schedule.slots), Exception)
        with self.lock, self.handing_out:
            for ticket in self.schedule.slots.values():
                if ticket.ran:
                    ticket.job.fail(error)
                else:  # it stands where it was parked
                    ticket.end(error)
            for ticket in self.schedule.waiting:
                ticket.end(error)
            self.schedule.slots.clear()
            self.schedule.waiting.clear()
            self._count()

    def _leaving(self, now_s: float) -> Iterator[int]:
        """The slots to be parked; those that nobody wants any more are retired."""
        for slot, ticket in list(self.schedule.slots.items()):
            if ticket.job.cancelled:
                self.retire(slot)
            elif ticket.job.paused or now_s > ticket.deadline_s:
                yield slot

    def _let_go(self, now_s: float) -> None:
        for ticket in list(self.schedule.waiting):
            if ticket.job.cancelled:
                self.schedule.waiting.remove(ticket)
            elif now_s > ticket.deadline_s:
                self.schedule.waiting.remove(ticket)
                ticket.end(terms.late())

    def _park_all(self, slots: Sequence[int], *but: type[Exception]) -> None:
        """Park whoever is there; but those whose slot cannot be read, by such an error, stay."""
        if slots:
            with self.runner.turn:
                for slot in slots:
                    with suppress(*but):
                        self.park(slot)

    def _next(self, now_s: float) -> tuple[int, Ticket] | None:
        with self.lock:
            return self.schedule.next(now_s)

    def _place(self, slot: int, ticket: Ticket, now_s: float) -> None:
        if slot in self.schedule.slots:
            self.park(slot)
        # Until that is done it waits: what is in the slot is not yet where it stands.
        self.runner.load(slot, ticket.job.state)
        with self.lock:
            if ticket in self.schedule.waiting:
                self.schedule.place(slot, ticket, now_s)

    def _count(self) -> None:
        self._metrics.waiting.set(len(self.schedule.waiting))
        self._metrics.running.set(len(self.schedule.slots))
