"""Resident memory of the service, and its start: `python -m bench.memory`."""

import asyncio
import re
import shutil
import statistics
import tempfile
import time
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

from bench.connection import Connection
from bench.peers.launch import ARTIFACTS, MODEL, launch
from bench.target import Target

MODELS = (MODEL, "handwriting")
WAITING = 1000
STARTS = 5
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
    """Requests in the queue, beside 32 that run: MB resident in all, connections included, and what
    1,000 would add at that rate."""

    waiting: int
    resident_mb: float
    mb_per_1000_waiting: float


@dataclass(frozen=True, slots=True)
class StartRow:
    """Seconds from starting the process to `/readyz` saying yes, every model attested."""

    models: tuple[str, ...]
    median_s: float
    all_s: tuple[float, ...]


def measure(
    *, waiting: int = WAITING, starts: int = STARTS
) -> tuple[list[MemoryRow], WaitingRow, StartRow]:
    """One model, two models, the queue, and the start with two models."""
    with tempfile.TemporaryDirectory() as folder:
        one, two = (_copy(Path(folder, str(n)), MODELS[:n]) for n in (1, 2))
        resident = [_resident(one, MODELS[:1]), _resident(two, MODELS)]
        queue = _queue(one, waiting)
        times = []
        for _ in range(starts):
            with launch("service", artifacts=two) as service:
                times.append(round(service.ready_s, 3))
    return resident, queue, StartRow(MODELS, round(statistics.median(times), 3), tuple(times))


def resident_mb(pid: int) -> float:
    """MB resident of a process and everything it started; pages they share count for each."""
    return sum(_resident_kib(each) for each in _tree(pid)) * 1024 / 1e6


def _copy(folder: Path, models: tuple[str, ...]) -> Path:
    for model in models:
        shutil.copytree(ARTIFACTS / model, folder / model)
    return folder


def _resident(artifacts: Path, models: tuple[str, ...]) -> MemoryRow:
    with launch("service", artifacts=artifacts) as service:
        asyncio.run(_ask_once(service))
        return MemoryRow(models, round(resident_mb(service.pid), 1))


async def _ask_once(service: Target) -> None:
    connection = await Connection.open(service.port)
    answer = await connection.post(service.path, service.body(200, 1, stream=False))
    connection.close()
    if answer.status != 200:
        raise RuntimeError(f"the service answers {answer.status}: {bytes(answer.body)[:200]!r}")


def _queue(artifacts: Path, waiting: int) -> WaitingRow:
    settings = {
        "EVENKEEL_QUEUE_SIZE": str(10 * (waiting + _SLOTS)),
        "EVENKEEL_SLOTS": str(_SLOTS),
    }
    with launch("service", artifacts=artifacts, settings=settings) as service:
        return asyncio.run(_fill(service, waiting))


async def _fill(service: Target, waiting: int) -> WaitingRow:
    asked: list[asyncio.Task[object]] = []
    connections: list[Connection] = []

    async def resident_with(queued: int) -> float:
        while len(asked) < _SLOTS + queued:
            connection = await Connection.open(service.port)
            connections.append(connection)
            body = service.body(_LONG, len(asked), stream=False)
            asked.append(asyncio.create_task(connection.post(service.path, body)))
        await _until_waiting(service, queued)
        await asyncio.sleep(_SETTLE_S)
        return resident_mb(service.pid)

    try:
        without = await resident_with(0)
        full = await resident_with(waiting)
    finally:
        for connection in connections:
            connection.close()
        await asyncio.gather(*asked, return_exceptions=True)
    return WaitingRow(waiting, round(full, 1), round((full - without) * 1000 / waiting, 2))


async def _until_waiting(service: Target, queued: int) -> None:
    deadline_s = time.perf_counter() + _PATIENCE_S
    while (now := await asyncio.to_thread(_waiting, service.port)) != queued:
        if time.perf_counter() > deadline_s:
            raise RuntimeError(f"{now} requests wait after {_PATIENCE_S:.0f} s, not {queued}")
        await asyncio.sleep(0.1)


def _waiting(port: int) -> int:
    """Requests in the queue, by the service's own metrics."""
    connection = HTTPConnection("127.0.0.1", port, timeout=_PATIENCE_S)
    try:
        connection.request("GET", "/metrics")
        page = connection.getresponse().read().decode()
    finally:
        connection.close()
    counts = re.findall(r"^\w*requests_waiting\S* (\S+)$", page, re.MULTILINE)
    if not counts:
        raise RuntimeError("/metrics does not say how many requests wait")
    return int(sum(float(count) for count in counts))


def _tree(pid: int) -> list[int]:
    children = [
        int(child)
        for task in Path("/proc", str(pid), "task").iterdir()
        for child in (task / "children").read_text().split()
    ]
    return [pid, *(each for child in children for each in _tree(child))]


def _resident_kib(pid: int) -> int:
    status = Path("/proc", str(pid), "status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


def main() -> None:
    """Print all rows."""
    resident, queue, start = measure()
    for row in resident:
        print(f"{' and '.join(row.models)}: {row.resident_mb} MB resident")
    print(
        f"{queue.waiting} waiting: {queue.resident_mb} MB, {queue.mb_per_1000_waiting} MB for 1000"
    )
    print(f"start to ready, {len(start.models)} models: {start.median_s} s (of {start.all_s})")


if __name__ == "__main__":
    main()
