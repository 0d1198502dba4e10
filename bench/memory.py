"""The section `memory`: resident memory of the service with one and two models and with a queue,
and how long it takes to start.
"""

import asyncio
import re
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import ClientSession

from bench.client import ask, connect
from bench.goal import Goal, judge
from bench.peers.launch import family, launch
from bench.rows import OK
from bench.target import ARTIFACTS, BYTES, MODEL, SERVICE, Target

MODELS = (MODEL, "handwriting")
_MIB = 1 << 20
_SLOTS = 32
_LONG = 60_000  # bytes: nobody finishes while memory is read
_PATIENCE_S = 60.0
_SETTLE_S = 1.0


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """MB (10^6 bytes) that the service holds in memory once it is ready and has answered."""

    models: tuple[str, ...]
    resident_mb: float


@dataclass(frozen=True, slots=True)
class WaitingRow:
    """Requests in the queue of a service that refuses nobody, beside 32 that run: MB resident in
    all, connections included, and what 1,000 would add at that rate."""

    waiting: int
    resident_mb: float
    mb_per_1000_waiting: float


@dataclass(frozen=True, slots=True)
class StartRow:
    """Seconds from starting the process to `/readyz` saying yes, every model attested."""

    models: tuple[str, ...]
    median_s: float
    all_s: tuple[float, ...]


def measure(full: bool) -> Iterator[tuple[str, Any] | Goal]:
    """One model, two models, the queue, and the start with two models."""
    with tempfile.TemporaryDirectory() as folder:
        one, two = (_copy(Path(folder, str(n)), MODELS[:n]) for n in (1, 2))
        resident = [_resident(one, MODELS[:1]), _resident(two, MODELS)]
        yield from (("resident", row) for row in resident)
        yield "waiting", _queue(one, 1000 if full else 200)
        start = _start(two, 5 if full else 3)
        yield "start", start
    yield from goals(resident, start)


def goals(resident: Sequence[MemoryRow], start: StartRow) -> Iterator[Goal]:
    """Of the start, and of the process that holds most."""
    yield judge(
        "start to ready, two models", "median of the starts", "at most", 2.0, start.median_s,
        unit="s",
    )  # fmt: skip
    yield judge(
        "resident memory", "the process with the most models", "at most", 300.0,
        max(row.resident_mb for row in resident) * 1e6 / _MIB, unit="MiB",
    )  # fmt: skip


def resident_mb(pid: int) -> float:
    """MB resident of a process and everything it started; pages they share count for each."""
    return sum(process.memory_info().rss for process in family(pid)) / 1e6


def _copy(folder: Path, models: tuple[str, ...]) -> Path:
    for model in models:
        shutil.copytree(ARTIFACTS / model, folder / model)
    return folder


def _resident(artifacts: Path, models: tuple[str, ...]) -> MemoryRow:
    with launch(SERVICE, artifacts=artifacts) as service:
        asyncio.run(_ask_once(service))
        return MemoryRow(models, round(resident_mb(service.pid), 1))


async def _ask_once(service: Target) -> None:
    async with connect() as session:
        answer = await ask(session, service, BYTES, 1, streamed=False)
    if answer.status != OK:
        raise RuntimeError(f"the service answers {answer.status}")


def _start(artifacts: Path, starts: int) -> StartRow:
    times = []
    for _ in range(starts):
        with launch(SERVICE, artifacts=artifacts) as service:
            times.append(round(service.ready_s, 3))
    return StartRow(MODELS, round(statistics.median(times), 3), tuple(times))


def _queue(artifacts: Path, waiting: int) -> WaitingRow:
    settings = {
        "EVENKEEL_QUEUE_SIZE": str(10 * (waiting + _SLOTS)),
        "EVENKEEL_SLOTS": str(_SLOTS),
        # Nobody is refused because others would hold it up, or because all come from one address.
        "EVENKEEL_MAX_WAIT_S": "1e9",
        "EVENKEEL_DEADLINE_S": "1e9",
        "EVENKEEL_MAX_CONNECTIONS": str(4 * (waiting + _SLOTS)),
    }
    with launch(SERVICE, artifacts=artifacts, settings=settings) as service:
        return asyncio.run(_fill(service, waiting))


async def _fill(service: Target, waiting: int) -> WaitingRow:
    asked: list[asyncio.Task[object]] = []
    async with connect() as session:

        async def resident_with(queued: int) -> float:
            for seed in range(len(asked), _SLOTS + queued):
                request = ask(session, service, _LONG, seed, streamed=False)
                asked.append(asyncio.create_task(request))
            await _until_waiting(session, service, queued)
            await asyncio.sleep(_SETTLE_S)
            return resident_mb(service.pid)

        try:
            without, full = await resident_with(0), await resident_with(waiting)
        finally:
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
    return WaitingRow(waiting, round(full, 1), round((full - without) * 1000 / waiting, 2))


async def _until_waiting(session: ClientSession, service: Target, queued: int) -> None:
    deadline_s = time.perf_counter() + _PATIENCE_S
    while (now := await _waiting(session, service)) != queued:
        if time.perf_counter() > deadline_s:
            raise RuntimeError(f"{now} requests wait after {_PATIENCE_S:.0f} s, not {queued}")
        await asyncio.sleep(0.1)


async def _waiting(session: ClientSession, service: Target) -> int:
    """Requests in the queue, by the service's own metrics."""
    async with session.get(service.url("/metrics")) as response:
        page = await response.text()
    counts = re.findall(r"^\w*requests_waiting\S* (\S+)$", page, re.MULTILINE)
    if not counts:
        raise RuntimeError("/metrics does not say how many requests wait")
    return int(sum(float(count) for count in counts))
