"""Completions under load over HTTP, in a closed and in an open loop: `python -m bench.http NAME`.

Driver and server share the machine, so the driver is raw asyncio. Closed: N clients, each sending
its next request when it has its answer. Open: Poisson arrivals that wait for nobody, each on a
pooled connection. `bench.rows` defines what is counted.
"""

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable
from itertools import pairwise

import uvloop

from bench.arrivals import Lengths, lengths_and_seeds, schedule
from bench.connection import Answer, Connection
from bench.peers.launch import NAMES, launch
from bench.rows import OK, Load, LoadRow, Outcome, Window, summarise
from bench.target import Target

WARM_UP_S = 2.0
# Whoever has no answer after this is an error; the open loop ends this long after its last arrival.
PATIENCE_S = 30.0
MOST_CONNECTIONS = 1024


def closed_loop(
    target: Target, *, clients: int, seconds: float, streamed: bool = False,
    lengths: Lengths = "fixed", seed: int = 1, warm_up_s: float = WARM_UP_S,
) -> LoadRow:  # fmt: skip
    """Clients that ask again and again, for `seconds` after the warm-up."""
    load = Load(target.name, "closed", clients, None, streamed, lengths)

    async def work(run: "_Run") -> None:
        async def client() -> None:
            while (now_s := time.perf_counter()) < run.window.end_s:
                await run.ask(now_s)

        await asyncio.gather(*(client() for _ in range(clients)))

    return uvloop.run(_measure(target, load, seed, (warm_up_s, seconds), work))


def open_loop(
    target: Target, *, rate_per_s: float, seconds: float, streamed: bool = False,
    lengths: Lengths = "fixed", seed: int = 1, warm_up_s: float = WARM_UP_S,
) -> LoadRow:  # fmt: skip
    """Arrivals at a mean rate, for `seconds` after the warm-up, whoever keeps up with them."""
    load = Load(target.name, "open", None, rate_per_s, streamed, lengths)
    moments = schedule(rate_per_s, warm_up_s + seconds, seed)

    async def work(run: "_Run") -> None:
        asked = []
        for moment in moments:
            intended_s = run.began_s + moment
            await asyncio.sleep(max(0.0, intended_s - time.perf_counter()))
            asked.append(asyncio.create_task(run.ask(intended_s)))
        await asyncio.gather(*asked)

    return uvloop.run(_measure(target, load, seed, (warm_up_s, seconds), work))


class _Run:
    """One measurement under way: the pool of connections, the order of lengths, the outcomes."""

    def __init__(self, target: Target, load: Load, seed: int, warm_up_s: float, seconds: float):
        self.outcomes: list[Outcome] = []
        self.began_s = time.perf_counter()
        begin_s = self.began_s + warm_up_s
        self.window = Window(begin_s, begin_s + seconds)
        self._target, self._streamed = target, load.streamed
        self._sizes = lengths_and_seeds(load.lengths, seed)
        self._free: list[Connection] = []
        self._places = asyncio.Semaphore(MOST_CONNECTIONS)

    async def ask(self, intended_s: float) -> None:
        """One request, meant to be sent at `intended_s`; its outcome is kept, whatever it is."""
        size, seed = next(self._sizes)
        body = self._target.body(size, seed, stream=self._streamed)
        try:
            async with asyncio.timeout(PATIENCE_S):
                answer = await self._post(body)
            outcome = _outcome(answer, intended_s, self._target, streamed=self._streamed)
        except (OSError, TimeoutError, ValueError) as error:
            now_s = time.perf_counter()
            outcome = Outcome(intended_s, now_s, now_s, 0, type(error).__name__)
            await asyncio.sleep(0.01)  # a client that is refused at once does not spin
        self.outcomes.append(outcome)

    async def _post(self, body: bytes) -> Answer:
        async with self._places:
            connection = self._free.pop() if self._free else None
            if connection is None or not connection.usable:
                connection = await Connection.open(self._target.port)
            try:
                answer = await connection.post(self._target.path, body)
            except BaseException:
                connection.close()
                raise
            self._free.append(connection)
            return answer

    def close(self) -> None:
        """Hang up everywhere."""
        for connection in self._free:
            connection.close()


_Work = Callable[[_Run], Awaitable[None]]


async def _measure(
    target: Target, load: Load, seed: int, times_s: tuple[float, float], work: _Work
) -> LoadRow:
    if load.streamed not in target.modes:
        raise ValueError(f"{target.name} cannot be asked with streamed={load.streamed}")
    run, busy_s = _Run(target, load, seed, *times_s), time.process_time()
    try:
        await work(run)
    finally:
        run.close()
    cores = (time.process_time() - busy_s) / (time.perf_counter() - run.began_s)
    return summarise(load, run.outcomes, run.window, cores)


def _outcome(answer: Answer, intended_s: float, target: Target, *, streamed: bool) -> Outcome:
    status = str(answer.status)
    first_s = answer.arrivals[0][0] if answer.arrivals else answer.ended_s
    if status != OK:
        return Outcome(intended_s, first_s, answer.ended_s, 0, status)
    if not streamed:
        written = len(target.text(bytes(answer.body)).encode())
        return Outcome(intended_s, first_s, answer.ended_s, written, status)
    events = answer.events()
    written = sum(len(text.encode()) for _, text in events)
    gaps = tuple((later - s) / len(t.encode()) for (s, _), (later, t) in pairwise(events))
    return Outcome(intended_s, events[0][0], answer.ended_s, written, status, gaps)


def main() -> None:
    """A quick look at one server."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server", choices=NAMES)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--rate", type=float, default=20.0)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    with launch(options.server) as target:
        for mode in target.modes:
            load = {"seconds": options.seconds, "streamed": mode}
            print(closed_loop(target, clients=options.clients, **load).line())
            print(open_loop(target, rate_per_s=options.rate, lengths="mixed", **load).line())


if __name__ == "__main__":
    main()
