"""Jobs that run the very steps they are given, and keep what comes out of them.

Shapes: T steps.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from contract.golden import Arrays
from service.engine import terms
from service.engine.jobs import Job, length
from service.errors import ServiceError

if TYPE_CHECKING:
    from service.engine.engine import Engine


class GivenSteps(Job):
    """Exactly these steps: their outputs, and the state after the last of them if it is wanted.

    Golden vectors, a person's ink and whoever follows a model online are read this way.
    """

    started = True  # all of it is shown at the end: no part is in a hurry

    def __init__(
        self,
        state: Arrays,
        row: Arrays,
        steps: Arrays,
        *,
        wants_state: bool = False,
        filtered: bool = False,
    ) -> None:
        self.state = state
        self.row = row
        self.wants_state = wants_state
        self.filtered = filtered
        self.error: ServiceError | None = None
        self.done: Callable[[GivenSteps], object] = lambda job: None
        self._steps = steps
        self._read = 0
        self._outputs: list[Arrays] = []

    @property
    def outputs(self) -> Arrays:
        """What came out, `(T, ...)` each."""
        return {n: np.concatenate([o[n] for o in self._outputs]) for n in self._outputs[0]}

    def steps_wanted(self) -> int:
        return length(self._steps) - self._read

    def inputs(self, steps: int) -> Arrays:
        part = slice(self._read, self._read + steps)
        return {name: array[part] for name, array in self._steps.items()}

    def accept(self, outputs: Arrays) -> bool:
        self._outputs.append(outputs)
        self._read += length(outputs)
        return self.steps_wanted() == 0

    def finish(self, state: Arrays | None) -> None:
        self.state = self.state if state is None else state
        self.done(self)

    def fail(self, error: ServiceError, state: Arrays | None = None) -> None:
        self.error = error
        self.done(self)


class Replay(GivenSteps):
    """Reads the last steps of a finished job again, for the state after exactly the last.

    A chunk may run past the byte a job ends at, and the state is only known where chunks begin.
    """

    def __init__(self, job: Job, state: Arrays, inputs: Arrays) -> None:
        super().__init__(state, job.row, inputs, wants_state=True)
        self._job = job

    @property
    def cancelled(self) -> bool:  # type: ignore[override]
        return self._job.cancelled

    def finish(self, state: Arrays | None) -> None:
        self._job.finish(state)

    def fail(self, error: ServiceError, state: Arrays | None = None) -> None:
        self._job.fail(error)  # the state it was to find is not this one


async def run_steps(
    engine: "Engine", jobs: Sequence[GivenSteps], *, admitted: bool = False
) -> None:
    """Queue the jobs, at least one, and wait for all of them; they are cancelled if nobody waits
    any more. What is `admitted` was let in before.

    Raises what `Engine.submit` raises, the error of a job that failed, and `DeadlineExceeded` where
    the engine is stuck.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    left = len(jobs)

    def tell(job: GivenSteps) -> None:
        nonlocal left
        left -= 1
        if ended.done():  # nobody waits any more if the caller has gone
            return
        if job.error is not None:
            ended.set_exception(job.error)
        elif not left:
            ended.set_result(None)

    def give_up() -> None:
        if not ended.done():
            ended.set_exception(terms.late())

    for job in jobs:
        job.done = lambda job: loop.call_soon_threadsafe(tell, job)
    engine.submit(jobs, admitted=admitted)
    stuck = terms.once_stuck(give_up)
    try:
        await ended
    finally:
        for job in jobs:
            job.cancelled = True
        stuck.cancel()
