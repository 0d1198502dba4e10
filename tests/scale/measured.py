"""One replica and two, direct, through HAProxy and through Ray's proxy: what a second one gives on
this machine, and what a hop costs, in time and in processor time.

Time wants a quiet machine; processor time is about the same whatever else runs, and says which
process it was spent in.
"""

import os
import statistics
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import httpx
import psutil

from bench.http import WARM_UP_S, load
from tests.scale.fleets import Measured, balanced, direct, rayed

_CLIENTS, _SECONDS = 8, 6.0
_ALONE = 150  # requests of one client, for a byte each


def measure() -> Iterator[tuple[str, dict[str, Any]]]:
    """A row for each way."""
    ways: list[tuple[int, int, AbstractContextManager[Measured]]] = [
        (1, 1, direct()),
        (1, 2, direct(threads=2)),
        (1, 1, balanced(1)),
        (2, 1, balanced(2)),
        (1, 1, rayed(1)),
        (2, 1, rayed(2)),
    ]
    for replicas, threads, way in ways:
        with way as fleet:
            row = {"way": fleet.target.name, "replicas": replicas, "threads": threads}
            yield "fleets", row | _alone(fleet) | _together(fleet)


def _alone(fleet: Measured) -> dict[str, Any]:
    """Whole answers of a byte, one after the other: time, and processor time of each."""
    took_ms, said = [], {"content-type": "application/json"}
    with httpx.Client(headers=said, timeout=60, trust_env=False) as client:
        front_s, replicas_s = _busy_s(fleet.front()), _busy_s(fleet.pids())
        for number in range(_ALONE):
            body = fleet.target.body(1, number, stream=False)
            began_s = time.perf_counter()
            client.post(fleet.target.url(), content=body).raise_for_status()
            took_ms.append((time.perf_counter() - began_s) * 1000)
        spent_s = _busy_s(fleet.front()) - front_s, _busy_s(fleet.pids()) - replicas_s
    return {
        "alone_p50_ms": round(statistics.median(took_ms), 2),
        "alone_p99_ms": round(sorted(took_ms)[int(0.99 * _ALONE)], 2),
        "alone_front_cpu_ms": round(spent_s[0] / _ALONE * 1000, 3),
        "alone_replica_cpu_ms": round(spent_s[1] / _ALONE * 1000, 3),
    }


def _together(fleet: Measured) -> dict[str, Any]:
    """Streams of 200 bytes to clients that ask again and again."""
    front_s, replicas_s = _busy_s(fleet.front()), _busy_s(fleet.pids())
    found = load(fleet.target, seconds=_SECONDS, clients=_CLIENTS, streamed=True)
    # Of all the run: the bytes of the warm-up are guessed from those of the window.
    written = found.bytes_per_s * (_SECONDS + WARM_UP_S)
    front_s, replicas_s = _busy_s(fleet.front()) - front_s, _busy_s(fleet.pids()) - replicas_s
    return {
        "clients": _CLIENTS, "errors": found.errors, "bytes_per_s": round(found.bytes_per_s),
        "first_byte_ms": _ends(found.first_byte_ms), "latency_ms": _ends(found.latency_ms),
        "front_cpu_us_per_byte": round(front_s / written * 1e6, 1),
        "replica_cpu_us_per_byte": round(replicas_s / written * 1e6, 1),
        "load_average": round(os.getloadavg()[0], 1),
    }  # fmt: skip


def _busy_s(pids: list[int]) -> float:
    """Processor time of processes so far."""
    times = [psutil.Process(pid).cpu_times() for pid in pids]
    return float(sum(each.user + each.system for each in times))


def _ends(spread: Any) -> tuple[float, float] | None:
    return None if spread is None else (round(spread.p50, 1), round(spread.p99, 1))
