"""A long time at 70% of capacity, text beside ink, with clients that leave and models that are
swapped: memory, threads and files stay where they are, and every answer is the one it should be.
"""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import uvloop
from aiohttp import ClientSession
from scipy.stats import theilslopes

from bench.goal import Goal, judge
from bench.rows import OK
from bench.target import Target
from tests.reliability.held import held_by, settled
from tests.reliability.load import capacity_per_s, offer
from tests.reliability.record import Found
from tests.reliability.work import INK, LEFT, REFUSED, TEXT, Work, ask, connect

_LOAD = 0.7
_LEAVES_EVERY = 10  # clients
_SEEDS = 16  # of each work: so many answers are known
_SAMPLES = 300
_WARM_UP = 0.2  # of the time
_MOST_SLOPE_MB_PER_H = 1.0


@dataclass(frozen=True, slots=True)
class Sample:
    """What the service held at a moment."""

    minute: float
    resident_mb: float
    threads: int
    files: int


@dataclass(frozen=True, slots=True)
class SoakRow:
    """`wrong` answers differ from the one to the same request before; `failed` counts answers that
    were neither whole nor refused. The slope is Theil's and Sen's after the warm-up, in which
    threads that are kept for reloads are started; no more may come later."""

    minutes: float
    requests_per_s: float
    answers: int
    wrong: int
    left: int
    refused: int
    failed: dict[str, int]
    reloads: int
    reloads_failed: int
    resident_mb_per_h: float
    threads_grown: int
    files_grown: int


@dataclass
class _Soak:
    """What is going on, and what has come of it."""

    service: Target
    session: ClientSession
    known: dict[tuple[str, int], Sequence[object]] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)
    reloads: Counter[int] = field(default_factory=Counter)
    samples: list[Sample] = field(default_factory=list)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def learn(self) -> None:
        """What the answers have to be."""
        for work, seed in itertools.product((TEXT, INK), range(_SEEDS)):
            url = self.service.url("")
            while (reply := await ask(self.session, url, work, seed)).status == REFUSED:
                await asyncio.sleep(1)
            if reply.status != OK:
                raise RuntimeError(f"the service answers {reply.status}")
            self.known[work.name, seed] = reply.content

    async def one(self, work: Work, due_s: float, number: int) -> None:
        seed, leaves = number % _SEEDS, number % _LEAVES_EVERY == _LEAVES_EVERY - 1
        reply = await ask(self.session, self.service.url(""), work, seed, leaves=leaves)
        wrong = reply.status == OK and reply.content != self.known[work.name, seed]
        self.outcomes["wrong" if wrong else reply.status] += 1

    async def reload(self, every_s: float) -> None:
        for work in itertools.cycle((TEXT, INK)):
            if await self._over_within(every_s):
                return
            url = self.service.url(f"/v1/models/{work.model}/reload")
            async with self.session.post(url) as response:
                self.reloads[response.status] += 1

    async def watch(self, every_s: float) -> None:
        began_s = time.monotonic()
        while not await self._over_within(every_s):
            held = await asyncio.to_thread(held_by, self.service)
            minute = round((time.monotonic() - began_s) / 60, 3)
            self.samples.append(Sample(minute, held.resident_mb, held.threads, held.files))

    async def _over_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self.over.wait(), seconds)
        return self.over.is_set()


def measure(
    service: Target, minutes: float, reload_s: float = 10.0, capacity_s: float = 15.0
) -> Iterator[Found]:
    """So many minutes, and what they leave."""
    url = service.url("")
    capacity = uvloop.run(capacity_per_s(url, [TEXT, INK], capacity_s))
    rates = {work: _LOAD * each for work, each in capacity.items()}
    before = settled(service)
    soak = uvloop.run(_soak(service, rates, minutes * 60, reload_s))
    after = settled(service, lambda h: h.idle and h.files <= before.files)
    outcomes = soak.outcomes
    usual = (OK, LEFT, REFUSED, "wrong")
    row = SoakRow(
        minutes=minutes,
        requests_per_s=round(sum(rates.values()), 2),
        answers=outcomes[OK] + outcomes["wrong"],
        wrong=outcomes["wrong"],
        left=outcomes[LEFT],
        refused=outcomes[REFUSED],
        failed={status: n for status, n in outcomes.items() if status not in usual},
        reloads=soak.reloads[200],
        reloads_failed=soak.reloads.total() - soak.reloads[200],
        resident_mb_per_h=round(slope_mb_per_h(soak.samples), 3),
        threads_grown=after.threads - max(s.threads for s in _apart(soak.samples)[0]),
        files_grown=after.files - before.files,
    )
    yield from (("samples", sample) for sample in soak.samples)
    yield "soak", row
    yield from goals(row)


def goals(row: SoakRow) -> Iterator[Goal]:
    """What time may change."""
    yield judge(
        "slope of resident memory after the warm-up", "1 MB/h", "at most", _MOST_SLOPE_MB_PER_H,
        row.resident_mb_per_h, unit="MB/h",
    )  # fmt: skip
    yield judge("more threads", "none", "at most", 0, row.threads_grown)
    yield judge("more files and sockets", "none", "at most", 0, row.files_grown)
    yield judge("answers", "one", "at least", 1, row.answers)
    yield judge("wrong answers", "none", "at most", 0, row.wrong)
    yield judge("answers that failed", "none", "at most", 0, sum(row.failed.values()))
    yield judge("reloads that failed", "none", "at most", 0, row.reloads_failed)


def slope_mb_per_h(samples: Sequence[Sample]) -> float:
    """Of resident memory after the warm-up. A reload holds both models for a moment, which least
    squares would take for a slope where it falls near an end."""
    _, later = _apart(samples)
    hours = [s.minute / 60 for s in later]
    return float(theilslopes([s.resident_mb for s in later], hours).slope)


def _apart(samples: Sequence[Sample]) -> tuple[Sequence[Sample], Sequence[Sample]]:
    """Those of the warm-up, and the others."""
    end = 1 + int(_WARM_UP * (len(samples) - 1))
    return samples[:end], samples[end:]


async def _soak(
    service: Target, rates: dict[Work, float], seconds: float, reload_s: float
) -> _Soak:
    async with connect() as session:
        soak = _Soak(service, session)
        await soak.learn()
        aside = asyncio.gather(soak.reload(reload_s), soak.watch(seconds / _SAMPLES))
        await offer(rates, seconds, 1, soak.one)
        soak.over.set()
        await aside
    return soak
