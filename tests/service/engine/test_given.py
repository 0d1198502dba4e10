"""Who gave steps and waits is told on the event loop, though an engine's thread ran them."""

import asyncio
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from service.engine.given import GivenSteps, run_steps
from service.errors import EngineFault
from tests.service.interleaved import wakes


def test_a_job_that_ends_on_another_thread_is_taken_by_the_loop_that_it_wakes() -> None:
    jobs = [GivenSteps({}, {}, {}) for _ in range(2)]

    def submit(jobs: list[GivenSteps], *, admitted: bool) -> None:
        for job in jobs:
            thread = Thread(target=job.finish, args=(None,))
            thread.start()
            thread.join()

    async def wait() -> list[Any]:
        woken = wakes(asyncio.get_running_loop())
        await run_steps(SimpleNamespace(submit=submit), jobs)  # type: ignore[arg-type]
        return woken

    assert [job for _, job in asyncio.run(wait())] == jobs


def test_what_ends_once_nobody_waits_any_more_is_no_news() -> None:
    """The others of a request of which one has failed, or whose client has left."""
    jobs, told = [GivenSteps({}, {}, {}) for _ in range(2)], list[object]()

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
