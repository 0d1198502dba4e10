"""The section `websocket`: one byte at a time over `/v1/online`, beside the same step in this
process.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from websockets.sync.client import ClientConnection, connect

from bench.goal import Goal, judge
from bench.peers.launch import launch
from bench.rows import SAMPLES_FOR_P999, percentiles
from bench.sides import task_of
from bench.target import ARTIFACTS, MODEL, SERVICE
from service.artifact import load_artifact
from service.engine.runners import ScanRunner
from service.engine.runtime import Runtime
from service.engine.threads import usable_cores
from service.settings import Settings

_PER_TURN = 100
_WARM_UP = 100
# The other side's threads spin for a while after their last operator and would be in the way.
_SETTLE_S = 0.1
_NUMBERS = 256 + 1  # and the number of steps
_BYTES = b"To be, or not to be, that is the question:\n"


@dataclass(frozen=True, slots=True)
class OnlineRow:
    """Single steps of one byte each, one after the other; times are µs per step."""

    model: str
    way: str
    threads: int
    steps: int
    p50_us: float
    p90_us: float
    p99_us: float
    p999_us: float | None  # of 10,000 steps or more


def measure(full: bool, steps: int | None = None) -> Iterator[tuple[str, OnlineRow] | Goal]:
    """Round trips over the WebSocket, and a run of one step in this process, by turns.

    A round trip is from sending a byte to having received all 256 log-probabilities, as JSON, which
    is not parsed, or as float32. Either session has all cores.
    """
    steps, threads = steps or (12_000 if full else 2_000), usable_cores()
    with (
        launch(SERVICE, settings={"EVENKEEL_THREADS": str(threads)}) as service,
        connect(f"ws://127.0.0.1:{service.port}/v1/online", compression=None, proxy=None) as socket,
    ):
        _begin(socket)
        sides = {
            "websocket": _round_trip(socket),
            "websocket, binary": _binary_round_trip(socket),
            "in process": _step(threads),
        }
        times: dict[str, list[float]] = {way: [] for way in sides}
        for turn in range((_WARM_UP + steps) // _PER_TURN):
            for way, step in sides.items():
                time.sleep(_SETTLE_S)
                taken = [_seconds(step, _BYTES[i % len(_BYTES)]) for i in range(_PER_TURN)]
                times[way] += taken if turn * _PER_TURN >= _WARM_UP else []
    rows = [_row(way, threads, taken) for way, taken in times.items()]
    yield from (("online", row) for row in rows)
    yield from goals(rows)


def goals(rows: Sequence[OnlineRow]) -> Iterator[Goal]:
    """What the wire costs."""
    ms = {row.way: row.p50_us / 1e3 for row in rows}
    for way, plus in (("websocket", 0.3), ("websocket, binary", 0.2)):
        yield judge(
            f"{way.replace('websocket', 'WebSocket step')}, p50",
            f"the time in process, and {plus} ms", "at most", 1.0,
            ms[way], ms["in process"], plus=plus, unit="ms",
        )  # fmt: skip


def _begin(socket: ClientConnection) -> None:
    socket.send(json.dumps({"model": MODEL}))
    opened = json.loads(socket.recv())
    if "error" in opened:
        raise RuntimeError(opened["error"]["message"])


def _binary_round_trip(socket: ClientConnection) -> Callable[[int], object]:
    def send(byte: int) -> object:
        socket.send(bytes([byte]))
        answer = socket.recv()
        if len(answer) != _NUMBERS * 4:
            raise RuntimeError(f"the service says {str(answer)[:200]}")
        return answer

    return send


def _round_trip(socket: ClientConnection) -> Callable[[int], object]:
    def send(byte: int) -> object:
        socket.send(f'{{"bytes": [{byte}]}}')
        answer = socket.recv()
        if not str(answer).startswith('{"log_probabilities"'):
            raise RuntimeError(f"the service says {str(answer)[:200]}")
        return answer

    return send


def _step(threads: int) -> Callable[[int], object]:
    artifact = load_artifact(ARTIFACTS / MODEL)
    runner = ScanRunner(
        artifact, Runtime("cpu", "scan", threads, Settings.model_fields["slots"].default)
    )
    runner.load(0, artifact.initial_state())
    task = task_of(artifact, steps=1)
    task.columns["force"][:] = True

    def run(byte: int) -> object:
        task.columns["forced"][:] = byte
        return runner.run([0], task.columns, task.row, filtered=False)

    return run


def _seconds(step: Callable[[int], object], byte: int) -> float:
    began_s = time.perf_counter()
    step(byte)
    return time.perf_counter() - began_s


def _row(way: str, threads: int, seconds: list[float]) -> OnlineRow:
    us = [s * 1e6 for s in seconds]
    p50, p90, p99, p999 = percentiles(us, 0.5, 0.9, 0.99, 0.999, digits=1)
    enough = len(us) >= SAMPLES_FOR_P999
    return OnlineRow(MODEL, way, threads, len(us), p50, p90, p99, p999 if enough else None)
