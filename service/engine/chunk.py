"""A chunk of the rows in slots: how long it is, its run, and what is handed out of it."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

from contract.golden import Arrays
from service.engine.given import GivenSteps, Replay
from service.engine.jobs import Job, length
from service.engine.limits import Limits
from service.engine.pace import Pace
from service.engine.runners import require_numbers, stack_rows
from service.engine.schedule import Ticket
from service.engine.slots import Slots
from service.metrics import EngineMetrics

_LEAST_STEPS = 4  # of a chunk, however long they take: handing out has its price as well
# Of all rows of a chunk together. Four times as many logits are more than a session may hold.
_MOST_ROW_STEPS = 1 << 17


class Chunks:
    """Moves jobs in slots on, for one thread at a time."""

    def __init__(self, slots: Slots, pace: Pace, limits: Limits, metrics: EngineMetrics) -> None:
        self._slots = slots
        self._pace = pace
        self._limits = limits
        self._metrics = metrics

    def steps_for(self, jobs: Sequence[Job], step_s: float) -> int:
        """Few while someone waits for a first byte, and no more than others want to wait for, or
        than there is memory for."""
        steps = min(self._limits.chunk_steps, _MOST_ROW_STEPS // len(jobs))
        for job in jobs:
            if job.urgent and not job.started:
                steps = min(steps, max(self._limits.first_chunk_steps, job.steps_to_first()))
            steps = min(steps, job.steps_wanted())
        return int(min(steps, max(_LEAST_STEPS, self._limits.chunk_s / step_s)))

    def run(self, slots: Sequence[int], steps: int, *, filtered: bool) -> float:
        """Move these on and hand out what comes; the seconds that the runner took."""
        placed, runner = self._slots.schedule.slots, self._slots.runner
        tickets = [placed[slot] for slot in slots]
        jobs = [ticket.job for ticket in tickets]
        with ExitStack() as turn:  # one for all, as in `Slots`
            for slot, job in zip(slots, jobs, strict=True):
                if job.overshoots and job.wants_state:
                    turn.enter_context(runner.turn)
                    job.anchor(runner.read(slot))
        row = self._slots.row(slots)
        outputs, run_s = self._compute(slots, jobs, row, steps, filtered=filtered)
        left = []
        with self._slots.handing_out:
            for column, (slot, ticket) in enumerate(zip(slots, tickets, strict=True)):
                if placed.get(slot) is not ticket:
                    continue  # the run was stuck, and the service has ended it meanwhile
                ticket.ran = ticket.served = True
                its = {name: array[:, column] for name, array in outputs.items()}
                if (rest := self._hand_out(slot, ticket, its)) is not None:
                    left.append(rest)
        with ExitStack() as turn:
            for rest in left:
                turn.enter_context(runner.turn)
                rest()
        return run_s

    def run_alone(self, job: GivenSteps) -> None:
        """All of its steps in a slot that is free."""
        runner = self._slots.runner
        runner.load(0, job.state)
        row, steps = stack_rows([job.row], axis=0), job.steps_wanted()
        outputs, _ = self._compute([0], [job], row, steps, filtered=job.filtered)
        job.accept({name: array[:, 0] for name, array in outputs.items()})
        job.finish(runner.read(0) if job.wants_state else None)

    def _compute(
        self, slots: Sequence[int], jobs: Sequence[Job], row: Arrays, steps: int, *, filtered: bool
    ) -> tuple[Arrays, float]:
        """Their next steps: what comes out of them, and the seconds that the runner took."""
        steps_in = stack_rows([job.inputs(steps) for job in jobs], axis=1)
        began_s = time.perf_counter()
        outputs = self._slots.runner.run(slots, steps_in, row, filtered=filtered)
        run_s = time.perf_counter() - began_s
        self._pace.follow(len(slots), run_s / steps, filtered=filtered)
        require_numbers(outputs)
        self._metrics.rows_per_run.observe(len(jobs))
        self._metrics.steps.inc(steps * len(jobs))
        return outputs, run_s

    def _hand_out(self, slot: int, ticket: Ticket, outputs: Arrays) -> Callable[[], None] | None:
        """What is left to do, if anything is: it asks for a slot on a device, which may be stuck,
        while others may end the job."""
        job = ticket.job
        if not job.accept(outputs):
            if job.wants_checkpoint():
                return partial(self._read, slot, ticket, self._check)
            job.publish(self._limits.gap_s(self._slots.occupied))
        elif not job.wants_state:
            self._finish(slot, job, None)
        elif (again := job.replay()) is None:
            return partial(self._read, slot, ticket, self._finish)
        elif length(again[1]) == 0:
            self._finish(slot, job, again[0])
        else:
            ticket.job = Replay(job, *again)
            return partial(self._slots.runner.load, slot, again[0])
        return None

    def _read(
        self, slot: int, ticket: Ticket, hand_out: Callable[[int, Job, Arrays], None]
    ) -> None:
        """Read the state in a slot, and hand it out unless the job has been ended meanwhile."""
        state = self._slots.runner.read(slot)
        with self._slots.handing_out:
            if self._slots.schedule.slots.get(slot) is ticket:
                hand_out(slot, ticket.job, state)

    def _check(self, slot: int, job: Job, state: Arrays) -> None:
        job.checkpoint(state)
        job.publish(self._limits.gap_s(self._slots.occupied))

    def _finish(self, slot: int, job: Job, state: Arrays | None) -> None:
        self._slots.retire(slot)
        job.finish(state)
