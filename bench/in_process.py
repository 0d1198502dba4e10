"""Completions of 200 bytes by the service's runner in this process: what HTTP is compared with."""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.peers.batch import Request, inputs, portions
from bench.target import ARTIFACTS, BYTES, MODEL, PROMPT
from contract.golden import Arrays
from service.artifact import load_artifact
from service.engine.runners import ScanRunner
from service.engine.runtime import Runtime
from service.engine.threads import usable_cores
from service.settings import Settings

ROWS = 32
_LEAST_RUNS, _LEAST_S = 5, 1.5
# The threads of whatever ran before spin for a while after their last operator.
_SETTLE_S = 0.2


@dataclass(frozen=True, slots=True)
class InProcessRow:
    """`rows` completions side by side, each of the load's prompt and 200 bytes, the prompt's steps
    included; the median of `runs`. `first_chunk` and `chunk` are in steps."""

    model: str
    rows: int
    threads: int
    first_chunk: int
    chunk: int
    runs: int
    ms_median: float
    bytes_per_s: float


class InProcess:
    """A session of its own with the settings that a service has by default, but all cores."""

    def __init__(self, artifacts: Path = ARTIFACTS, model: str = MODEL) -> None:
        self._settings = Settings.model_construct(threads=usable_cores())
        self._artifact = load_artifact(artifacts / model)
        runtime = Runtime("cpu", "scan", self._settings.threads, slots=ROWS)
        self._runner = ScanRunner(self._artifact, runtime)

    def measure(self, rows: int) -> InProcessRow:
        """One row in the chunks of a service without neighbours, more in its long chunks alone."""
        settings = self._settings
        first = settings.first_chunk_steps if rows == 1 else settings.chunk_steps
        requests = [Request(PROMPT.encode(), BYTES, seed) for seed in range(rows)]
        steps, row = inputs(requests, self._artifact.manifest.ports)
        chunks = [
            {name: array[start:end] for name, array in steps.items()}
            for start, end in portions(requests[0].steps, first, settings.chunk_steps)
        ]
        time.sleep(_SETTLE_S)
        self._run(rows, chunks, row)
        times: list[float] = []
        while len(times) < _LEAST_RUNS or sum(times) < _LEAST_S:
            times.append(self._run(rows, chunks, row))
        median_s = float(np.median(times))
        return InProcessRow(
            self._artifact.name, rows, settings.threads, first, settings.chunk_steps, len(times),
            round(median_s * 1e3, 3), round(rows * BYTES / median_s, 1),
        )  # fmt: skip

    def _run(self, rows: int, chunks: list[Arrays], row: Arrays) -> float:
        began_s = time.perf_counter()
        for slot in range(rows):
            self._runner.load(slot, self._artifact.initial_state())
        for chunk in chunks:
            self._runner.run(range(rows), chunk, row, filtered=False)
        return time.perf_counter() - began_s
