"""Continuous batching: one thread per model that owns its runner, its slots and its queue.

The loop: admit and cancel, choose a chunk length, run, hand out, retire. A row's bits do not depend
on its neighbours, so requests join and leave between any two chunks. The engine knows tensors by
role, not text or ink.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from contract.golden import Arrays
from service.engine.jobs import GivenSteps, Job, length
from service.engine.runtime import Runner, stack_rows
from service.errors import EngineFault, NotReady, Overloaded, ServiceError
from service.metrics import EngineMetrics

log = logging.getLogger(__name__)

# So many runs that fail one after the other are no accident: the model stops being ready.
MOST_FAILURES = 3
_PATIENCE_S = 5.0  # with a run that was under way when the service stopped


class Replay(GivenSteps):
    """Reads the last steps of a finished job again, for the state after exactly the last.

    A chunk may run past the byte a job ends at, and the state is only known where chunks begin.
    """

    started = True

    def __init__(self, job: Job, state: Arrays, inputs: Arrays) -> None:
        super().__init__(state, job.row, inputs, wants_state=True)
        self._job = job

    @property
    def cancelled(self) -> bool:  # type: ignore[override]
        return self._job.cancelled

    def finish(self, state: Arrays | None) -> None:
        self._job.finish(state)

    def fail(self, error: ServiceError, state: Arrays | None = None) -> None:
        self._job.fail(error)  # the state of the last accepted step is what it was to find

    def publish(self) -> None:
        self._job.publish()


class Engine:
    """Runs jobs on one model until it is stopped."""

    def __init__(
        self,
        runner: Runner,
        metrics: EngineMetrics,
        *,
        chunk_steps: int,
        first_chunk_steps: int,
        queue_size: int,
        attest: Callable[[Runner], bool],
        name: str,
        another: Callable[[], Runner] | None = None,
    ) -> None:
        """`another` makes a runner in the place of one whose run failed; None keeps that one."""
        self._runner = runner
        self._another = another
        self._metrics = metrics
        self._chunk_steps = chunk_steps
        self._first_chunk_steps = first_chunk_steps
        self._queue_size = queue_size
        self._attest = attest
        self._waiting: deque[Job] = deque()
        self._slots: dict[int, Job] = {}
        self._row: Arrays = {}  # of the jobs in the slots; empty when those have changed
        self._wake = threading.Condition()
        self._stopping = False
        self._failures = 0  # runs that failed since the last that did not
        self._working_since_s: float | None = None
        self.ready = False
        self._thread = threading.Thread(target=self._loop, name=f"engine-{name}", daemon=True)

    def start(self) -> None:
        """Start the thread; it attests the model first and is ready if that succeeds."""
        self._thread.start()

    def stop(self) -> None:
        """End every job with an error and wait for the thread, if it is not stuck in a run."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        self._thread.join(_PATIENCE_S)
        if self._thread.is_alive():
            self._end_all(NotReady("the model is stuck"))

    @property
    def stalled_s(self) -> float:
        """For how long the run under way has been at it; 0 between runs."""
        since_s = self._working_since_s
        return 0.0 if since_s is None else time.monotonic() - since_s

    def submit(self, jobs: Sequence[Job]) -> None:
        """Queue all jobs or none. Raises `Overloaded` when they do not fit, `NotReady` before."""
        with self._wake:
            if not self.ready or self._stopping:
                raise NotReady("the model has not been attested, or the service is stopping")
            if len(self._waiting) + len(jobs) > self._queue_size:
                raise Overloaded(f"the queue is full ({self._queue_size} requests wait)")
            self._waiting.extend(jobs)
            self._metrics.waiting.set(len(self._waiting))
            self._wake.notify()

    def _loop(self) -> None:
        try:
            self.ready = self._attest(self._runner)
            while self._admit():
                self._try_chunk()
        except Exception:  # whatever it was, no caller may be left waiting for ever
            log.exception("the engine of a model failed")
        finally:
            self.ready = False
            self._end_all(NotReady("the model has stopped"))

    def _admit(self) -> bool:
        """Fill free slots from the queue; wait if there is nothing to do. False to stop."""
        with self._wake:
            for slot in [s for s, job in self._slots.items() if job.cancelled]:
                self._retire(slot)
            while not self._stopping:
                self._waiting = deque(job for job in self._waiting if not job.cancelled)
                while self._waiting and len(self._slots) < self._runner.width:
                    free = next(s for s in range(self._runner.width) if s not in self._slots)
                    self._place(free, self._waiting.popleft())
                self._metrics.waiting.set(len(self._waiting))
                self._metrics.running.set(len(self._slots))
                if self._slots:
                    return True
                self._wake.wait()
            return False

    def _try_chunk(self) -> None:
        """A run that fails ends its rows; those that wait go on, on a runner that is attested."""
        self._working_since_s = time.monotonic()
        try:
            self._run_chunk()
            self._failures = 0
        except Exception as error:
            log.exception("a run of %s failed", self._thread.name)
            self._failures += 1
            self._metrics.faults.inc()
            self._fail_rows(EngineFault(f"the run of the model failed: {type(error).__name__}"))
            if self._failures >= MOST_FAILURES:
                raise
            if self._another is not None:
                self._runner = self._another()
                self.ready = self._attest(self._runner)
                if not self.ready:
                    raise RuntimeError("a new runner was not attested") from error
        finally:
            self._working_since_s = None

    def _run_chunk(self) -> None:
        slots = sorted(self._slots)
        jobs = [self._slots[slot] for slot in slots]
        steps = self._chunk_length(jobs)
        for slot, job in zip(slots, jobs, strict=True):
            if job.overshoots and job.wants_state:
                job.anchor(self._runner.read(slot))
        if not self._row:
            self._row = stack_rows([job.row for job in jobs], axis=0)
        steps_in = stack_rows([job.inputs(steps) for job in jobs], axis=1)
        filtered = any(job.filtered for job in jobs)
        outputs = self._runner.run(slots, steps_in, self._row, filtered=filtered)
        _require_numbers(outputs)
        self._metrics.rows_per_run.observe(len(jobs))
        self._metrics.steps.inc(steps * len(jobs))
        for column, (slot, job) in enumerate(zip(slots, jobs, strict=True)):
            self._hand_out(slot, job, {n: array[:, column] for n, array in outputs.items()})

    def _chunk_length(self, jobs: Sequence[Job]) -> int:
        """Short while someone waits for a first byte, and never longer than anyone can use."""
        return min(
            min(j.steps_wanted(), self._chunk_steps if j.started else self._first_chunk_steps)
            for j in jobs
        )

    def _hand_out(self, slot: int, job: Job, outputs: Arrays) -> None:
        if not job.accept(outputs):
            if job.wants_checkpoint():
                job.checkpoint(self._runner.read(slot))
            job.publish()
        elif not job.wants_state:
            self._finish(slot, job, None)
        elif (again := job.replay()) is None:
            self._finish(slot, job, self._runner.read(slot))
        elif length(again[1]) == 0:
            self._finish(slot, job, again[0])
        else:
            self._place(slot, Replay(job, *again))

    def _finish(self, slot: int, job: Job, state: Arrays | None) -> None:
        self._retire(slot)
        job.finish(state)
        job.publish()

    def _place(self, slot: int, job: Job) -> None:
        self._slots[slot] = job
        self._row = {}
        self._runner.load(slot, job.state)

    def _retire(self, slot: int) -> None:
        del self._slots[slot]
        self._row = {}

    def _fail_rows(self, error: ServiceError) -> None:
        for slot, job in list(self._slots.items()):
            self._retire(slot)
            job.fail(error)
            job.publish()

    def _end_all(self, error: ServiceError) -> None:
        with self._wake:
            self._stopping = True
            for slot, job in self._slots.items():
                job.fail(error, self._runner.read(slot))
                job.publish()
            for job in self._waiting:
                job.fail(error)
                job.publish()
            self._slots.clear()
            self._waiting.clear()


def _require_numbers(outputs: Arrays) -> None:
    """Raise `ArithmeticError` for a NaN or an infinity, of which no answer can be made."""
    for name, array in outputs.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ArithmeticError(f"{name} is not finite")
