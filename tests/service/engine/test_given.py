"""Who gave steps and waits is told on the event loop, though an engine's thread ran them."""

import asyncio
from threading import Thread, get_ident
from types import SimpleNamespace
from typing import Any

from contract.golden import Arrays
from service.engine.given import GivenSteps, run_steps


class _Noted(GivenSteps):
    """On which thread it is taken is noted."""

    taken_on: list[int]

    @property  # type: ignore[override]
    def error(self) -> None:
        self.taken_on.append(get_ident())

    @error.setter
    def error(self, error: object) -> None:
        self.taken_on = []


def test_a_job_that_ends_on_another_thread_wakes_the_loop_and_is_taken_there() -> None:
    nothing: Arrays = {}
    jobs, woken = [_Noted(nothing, nothing, nothing) for _ in range(2)], list[object]()

    def submit(jobs: list[GivenSteps], *, admitted: bool) -> None:
        for job in jobs:
            thread = Thread(target=job.finish, args=(None,))
            thread.start()
            thread.join()

    async def wait() -> None:
        loop: Any = asyncio.get_running_loop()
        wake = loop.call_soon_threadsafe
        loop.call_soon_threadsafe = lambda *call: (woken.append(call), wake(*call))
        await run_steps(SimpleNamespace(submit=submit), jobs)  # type: ignore[arg-type]

    asyncio.run(wait())
    assert len(woken) == 2
    assert {ident for job in jobs for ident in job.taken_on} == {get_ident()}
