"""The sections of HTTP: which loads the service and each peer get, and in which order.

One server runs at a time. What goals are made of is measured in rounds: every server once, then
all again, so that a slow spell of the machine meets all of them.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from bench import http
from bench.goal import Goal, judge
from bench.in_process import ROWS, InProcess, InProcessRow
from bench.peers.launch import launch
from bench.rows import Lengths, LoadRow, Spread
from bench.target import IN_EIGHT_BITS, PEERS, SERVERS, SERVICE
from service.engine.threads import usable_cores

# Given, so that a busy moment at a start does not decide a whole series.
_SETTINGS = {"EVENKEEL_THREADS": str(usable_cores())}
ALONE, MANY = 1, 32
_LENGTHS: tuple[Lengths, ...] = ("fixed", "mixed")
# The part of all that may have failed where a percentile of the others says something of all.
_BEYOND = {"p50": 0.5, "p99": 0.01}
Measured = tuple[str, LoadRow | InProcessRow]


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """`servers` in a closed loop of `clients`, 200 bytes, `repeats` times; the service with
    `service_clients` and mixed lengths too. In an open loop, `shares` of the service's capacity."""

    servers: tuple[str, ...]
    seconds: float
    repeats: int
    clients: tuple[int, ...] = (ALONE, MANY)
    service_clients: tuple[int, ...] = ()
    shares: tuple[float, ...] = ()
    open_seconds: float = 10.0


QUICK = LoadPlan((SERVICE, PEERS[0]), seconds=15.0, repeats=1)
_WITH_ROOM, _BELOW_CAPACITY = 0.8, 0.95
FULL = LoadPlan(
    tuple(SERVERS), seconds=8.0, repeats=2, service_clients=(1, 8, 32, 128),
    shares=(0.5, _WITH_ROOM, _BELOW_CAPACITY, 1.2),
)  # fmt: skip


def closed(full: bool, plan: LoadPlan | None = None) -> Iterator[Measured | Goal]:
    """The section `http`: the service, peers and the session in process, and their goals."""
    plan = plan or (FULL if full else QUICK)
    here = InProcess()
    load: list[LoadRow] = []
    inside: list[InProcessRow] = []
    for name in plan.servers * plan.repeats:
        for table, row in _headline(name, plan, here):
            (load if isinstance(row, LoadRow) else inside).append(row)
            yield table, row
    yield from _service_alone(plan)
    yield from goals(load, inside)


def opened(full: bool, plan: LoadPlan = FULL) -> Iterator[Measured | Goal]:
    """The section `open`: what each server can do with 32 clients; then all of them at each rate,
    one after the other, so that a slow spell of the machine meets every server at that rate. Rates
    are shares of what the service can do, of whole answers and of streams each by itself. The
    service answers in both of its modes, others in their last."""
    rows: list[LoadRow] = []
    modes = {n: SERVERS[n].modes if n == SERVICE else SERVERS[n].modes[-1:] for n in plan.servers}
    for name, streamed in ((n, mode) for n in plan.servers for mode in modes[n]):
        with launch(name, settings=_SETTINGS) as target:
            row = http.load(target, clients=MANY, seconds=plan.open_seconds, streamed=streamed)
        rows.append(row)
        yield "load", row
    answered: dict[float, list[LoadRow]] = {share: [] for share in plan.shares}
    for streamed in SERVERS[SERVICE].modes:
        most = capacity(SERVICE, rows, streamed=streamed)
        if not most:  # it answered nobody, and shares of that are nothing
            continue
        rates = [share * most for share in plan.shares]
        able = [name for name in plan.servers if streamed in modes[name]]
        for (share, rate), name in product(zip(plan.shares, rates, strict=True), able):
            own = capacity(name, rows, streamed=streamed)
            if rate not in offered(own, rates, plan.shares):
                continue
            # A server of its own for each: what an overload leaves behind is nobody else's.
            with launch(name, settings=_SETTINGS) as target:
                row = http.load(
                    target, seconds=plan.open_seconds, streamed=streamed, rate_per_s=rate
                )
            answered[share].append(row)
            yield "load", row
    yield from open_goals(answered)


def open_goals(answered: Mapping[float, Sequence[LoadRow]]) -> Iterator[Goal]:
    """Of an open loop, whose rows are known by the share of the service's capacity offered. A rate
    at which the service answered nobody is no reason to judge it by the others alone."""
    behind: list[tuple[float | None, float]] = []
    for share, rows in answered.items():
        whole = [row for row in rows if not row.streamed]
        mine = _p50(row for row in whole if row.target == SERVICE)
        theirs = _p50(row for row in whole if row.target in PEERS)
        if share <= _BELOW_CAPACITY and theirs is not None:
            behind.append((mine, theirs))

    def ratio(pair: tuple[float | None, float]) -> float:
        return math.inf if pair[0] is None else pair[0] / pair[1]

    mine, theirs = max(behind, key=ratio, default=(None, None))
    yield judge(
        "whole answers at each rate up to 95% of capacity, p50",
        "the best peer's, where that is furthest ahead", "at most", 1.0, mine, theirs, unit="ms",
    )  # fmt: skip
    streams = {
        share: [row for row in rows if row.target == SERVICE and row.streamed]
        for share, rows in answered.items()
    }
    early = [
        _of_all(row, "first_byte_ms", "p99")
        for share, rows in streams.items() if share <= _WITH_ROOM for row in rows
    ]  # fmt: skip
    yield judge(
        "streamed, first byte, p99 up to 80% of capacity", "the worst rate", "at most", 50.0,
        _most(early), unit="ms",
    )  # fmt: skip
    late = streams.get(_BELOW_CAPACITY, [])
    p50, p99 = (_percentile(late, "first_byte_ms", q) for q in _BEYOND)
    yield judge(
        "streamed, first byte, p99 at 95% of capacity", "3 times the p50", "at most", 3.0,
        p99, p50, unit="ms",
    )  # fmt: skip


def _p50(rows: Iterable[LoadRow]) -> float | None:
    """The least median latency of those that answered."""
    found = (_of_all(row, "latency_ms", "p50") for row in rows)
    return min((p50 for p50 in found if p50 is not None), default=None)


def capacity(name: str, rows: Sequence[LoadRow], *, streamed: bool) -> float:
    """Requests per second with 32 clients, all of them streamed or none: the median of repeats."""
    wanted = name, "closed", MANY, streamed
    mine = [r for r in rows if (r.target, r.loop, r.clients, r.streamed) == wanted]
    return statistics.median(r.requests_per_s for r in mine)


def offered(own: float, rates: Sequence[float], shares: Sequence[float]) -> list[float]:
    """Of the rates of the service, those a server is asked at: up to the first beyond what it can
    do; still more could only be worse."""
    most = max(shares) * own
    beyond = [rate for rate in rates if rate > most][:1]
    return [rate for rate in rates if rate <= most] + beyond


def goals(load: Sequence[LoadRow], inside: Sequence[InProcessRow]) -> Iterator[Goal]:
    """Of closed loops of 200 bytes; repeats count by their median."""
    plain = _closed(load, PEERS[0])
    yield judge(
        "completion of 200 bytes, one client, p50", "1.25 times the time in process, and 1 ms",
        "at most", 1.25, _percentile(_closed(load, clients=ALONE), "latency_ms", "p50"),
        _session(inside, ALONE, "ms_median"), plus=1.0, unit="ms",
    )  # fmt: skip
    bytes_per_s = _median(row.bytes_per_s for row in _closed(load))
    yield judge(
        "32 clients, throughput against the plain peer", "5 times FastAPI and a PyTorch loop",
        "at least", 5.0, bytes_per_s, _median(row.bytes_per_s for row in plain), unit="bytes/s",
    )  # fmt: skip
    yield judge(
        "32 clients, goodput against the best peer",
        "1.5 times the best of all peers, each in its better mode", "at least", 1.5,
        _best(load, SERVICE), _most(_best(load, name) for name in PEERS), unit="requests/s",
    )  # fmt: skip
    yield judge(
        "32 clients, throughput against the session", "0.8 times 32 rows in process",
        "at least", 0.8, bytes_per_s, _session(inside, ROWS, "bytes_per_s"), unit="bytes/s",
    )  # fmt: skip
    throughput = _most(_throughput(load, name) for name in PEERS)
    for name, suffix, factor in ((SERVICE, "", 1.3), (IN_EIGHT_BITS, " in eight bits", 2.0)):
        yield judge(
            f"32 clients, throughput{suffix} against the best peer",
            f"{factor:g} times the best of all peers, each in its better mode", "at least", factor,
            _throughput(load, name), throughput, unit="bytes/s",
        )  # fmt: skip
    streamed = _closed(load, streamed=True)
    p50, p99 = (_percentile(streamed, "first_byte_ms", q) for q in _BEYOND)
    yield judge(
        "32 clients, streamed, first byte, p99", "3 times the p50", "at most", 3.0, p99, p50,
        unit="ms",
    )  # fmt: skip


def _closed(
    load: Sequence[LoadRow], name: str = SERVICE, *, clients: int = MANY, streamed: bool = False
) -> list[LoadRow]:
    """The repeats of a closed loop of 200 bytes."""
    wanted = name, "closed", clients, streamed, "fixed"
    return [r for r in load if (r.target, r.loop, r.clients, r.streamed, r.lengths) == wanted]


def _percentile(rows: Sequence[LoadRow], column: str, which: str) -> float | None:
    return _median(_of_all(row, column, which) for row in rows)


def _of_all(row: LoadRow, column: str, which: str) -> float | None:
    """A percentile of those who were answered; None where more failed than lie beyond it."""
    spread: Spread | None = getattr(row, column)
    if spread is None or sum(row.errors.values()) > _BEYOND[which] * row.requests:
        return None
    return float(getattr(spread, which))


def _median(values: Iterable[float | None]) -> float | None:
    known = _known(values)
    return statistics.median(known) if known else None


def _most(values: Iterable[float | None]) -> float | None:
    return max(_known(values), default=None)


def _known(values: Iterable[float | None]) -> list[float]:
    """All or none: where one did not succeed is no reason to count the others alone."""
    every = list(values)
    known = [value for value in every if value is not None]
    return known if len(known) == len(every) else []


def _best(load: Sequence[LoadRow], name: str, column: str = "goodput_per_s") -> float | None:
    modes = [
        _median(getattr(row, column) for row in _closed(load, name, streamed=streamed))
        for streamed in (False, True)
    ]
    return max((mode for mode in modes if mode is not None), default=None)


def _throughput(load: Sequence[LoadRow], name: str) -> float | None:
    return _best(load, name, "bytes_per_s")


def _session(inside: Sequence[InProcessRow], rows: int, column: str) -> float | None:
    return _median(getattr(row, column) for row in inside if row.rows == rows)


def _headline(name: str, plan: LoadPlan, here: InProcess) -> Iterator[Measured]:
    with launch(name, settings=_SETTINGS) as target:
        # The session right before and right after the service's loads, while that waits idle.
        sessions = (ALONE, ROWS) if name == SERVICE else ()
        yield from (("in_process", here.measure(rows)) for rows in sessions)
        for clients, streamed in product(plan.clients, target.server.modes):
            row = http.load(target, clients=clients, seconds=plan.seconds, streamed=streamed)
            yield "load", row
        yield from (("in_process", here.measure(rows)) for rows in sessions)


def _service_alone(plan: LoadPlan) -> Iterator[Measured]:
    """Every number of clients and both kinds of length, but for what the rounds have measured."""
    if not plan.service_clients:
        return
    with launch(SERVICE, settings=_SETTINGS) as target:
        modes = target.server.modes
        for clients, lengths, streamed in product(plan.service_clients, _LENGTHS, modes):
            if lengths == "fixed" and clients in plan.clients:
                continue
            row = http.load(
                target, clients=clients, seconds=plan.seconds, streamed=streamed, lengths=lengths
            )
            yield "load", row
