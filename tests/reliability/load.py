"""Loads: arrivals that wait for nobody, and clients that ask again when they have their answer."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from bench.http import schedule
from bench.rows import OK
from tests.reliability.work import Reply, Work, ask, connect

T = TypeVar("T")


async def offer(
    rates_per_s: Mapping[Work, float], seconds: float, seed: int,
    one: Callable[[Work, float, int], Awaitable[T]],
) -> dict[Work, list[T]]:  # fmt: skip
    """Poisson arrivals that wait for nobody: `one` is called with the work, when it is due and a
    number."""
    began_s = time.perf_counter()
    due = sorted(
        (moment_s, number, work)
        for order, (work, rate) in enumerate(rates_per_s.items())
        for number, moment_s in enumerate(schedule(rate, seconds, seed + order))
    )
    asked: dict[Work, list[asyncio.Future[T]]] = {work: [] for work in rates_per_s}
    for moment_s, number, work in due:
        await asyncio.sleep(max(0.0, began_s + moment_s - time.perf_counter()))
        asked[work].append(asyncio.ensure_future(one(work, began_s + moment_s, number)))
    return {work: await asyncio.gather(*mine) for work, mine in asked.items()}


async def repeat(
    clients: int, seconds: float, one: Callable[[int], Awaitable[Reply]]
) -> list[Reply]:
    """A closed loop: each client asks again when it has its answer, or may come back."""
    end_s = time.perf_counter() + seconds
    replies: list[Reply] = []

    async def client() -> None:
        while time.perf_counter() < end_s:
            reply = await one(len(replies))
            replies.append(reply)
            if reply.status != OK:
                await asyncio.sleep(float(reply.retry_after_s or 0.1))

    await asyncio.gather(*(client() for _ in range(clients)))
    return replies


async def capacity_per_s(
    url: str, works: Sequence[Work], seconds: float, clients: int = 32
) -> dict[Work, float]:
    """Whole answers a second to so many clients in a closed loop, who share the works; all of them
    at once."""
    async with connect() as session:

        async def answers(work: Work) -> list[Reply]:
            def one(number: int) -> Awaitable[Reply]:
                return ask(session, url, work, number, streamed=False)

            return await repeat(clients // len(works), seconds, one)

        began_s = time.perf_counter()
        replies = await asyncio.gather(*map(answers, works))
    took_s = time.perf_counter() - began_s
    counts = (sum(reply.status == OK for reply in mine) for mine in replies)
    return {work: count / took_s for work, count in zip(works, counts, strict=True)}
