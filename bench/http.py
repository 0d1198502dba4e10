"""A server under load, in a closed and in an open loop; `bench.rows` defines what is counted.

Closed: N clients, each sending its next request when it has its answer. Open: Poisson arrivals that
wait for nobody, each on a pooled connection. What is asked for is decided by a seed.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import accumulate, count, pairwise, takewhile

import uvloop
from aiohttp import ClientError

from bench.client import Answer, ask, connect
from bench.rows import Lengths, Load, LoadRow, Outcome, Window, summarise
from bench.target import BYTES, Target

SHORTEST, LONGEST = 16, 400
WARM_UP_S = 2.0
# Whoever has no answer after this is an error; the open loop ends this long after its last arrival.
PATIENCE_S = 30.0
MOST_CONNECTIONS = 1024
_Ask = Callable[[float], Awaitable[None]]


def schedule(rate_per_s: float, seconds: float, seed: int) -> list[float]:
    """Seconds from the start at which requests are meant to be sent; a Poisson process."""
    gaps = random.Random(seed)
    moments = accumulate(gaps.expovariate(rate_per_s) for _ in count())
    return list(takewhile(lambda moment: moment < seconds, moments))


def load(
    target: Target, *, seconds: float, clients: int | None = None, rate_per_s: float | None = None,
    streamed: bool = False, lengths: Lengths = "fixed", seed: int = 1,
    warm_up_s: float = WARM_UP_S,
) -> LoadRow:  # fmt: skip
    """Clients that ask again and again, or arrivals at a mean rate whoever keeps up with them, for
    `seconds` after the warm-up."""
    if streamed not in target.server.modes:
        raise ValueError(f"{target.name} cannot be asked with streamed={streamed}")
    loop = "open" if clients is None else "closed"
    asked = Load(target.name, loop, clients, rate_per_s, streamed, lengths)
    return uvloop.run(_measure(target, asked, seed, warm_up_s, seconds))


async def _measure(
    target: Target, load: Load, seed: int, warm_up_s: float, seconds: float
) -> LoadRow:
    outcomes: list[Outcome] = []
    sizes = _sizes(load.lengths, seed)
    began_s, busy_s = time.perf_counter(), time.process_time()
    window = Window(began_s + warm_up_s, began_s + warm_up_s + seconds)
    async with connect(MOST_CONNECTIONS, PATIENCE_S) as session:

        async def one(intended_s: float) -> None:
            size, number = next(sizes)
            try:
                answer = await ask(session, target, size, number, streamed=load.streamed)
                outcomes.append(_outcome(intended_s, answer))
            except (ClientError, OSError, TimeoutError, ValueError) as error:
                now_s = time.perf_counter()
                outcomes.append(Outcome(intended_s, now_s, now_s, 0, type(error).__name__))
                await asyncio.sleep(0.01)  # a client that is refused at once does not spin

        if load.rate_per_s is None:
            await asyncio.gather(*(_client(one, window.end_s) for _ in range(load.clients or 0)))
        else:
            moments = schedule(load.rate_per_s, warm_up_s + seconds, seed)
            await _arrive(one, [began_s + moment for moment in moments])
    cores = (time.process_time() - busy_s) / (time.perf_counter() - began_s)
    return summarise(load, outcomes, window, cores)


async def _client(one: _Ask, end_s: float) -> None:
    while (now_s := time.perf_counter()) < end_s:
        await one(now_s)


async def _arrive(one: _Ask, moments_s: list[float]) -> None:
    asked = []
    for intended_s in moments_s:
        await asyncio.sleep(max(0.0, intended_s - time.perf_counter()))
        asked.append(asyncio.ensure_future(one(intended_s)))
    await asyncio.gather(*asked)


def _sizes(lengths: Lengths, seed: int) -> Iterator[tuple[int, int]]:
    """Bytes to write and seed of one request after the other: 200, or evenly from 16 to 400."""
    order = random.Random(seed)
    while True:
        size = BYTES if lengths == "fixed" else order.randint(SHORTEST, LONGEST)
        yield size, order.getrandbits(31)


def _outcome(intended_s: float, answer: Answer) -> Outcome:
    sizes = [(moment_s, len(text.encode())) for moment_s, text in answer.events]
    gaps = tuple((later - s) / size for (s, _), (later, size) in pairwise(sizes))
    written = sum(size for _, size in sizes)
    return Outcome(intended_s, answer.first_s, answer.ended_s, written, answer.status, gaps)
