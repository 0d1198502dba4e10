"""More than the service can do: how much of it is still good, who waits and what a refusal costs.

Good is an answer whose first byte is there in 50 ms and whose last one in 2 s, from the moment it
was meant to be asked for.
"""

import asyncio
import gc
import itertools
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import uvloop

from bench.goal import Goal, judge
from bench.rows import GOOD_FIRST_BYTE_MS, OK, Spread, spread
from bench.target import Target
from tests.reliability.load import capacity_per_s, offer, repeat
from tests.reliability.record import Found
from tests.reliability.work import INK, REFUSED, TEXT, Reply, Work, ask, connect

_JUDGED_AT = 3.0
SHARES = (0.5, 1.0, 2.0, _JUDGED_AT)
_WORKS = {"overload": (TEXT,), "beside": (TEXT, INK)}
PARTS = (*_WORKS, "callers")
GOOD_WHOLE_S = 2.0
_WARM_UP = 0.1  # of the time
_GREEDY, _OTHER = 200, "127.0.0.2"
# A driver that is later than this, or as busy, is what was measured.
_LATE_MS, _BUSY_CORES = 10.0, 0.9


@dataclass(frozen=True, slots=True)
class OfferRow:
    """Poisson arrivals of streamed requests at `times_capacity`.

    Refusals are 503s; `failed` counts what else went wrong. `late_ms` is how much later than meant
    the driver sent, `driver_cores` the processor time it took a second.
    """

    what: str
    times_capacity: float
    offered_per_s: float
    seconds: float
    requests: int
    good_per_s: float
    answered_per_s: float
    refused_share: float
    failed: dict[str, int]
    first_ms: Spread | None
    whole_ms: Spread | None
    refusal_ms: Spread | None
    retry_after_s: dict[str, int]
    late_ms: Spread | None
    driver_cores: float


@dataclass(frozen=True, slots=True)
class CallerRow:
    """One client that asks again and again, `beside` so many of another caller."""

    beside: int
    answers: int
    refused: int
    failed: dict[str, int]
    first_ms: Spread | None
    whole_ms: Spread | None


def measure(
    service: Target, seconds: float, capacity_s: float = 15.0, shares: Sequence[float] = SHARES,
    parts: Collection[str] = PARTS,
) -> Iterator[Found]:  # fmt: skip
    """Each share of the capacity for so long, of text and of text beside ink; one caller beside
    another; or some of these parts."""
    gc.disable()  # thousands of replies are kept: looking at them all made the driver 59 ms late
    try:
        yield from _measure(service.url(""), seconds, capacity_s, shares, parts)
    finally:
        gc.enable()


def _measure(
    url: str, seconds: float, capacity_s: float, shares: Sequence[float], parts: Collection[str]
) -> Iterator[Found]:
    rows: dict[str, list[OfferRow]] = {table: [] for table in _WORKS}
    for table in (table for table in _WORKS if table in parts):
        works = _WORKS[table]
        capacity = uvloop.run(capacity_per_s(url, works, capacity_s))
        yield "capacity", {f"{work.name}_per_s": round(c, 2) for work, c in capacity.items()}
        for share in shares:
            found = uvloop.run(_offer(url, capacity, share, seconds))
            rows[table] += found
            yield from ((table, row) for row in found)
    callers = []
    if "callers" in parts:
        callers = [uvloop.run(_one_caller(url, beside, seconds)) for beside in (0, _GREEDY)]
    yield from (("callers", row) for row in callers)
    yield from goals(rows, callers)


def goals(rows: Mapping[str, Sequence[OfferRow]], callers: Sequence[CallerRow]) -> Iterator[Goal]:
    """Of text alone, of the caller beside a greedy one, and of the driver, of what was measured."""
    if text := rows["overload"]:
        yield from _of_text(text)
    if callers:
        yield from _of_caller(callers[-1])
    for row in itertools.chain.from_iterable(rows.values()):
        yield from _of_driver(row)


def _of_text(rows: Sequence[OfferRow]) -> Iterator[Goal]:
    last = next((row for row in rows if row.times_capacity == _JUDGED_AT), None)
    # Alone it would be its own peak.
    most = max(row.good_per_s for row in rows) if len(rows) > 1 else None
    at = f"at {_JUDGED_AT:g} times capacity"
    yield judge(
        f"goodput {at}", "0.95 times its peak", "at least", 0.95, last and last.good_per_s, most,
        unit="requests/s",
    )  # fmt: skip
    refusal = last and last.refusal_ms and last.refusal_ms.p99
    yield judge(f"refusal {at}, p99", "5 ms", "at most", 5.0, refusal, unit="ms")


def _of_caller(beside: CallerRow) -> Iterator[Goal]:
    first = beside.first_ms and beside.first_ms.p99
    yield judge(
        f"first byte beside a caller of {_GREEDY}, p99", "what is good", "at most",
        GOOD_FIRST_BYTE_MS, first, unit="ms",
    )  # fmt: skip
    yield judge("refusals of that one caller", "none", "at most", 0, beside.refused)


def _of_driver(row: OfferRow) -> Iterator[Goal]:
    """Goals that it misses; of one that was early and idle there is nothing to say."""
    late = row.late_ms.p99 if row.late_ms else 0.0
    at = f"at {row.times_capacity:g} times capacity"
    if late > _LATE_MS:
        yield judge(
            f"the driver of {row.what} keeps up {at}", f"sends within {_LATE_MS} ms, p99",
            "at most", _LATE_MS, late, unit="ms",
        )  # fmt: skip
    if row.driver_cores > _BUSY_CORES:
        yield judge(
            f"the driver of {row.what} has time {at}", f"{_BUSY_CORES} of a core", "at most",
            _BUSY_CORES, row.driver_cores, unit="cores",
        )  # fmt: skip


async def _offer(
    url: str, capacity: Mapping[Work, float], share: float, seconds: float
) -> list[OfferRow]:
    """A row for each work, all offered at once."""
    rates = {work: share * each for work, each in capacity.items()}
    warm_up_s = _WARM_UP * seconds
    began_s, busy_s = time.perf_counter(), time.process_time()
    async with connect() as session:

        async def one(work: Work, due_s: float, number: int) -> Reply:
            return await ask(session, url, work, number, intended_s=due_s)

        replies = await offer(rates, warm_up_s + seconds, 1, one)
    cores = (time.process_time() - busy_s) / (time.perf_counter() - began_s)
    window = began_s + warm_up_s, began_s + warm_up_s + seconds
    return [_row(work, share, rates[work], replies[work], window, cores) for work in rates]


def _row(
    work: Work, share: float, rate: float, replies: Sequence[Reply], window: tuple[float, float],
    cores: float,
) -> OfferRow:  # fmt: skip
    seconds = window[1] - window[0]
    meant = [r for r in replies if window[0] <= r.intended_s < window[1]]
    fine = [r for r in meant if r.status == OK]
    refused = [r for r in meant if r.status == REFUSED]
    return OfferRow(
        what=work.name,
        times_capacity=share,
        offered_per_s=round(rate, 2),
        seconds=round(seconds, 3),
        requests=len(meant),
        good_per_s=round(sum(map(_good, fine)) / seconds, 2),
        answered_per_s=round(len(fine) / seconds, 2),
        refused_share=round(len(refused) / max(1, len(meant)), 4),
        failed=_failed(meant),
        first_ms=spread(r.first_s - r.intended_s for r in fine),
        whole_ms=spread(r.ended_s - r.intended_s for r in fine),
        refusal_ms=spread(r.ended_s - r.sent_s for r in refused),
        retry_after_s=dict(sorted(Counter(str(r.retry_after_s) for r in refused).items())),
        late_ms=spread(r.sent_s - r.intended_s for r in meant),
        driver_cores=round(cores, 3),
    )


def _good(reply: Reply) -> bool:
    first_ms = (reply.first_s - reply.intended_s) * 1e3
    return first_ms <= GOOD_FIRST_BYTE_MS and reply.ended_s - reply.intended_s <= GOOD_WHOLE_S


def _failed(replies: Sequence[Reply]) -> dict[str, int]:
    return dict(Counter(r.status for r in replies if r.status not in (OK, REFUSED)))


async def _one_caller(url: str, beside: int, seconds: float) -> CallerRow:
    async with connect() as session, connect(_OTHER) as theirs:
        greedy = asyncio.ensure_future(
            repeat(beside, (1 + _WARM_UP) * seconds, partial(ask, theirs, url, TEXT))
        )
        await asyncio.sleep(_WARM_UP * seconds)
        mine = await repeat(1, seconds, partial(ask, session, url, TEXT))
        await greedy
    fine = [r for r in mine if r.status == OK]
    return CallerRow(
        beside, len(fine), sum(r.status == REFUSED for r in mine), _failed(mine),
        spread(r.first_s - r.sent_s for r in fine), spread(r.ended_s - r.sent_s for r in fine),
    )  # fmt: skip
