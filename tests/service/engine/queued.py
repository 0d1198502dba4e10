"""Jobs that wait for a slot and those that have one, without an engine."""

from typing import Any

from contract.golden import Arrays
from service.engine.jobs import Job
from service.engine.schedule import Schedule, Ticket
from service.engine.terms import Terms

SLICE_S = 1.0


class Work(Job):
    """So many steps."""

    def __init__(self, steps: int = 100, *, urgent: bool = False) -> None:
        self.left = steps
        self.urgent = urgent
        self.state = {}

    def steps_wanted(self) -> int:
        return self.left

    def inputs(self, steps: int) -> Arrays:
        return {}

    def accept(self, outputs: Arrays) -> bool:
        return False

    def finish(self, state: Arrays | None) -> None: ...

    def fail(self, error: Any, state: Arrays | None = None) -> None: ...


class Line:
    """A schedule, and who holds a slot in it."""

    def __init__(self, width: int) -> None:
        self.schedule = Schedule(width, SLICE_S)

    def add(self, caller: str, *jobs: Job) -> None:
        self.schedule.add(jobs, Terms(caller))

    def fill(self, now_s: float = 0.0) -> None:
        """Place all that may be placed."""
        while (following := self.schedule.next(now_s)) is not None:
            slot, ticket = following
            if slot in self.schedule.slots:
                self.schedule.waiting.append(self.schedule.slots.pop(slot))
            self.schedule.place(slot, ticket, now_s)

    def run(self) -> None:
        """Every job that holds a slot does a step and shows it."""
        for ticket in self.tickets:
            ticket.ran = ticket.served = ticket.job.started = True

    def end(self, job: Job) -> None:
        """One is done."""
        slots = self.schedule.slots
        del slots[next(slot for slot, ticket in slots.items() if ticket.job is job)]

    @property
    def tickets(self) -> list[Ticket]:
        return list(self.schedule.slots.values())

    @property
    def jobs(self) -> list[Job]:
        return [ticket.job for ticket in self.tickets]

    @property
    def callers(self) -> list[str]:
        return sorted(ticket.caller for ticket in self.tickets)
