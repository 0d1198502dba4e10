"""Continuous batching: one thread per model that owns its runner, its slots and its queue.

The loop: admit and cancel, choose a chunk length, run, hand out, retire. A row's bits do not depend
on its neighbours, so requests join and leave between any two chunks, and one that has had its share
is parked: its state is a value. The engine knows tensors by role, not text or ink.
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from service.engine import terms
from service.engine.chunk import Chunks
from service.engine.core_budget import CoreBudget, CoreShare
from service.engine.given import GivenSteps
from service.engine.jobs import Job
from service.engine.limits import Limits
from service.engine.pace import Pace
from service.engine.runners import Runner
from service.engine.slots import Slots
from service.engine.terms import Terms
from service.errors import EngineFault, NotReady, Overloaded
from service.metrics import EngineMetrics

log = logging.getLogger(__name__)

# So many runs that fail one after the other are no accident: the model stops being ready.
MOST_FAILURES = 3
# With a run that was under way when it was told to stop: who waits for it has to be told within the
# time the server has for last words.
_PATIENCE_S = 2.0
_LOOK_S = 0.5  # between two looks at jobs that wait for whoever reads them
# What whoever asks may run itself: nobody else on its thread, the event loop, waits for longer.
_SHORT_S = 0.002
_NOT_YET = "the model has not been attested, or the service is stopping"


class Engine:
    """Runs jobs on one model until it is stopped."""

    def __init__(
        self,
        runner: Runner,
        metrics: EngineMetrics,
        *,
        limits: Limits,
        attest: Callable[[Runner], bool],
        measure: Callable[[Runner], Pace],
        name: str,
        another: Callable[[], Runner] | None = None,
        problem: Callable[[], str | None] = lambda: None,
        share: CoreShare | None = None,
    ) -> None:
        """`another` makes a runner in the place of one whose run failed; None keeps that one.
        `problem` says why a model will not serve; `share` is where others see that it works."""
        self.name = name
        self._slots = Slots(runner, metrics, limits.slice_s)
        self._wake = self._slots.lock
        self._another = another
        self._share = share or CoreBudget(cores=1).share(threads=1)
        self._metrics = metrics
        self._limits = limits
        self._attest = attest
        self._measure = measure
        self._problem = problem
        self._stopping = False
        self._patient_until_s = math.inf  # when a run is given up, once the engine is to stop
        self._given_up = False  # it had to stop in the midst of a run
        self._failures = 0  # runs that failed since the last that did not
        self._taken = True  # whether the event loop has taken all that the last chunk put out
        self._waited_s = 0.0  # for the event loop to take that, before the present chunk
        self._news = False  # whether something has changed since its thread's last look
        self._idle = False  # its thread sleeps, and touches nothing until it has the lock
        self._failed: Exception | None = None  # what a run on another thread ended with
        self._now_again_s = 0.0  # when `run_now` may run the next job, of `time.monotonic`
        self._working_since_s: float | None = None
        self.ready = False
        self.attested = threading.Event()  # set once it is known whether it is ready
        self._thread = threading.Thread(target=self._loop, name=f"engine-{name}", daemon=True)

    def start(self) -> None:
        """Start the thread, unless that has been done; it attests the model first and is ready if
        that succeeds. Raises `RuntimeError` where the system gives none."""
        if self._thread.ident is None:
            self._thread.start()

    def tell_to_stop(self) -> None:
        """Have the thread end every job with an error, and itself; `stop` waits for that."""
        with self._wake:
            self._stopping = True
            self._patient_until_s = min(self._patient_until_s, time.monotonic() + _PATIENCE_S)
            self._tell_thread()

    def stop(self) -> None:
        """End every job with an error and wait for the thread; a run that is stuck is given up."""
        self.tell_to_stop()
        self._thread.join(max(0.0, self._patient_until_s - time.monotonic()))
        if self._thread.is_alive():
            self._slots.end_all(NotReady("the model is stuck"), states_known=False)
            self._given_up = True
            self._slots.runner.give_up()

    def wake(self) -> None:
        """Have the thread look at its jobs again: one was cancelled, paused or resumed."""
        with self._wake:
            self._tell_thread()

    def _tell_thread(self) -> None:
        """There is something for the thread to look at; `_wake` is held."""
        self._news = True
        self._wake.notify()

    def _see_taken(self) -> None:
        """What the last chunk put out has been taken: called back by the job's `then`."""
        self._taken = True
        self.wake()

    @property
    def threads(self) -> int:
        """Of its runs at present, if it need not make do with fewer."""
        return self._slots.runner.threads

    @property
    def stalled_s(self) -> float:
        """For how long it has been at its present chunk; 0 while it has nothing to do."""
        since_s = self._working_since_s
        return 0.0 if since_s is None else time.monotonic() - since_s

    def submit(self, jobs: Sequence[Job], *, admitted: bool = False) -> None:
        """Queue all jobs or none. Raises `NotReady` unless the model is ready. Unless the jobs are
        `admitted`, part of a request that was let in before, also raises the `Overloaded` of
        `Schedule.overload`, and `DeadlineExceeded` once their deadline has passed."""
        with self._wake:
            if not self.ready or self._stopping:
                leaving = self._patient_until_s < math.inf
                raise NotReady(_NOT_YET if leaving else self._problem() or _NOT_YET)
            if not jobs:
                return
            asked = terms.current()
            if not admitted:
                if asked.deadline_s <= time.monotonic():
                    raise terms.late()
                if error := self._overload(len(jobs), jobs[0].steps_expected(), asked):
                    raise error
            schedule = self._slots.schedule
            schedule.add(jobs, asked)
            self._metrics.waiting.set(len(schedule.waiting))
            self._tell_thread()

    def refusal(self, steps: int) -> Overloaded | None:
        """The `Overloaded` that `submit` would raise for a job of at least so many steps; None if
        it might let the job in, or would refuse it for another reason."""
        with self._wake:
            asked = terms.current()
            able = self.ready and not self._stopping and asked.deadline_s > time.monotonic()
            return self._overload(1, steps, asked) if able else None

    def run_now(self, job: GivenSteps) -> bool:
        """Run a short job on this thread if nothing else is to do; whether it has ended.

        Handing it to the engine's thread and back takes as long as a step. Of the time of this
        thread no more than two thirds are taken. Raises `EngineFault`.
        """
        with _at_once(self._slots.runner.turn) as free, _at_once(self._wake) as at_rest:
            now_s = time.monotonic()
            if not (free and at_rest and self._may_run_now(job, now_s)):
                return False
            try:
                self._chunks.run_alone(job)
            except Exception as error:
                self._failed = error  # its own thread will find another runner
                self._tell_thread()
                raise _fault(error) from error
            self._failures = 0
            ended_s = time.monotonic()
            self._now_again_s = ended_s + (ended_s - now_s) / 2
            return True

    def _may_run_now(self, job: GivenSteps, now_s: float) -> bool:
        if not (self.ready and self._idle) or self._stopping or self._failed is not None:
            return False
        due = self._now_again_s <= now_s < terms.current().deadline_s
        if self._slots.schedule.waiting or not due:
            return False
        steps = job.steps_wanted()
        step_s = self._pace.step_s(1, filtered=job.filtered)
        return steps <= self._limits.chunk_steps and steps * step_s <= _SHORT_S

    def _overload(self, count: int, steps: int, asked: Terms) -> Overloaded | None:
        most_s = min(self._limits.max_wait_s, asked.deadline_s - time.monotonic())
        step_s = self._pace.wait_s(self._slots.runner.width)
        size, schedule = self._limits.queue_size, self._slots.schedule
        return schedule.overload(asked.caller, count, steps, size, step_s, most_s)

    def _loop(self) -> None:
        try:
            self._working_since_s = time.monotonic()
            agrees = self._attest(self._slots.runner)
            self._pace = self._measure(self._slots.runner)
            self._chunks = Chunks(self._slots, self._pace, self._limits, self._metrics)
            self.ready = agrees
            self.attested.set()
            while self._admit():
                self._run_chunk()
        except Exception as error:  # whatever it was, no caller may be left waiting for ever
            self._tell("%s failed", error)
        finally:
            self.ready = False
            self._share.release()
            self.attested.set()
            self._slots.end_all(NotReady("the model has stopped"), states_known=True)
            self._working_since_s = None

    def _admit(self) -> bool:
        """Fill the slots from the queue; wait if there is nothing to do. False to stop."""
        schedule = self._slots.schedule
        with self._wake:
            # An engine that ran ahead would leave the event loop too little to refuse anybody with.
            began_s = time.perf_counter()
            self._wake.wait_for(lambda: self._taken or self._stopping, _LOOK_S)
            self._waited_s = time.perf_counter() - began_s
        while True:
            with self._wake:
                if self._stopping:
                    return False
                self._news, now_s = False, time.monotonic()
                self._working_since_s = now_s
            if self._failed is None:
                self._slots.tend(now_s)
            with self._wake:
                if schedule.slots or self._failed is not None:
                    self._share.acquire()
                    return True
                self._share.release()
                self._working_since_s = None
                self._idle = True
                self._wake.wait_for(lambda: self._news, _LOOK_S if schedule.waiting else None)
                self._idle = False

    def _run_chunk(self) -> None:
        """One chunk of every row."""
        if self._failed is not None:
            error, self._failed = self._failed, None
            self._recover([], error)
            return
        groups = self._slots.groups(self._pace)
        step_s = sum(self._pace.step_s(len(some), filtered=f) for some, f in groups)
        jobs = [ticket.job for ticket in self._slots.schedule.slots.values()]
        steps = self._chunks.steps_for(jobs, step_s)
        began_s, run_s = time.perf_counter(), 0.0
        for some, with_filters in groups:
            try:
                run_s += self._chunks.run(some, steps, filtered=with_filters)
            except Exception as error:
                self._recover(some, error)
                return
        self._failures = 0
        self._slots.schedule.steps += steps
        if then := next((job.then for job in jobs if job.then is not None), None):
            self._taken = False
            then(self._see_taken)
        self._pace.follow_chunk(self._waited_s + time.perf_counter() - began_s, run_s)

    def _recover(self, slots: Sequence[int], error: Exception) -> None:
        """A run that fails ends its rows; all others go on, on a runner that is attested."""
        self._tell("a run of %s failed", error)
        self._failures += 1
        self._metrics.faults.inc()
        with self._slots.handing_out:
            for slot in slots:
                ticket = self._slots.schedule.slots.get(slot)
                if ticket is not None:  # it may have ended before another of its run failed
                    self._slots.retire(slot)
                    ticket.job.fail(_fault(error))
        if self._failures >= MOST_FAILURES:
            raise error
        if self._another is None or self._stopping:
            return
        try:
            runner = self._another()
        except Exception:  # its folder may hold something else by now
            log.exception("%s has no other runner, and keeps the one whose run failed", self.name)
            runner = self._slots.runner
        self._slots.move_to(runner)
        self.ready = self._attest(runner)
        if not self.ready:
            raise RuntimeError("a new runner was not attested") from error

    def _tell(self, what: str, error: Exception) -> None:
        """Log a failure; one that came of the stop itself is none."""
        if self._given_up:
            log.warning("%s was given up in the midst of a run", self._thread.name)
        else:
            log.error(what, self._thread.name, exc_info=error)


@contextmanager
def _at_once(lock: "threading.RLock | threading.Condition") -> Iterator[bool]:
    """Have a lock if it can be had without waiting; whether it could."""
    had = lock.acquire(blocking=False)
    try:
        yield had
    finally:
        if had:
            lock.release()


def _fault(error: Exception) -> EngineFault:
    return EngineFault(f"the run of the model failed: {type(error).__name__}")
