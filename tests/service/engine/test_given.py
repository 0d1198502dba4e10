"""Who gave steps and waits is told on the event loop, though an engine's thread ran them."""

import asyncio
from threading import Thread
from types import SimpleNamespace
from typing import Any

from service.engine.given import GivenSteps, run_steps
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
