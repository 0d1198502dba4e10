"""What a process of the service holds: memory, threads, files, slots and places in the queue."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

import psutil

from bench.peers.launch import unproxied
from bench.target import Target

_PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class Held:
    """`resident_mb` are 10^6 bytes; `files` are open files and sockets."""

    resident_mb: float
    threads: int
    files: int
    running: int
    waiting: int

    @property
    def idle(self) -> bool:
        """Whether it works on nothing."""
        return not (self.running or self.waiting)


def held_by(service: Target) -> Held:
    """What it holds now."""
    process = psutil.Process(service.pid)
    page = metrics(service)
    return Held(
        round(process.memory_info().rss / 1e6, 1), process.num_threads(), process.num_fds(),
        int(series(page, "requests_running")), int(series(page, "requests_waiting")),
    )  # fmt: skip


def settled(
    service: Target,
    fine: Callable[[Held], bool] = lambda held: held.idle,
    patience_s: float = _PATIENCE_S,
) -> Held:
    """What it holds as soon as that is `fine`, or after so long."""
    end_s = time.monotonic() + patience_s
    while not fine(held := held_by(service)) and time.monotonic() < end_s:
        time.sleep(0.2)
    return held


def metrics(service: Target) -> str:
    """The page of metrics."""
    with unproxied.open(service.url("/metrics"), timeout=_PATIENCE_S) as answer:
        return str(answer.read().decode())


def series(page: str, name: str, label: str = "") -> float:
    """The sum of all series of a name that have a label."""
    found = re.findall(rf"^evenkeel_{name}(?:{{(.*)}})? (\S+)$", page, re.M)
    return sum(float(value) for labels, value in found if label in labels)
