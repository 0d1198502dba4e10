"""Who gave steps and waits is told on the event loop, though an engine's thread ran them."""

import asyncio
from threading import Thread, get_ident
from types import SimpleNamespace
from typing import Any

import pytest

from contract.golden import Arrays
from service.engine.given import GivenSteps, run_steps
from service.errors import EngineFault


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


def test_what_ends_once_nobody_waits_any_more_is_no_news() -> None:
    """The others of a request of which one has failed, or whose client has left."""
    nothing: Arrays = {}
    jobs, told = [GivenSteps(nothing, nothing, nothing) for _ in range(2)], list[object]()

    def submit(jobs: list[GivenSteps], *, admitted: bool) -> None:
        jobs[0].fail(EngineFault("lost"))

    async def wait() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *told_: told.append(told_))
        with pytest.raises(EngineFault):
            await run_steps(SimpleNamespace(submit=submit), jobs)  # type: ignore[arg-type]
        assert all(job.cancelled for job in jobs)
        jobs[1].finish(None)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(wait())
    assert not told
