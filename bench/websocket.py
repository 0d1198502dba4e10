"""One byte at a time over `/v1/online`, beside the same step in this process:
`python -m bench.websocket`.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from websockets.sync.client import ClientConnection, connect

from bench.peers.launch import ARTIFACTS, MODEL, launch
from bench.rows import SAMPLES_FOR_P999, percentile
from service.artifact import load_artifact
from service.engine.runtime import Runtime, ScanRunner
from service.settings import Settings
from service.text.completion import Sampling

STEPS = 2000
_PER_TURN = 100
_WARM_UP = 100
# The other side's threads spin for a while after their last operator and would be in the way.
_SETTLE_S = 0.1
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


def measure(*, steps: int = STEPS, threads: int = 0, model: str = MODEL) -> list[OnlineRow]:
    """A round trip over the WebSocket, and a run of one step in this process, by turns.

    A round trip is from sending a byte to having received the JSON of all 256 log-probabilities,
    which is not parsed. `threads` is that of either session; 0 takes all cores.
    """
    threads = threads or os.cpu_count() or 1
    with (
        launch("service", settings={"EVENKEEL_THREADS": str(threads)}) as service,
        connect(f"ws://127.0.0.1:{service.port}/v1/online", compression=None, proxy=None) as socket,
    ):
        sides = {"websocket": _round_trip(socket, model), "in process": _step(model, threads)}
        times: dict[str, list[float]] = {way: [] for way in sides}
        for turn in range((_WARM_UP + steps) // _PER_TURN):
            for way, step in sides.items():
                time.sleep(_SETTLE_S)
                taken = [_seconds(step, _BYTES[i % len(_BYTES)]) for i in range(_PER_TURN)]
                times[way] += taken if turn * _PER_TURN >= _WARM_UP else []
    return [_row(model, way, threads, sorted(taken)) for way, taken in times.items()]


def _round_trip(socket: ClientConnection, model: str) -> Callable[[int], object]:
    socket.send(json.dumps({"model": model}))
    opened = json.loads(socket.recv())
    if "error" in opened:
        raise RuntimeError(opened["error"]["message"])

    def send(byte: int) -> object:
        socket.send(f'{{"bytes": [{byte}]}}')
        answer = socket.recv()
        if not str(answer).startswith('{"log_probabilities"'):
            raise RuntimeError(f"the service says {str(answer)[:200]}")
        return answer

    return send


def _step(model: str, threads: int) -> Callable[[int], object]:
    artifact = load_artifact(ARTIFACTS / model)
    runner = ScanRunner(artifact, Runtime("cpu", "scan", threads, Settings().slots))
    row = {name: np.stack([value]) for name, value in Sampling().row().items()}
    runner.load(0, artifact.initial_state())
    ports = artifact.manifest.ports.step
    inputs = {p.name: np.zeros((1, 1, *p.shape), p.dtype) for p in ports}
    inputs["force"][:] = True

    def run(byte: int) -> object:
        inputs["forced"][:] = byte
        return runner.run([0], inputs, row, filtered=False)

    return run


def _seconds(step: Callable[[int], object], byte: int) -> float:
    began_s = time.perf_counter()
    step(byte)
    return time.perf_counter() - began_s


def _row(model: str, way: str, threads: int, ordered_s: list[float]) -> OnlineRow:
    p50, p90, p99, p999 = (
        round(percentile(ordered_s, q) * 1e6, 1) for q in (0.5, 0.9, 0.99, 0.999)
    )
    enough = len(ordered_s) >= SAMPLES_FOR_P999
    return OnlineRow(model, way, threads, len(ordered_s), p50, p90, p99, p999 if enough else None)


def main() -> None:
    """A quick look."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    for row in measure(steps=options.steps, threads=options.threads):
        print(f"{row.way:12} {row.p50_us:9.1f} {row.p90_us:9.1f} {row.p99_us:9.1f} µs")


if __name__ == "__main__":
    main()
