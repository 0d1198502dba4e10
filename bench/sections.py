"""The sections of a run: each yields its rows as they are measured, with the name of a table."""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import memory, servers, step, training, websocket
from bench.step_peers import absent
from export.convert import convert
from lab.legibility import ink
from service.artifact import Artifact, load_artifact

Measured = Iterator[tuple[str, Any]]
# Those whose goals name a variant, and the one people see. A pen has no table of bytes to fold.
VARIED = ("lstm-512", "lstm-1024", "shakespeare")
ONLINE_STEPS = {False: 2000, True: 12_000}
WAITING = {False: 200, True: memory.WAITING}
STARTS = {False: 3, True: memory.STARTS}


@dataclass(frozen=True, slots=True)
class LineRow:
    """A whole line of handwriting in process."""

    characters: int
    threads: int
    ms_median: float
    points: int


def measure_step(full: bool) -> Measured:
    """Bytes and pen points, alone in their batch; then a line."""
    counts = _thread_counts()
    with tempfile.TemporaryDirectory() as folder:
        plan = step.FULL if full else step.QUICK
        for reason in absent(plan.sides).values():
            print(reason)
        variants = _variants(Path(folder)) if full else lambda artifact: {}
        for row in step.measure_all(plan, counts, variants):
            yield "step", row
    for threads in counts if ink.ARTIFACT.exists() else ():
        ms, points = ink.line_ms(threads)
        yield "line", LineRow(len(ink.TEXT), threads, round(ms, 2), points)


def _variants(folder: Path) -> Callable[[Artifact], Mapping[str, Artifact]]:
    """The folded and the quantized artifact of a model, written into `folder`."""

    def of(artifact: Artifact) -> dict[str, Artifact]:
        if artifact.name not in VARIED:
            return {}
        places = {name: folder / name / artifact.name for name in ("folded", "quantized")}
        convert(artifact.folder, places["folded"], fold=True)
        convert(artifact.folder, places["quantized"], quantize=True)
        return {name: load_artifact(place) for name, place in places.items()}

    return of


def measure_http(full: bool) -> Measured:
    """The service, peers and the session in process."""
    yield from servers.measure(servers.FULL if full else servers.QUICK)


def measure_open(full: bool) -> Measured:
    """The service and peers under Poisson arrivals."""
    yield from servers.measure_open(servers.FULL)


def measure_websocket(full: bool) -> Measured:
    """Steps of one byte, over the wire and in process."""
    for row in websocket.measure(steps=ONLINE_STEPS[full]):
        yield "online", row


def measure_memory(full: bool) -> Measured:
    """Resident memory of one and two models and of a queue, and the start."""
    resident, queue, start = memory.measure(waiting=WAITING[full], starts=STARTS[full])
    for row in resident:
        yield "resident", row
    yield "waiting", queue
    yield "start", start


def measure_training(full: bool) -> Measured:
    """Characters per second, with all rounds or, on request of a quick run, a third of them."""
    for threads in _thread_counts():
        for units, rounds in training.ROUNDS.items():
            yield "training", training.measure(units, threads, rounds if full else rounds // 3)


def _thread_counts() -> list[int]:
    return sorted({1, os.cpu_count() or 1})


SECTIONS: dict[str, Callable[[bool], Measured]] = {
    "step": measure_step,
    "http": measure_http,
    "open": measure_open,
    "websocket": measure_websocket,
    "memory": measure_memory,
    "training": measure_training,
}
# The others alone take as long as all of these.
QUICK_SECTIONS = ("step", "http", "websocket", "memory")
