"""The sections of HTTP: which loads the service and each peer get, and in which order.

One server runs at a time. What goals are made of is measured in rounds: every server once, then
all again, so that a slow spell of the machine meets all of them.
"""

import os
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from bench.arrivals import Lengths
from bench.http import closed_loop, open_loop
from bench.in_process import ROWS, InProcess, InProcessRow
from bench.peers.launch import NAMES, PEERS, launch
from bench.rows import LoadRow

SERVICE = "service"
# Given, so that a busy moment at a start does not decide a whole series.
_SETTINGS = {"EVENKEEL_THREADS": str(os.cpu_count() or 1)}
ALONE, MANY = 1, 32
_LENGTHS: tuple[Lengths, ...] = ("fixed", "mixed")
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
FULL = LoadPlan(
    NAMES, seconds=8.0, repeats=2, service_clients=(1, 8, 32, 128), shares=(0.5, 0.8, 0.95, 1.2)
)


def measure(plan: LoadPlan) -> Iterator[Measured]:
    """Rows as they are measured, each with the name of its table."""
    here = InProcess()
    for _ in range(plan.repeats):
        for name in plan.servers:
            yield from _headline(name, plan, here)
    yield from _service_alone(plan)


def measure_open(plan: LoadPlan) -> Iterator[Measured]:
    """What each server can do with 32 clients; then all of them at each rate, one after the other,
    so that a slow spell of the machine meets every server at that rate."""
    closed: list[LoadRow] = []
    for name in plan.servers:
        with launch(name, settings=_SETTINGS) as target:
            streamed = target.modes[-1]
            closed.append(
                closed_loop(target, clients=MANY, seconds=plan.open_seconds, streamed=streamed)
            )
        yield "load", closed[-1]
    rates = [share * capacity(SERVICE, closed) for share in plan.shares]
    for rate in rates:
        for name in plan.servers:
            if rate not in offered(capacity(name, closed), rates, plan.shares):
                continue
            # A server of its own for each rate: what an overload leaves behind is nobody else's.
            with launch(name, settings=_SETTINGS) as target:
                streamed = target.modes[-1]
                load = {"seconds": plan.open_seconds, "streamed": streamed}
                yield "load", open_loop(target, rate_per_s=rate, **load)


def capacity(name: str, rows: Sequence[LoadRow]) -> float:
    """Requests per second with 32 clients, streamed if the server can: the median of repeats."""
    mine = [r for r in rows if r.target == name and r.loop == "closed" and r.clients == MANY]
    streamed = max(r.streamed for r in mine)
    return statistics.median(r.requests_per_s for r in mine if r.streamed == streamed)


def offered(own: float, rates: Sequence[float], shares: Sequence[float]) -> list[float]:
    """Of the rates of the service, those a server is asked at: up to the first beyond what it can
    do; still more could only be worse."""
    most = max(shares) * own
    beyond = [rate for rate in rates if rate > most][:1]
    return [rate for rate in rates if rate <= most] + beyond


def _headline(name: str, plan: LoadPlan, here: InProcess) -> Iterator[Measured]:
    with launch(name, settings=_SETTINGS) as target:
        if name == SERVICE:
            yield from _in_process(here)
        for clients, streamed in product(plan.clients, target.modes):
            row = closed_loop(target, clients=clients, seconds=plan.seconds, streamed=streamed)
            yield "load", row
        if name == SERVICE:
            yield from _in_process(here)


def _in_process(here: InProcess) -> Iterator[Measured]:
    """Right before and right after the service's loads, while it waits idle."""
    for rows in (ALONE, ROWS):
        yield "in_process", here.measure(rows)


def _service_alone(plan: LoadPlan) -> Iterator[Measured]:
    """Every number of clients and both kinds of length, but for what the rounds have measured."""
    if not plan.service_clients:
        return
    with launch(SERVICE, settings=_SETTINGS) as target:
        for clients, lengths, streamed in product(plan.service_clients, _LENGTHS, target.modes):
            if lengths == "fixed" and clients in plan.clients:
                continue
            row = closed_loop(
                target, clients=clients, seconds=plan.seconds, streamed=streamed, lengths=lengths
            )
            yield "load", row
