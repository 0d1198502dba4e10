"""Completions of 200 bytes by the service's runner in this process: what HTTP is compared with."""

import os
import statistics
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from bench.arrivals import BYTES
from bench.peers.launch import ARTIFACTS, MODEL
from bench.target import PROMPT
from contract.noise import UniformStream
from service.artifact import Arrays, load_artifact
from service.engine.runtime import Runtime, ScanRunner
from service.settings import Settings
from service.text.completion import Sampling

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
    """A session of its own with the service's settings, but all cores."""

    def __init__(self, artifacts: Path = ARTIFACTS, model: str = MODEL) -> None:
        self._settings = Settings(threads=os.cpu_count() or 1)
        self._artifact = load_artifact(artifacts / model)
        runtime = Runtime("cpu", "scan", self._settings.threads, slots=ROWS)
        self._runner = ScanRunner(self._artifact, runtime)

    def measure(self, rows: int) -> InProcessRow:
        """One row in the chunks of a service without neighbours, more in its long chunks alone."""
        settings = self._settings
        first = settings.first_chunk_steps if rows == 1 else settings.chunk_steps
        steps, row = self._inputs(rows)
        chunks = _chunks(steps, first, settings.chunk_steps)
        time.sleep(_SETTLE_S)
        self._run(rows, chunks, row)
        times: list[float] = []
        while len(times) < _LEAST_RUNS or sum(times) < _LEAST_S:
            times.append(self._run(rows, chunks, row))
        median_s = statistics.median(times)
        return InProcessRow(
            model=self._artifact.name,
            rows=rows,
            threads=settings.threads,
            first_chunk=first,
            chunk=settings.chunk_steps,
            runs=len(times),
            ms_median=round(median_s * 1e3, 3),
            bytes_per_s=round(rows * BYTES / median_s, 1),
        )

    def _inputs(self, rows: int) -> tuple[Arrays, Arrays]:
        """Of all steps `(T, B, ...)`, the prompt forced, and of all rows `(B, ...)`."""
        prompt = np.frombuffer(PROMPT.encode(), np.uint8)
        ports = self._artifact.manifest.ports.step
        shape = len(prompt) + BYTES, rows
        steps = {p.name: np.zeros((*shape, *p.shape), p.dtype) for p in ports}
        steps["forced"][: len(prompt)] = prompt[:, None]
        steps["force"][: len(prompt)] = True
        for seed in range(rows):
            uniforms = UniformStream(seed).take(0, BYTES)
            steps["uniform"][len(prompt) :, seed] = uniforms.reshape(
                -1, *steps["uniform"].shape[2:]
            )
        options = Sampling().row()
        return steps, {name: np.stack([value] * rows) for name, value in options.items()}

    def _run(self, rows: int, chunks: list[Arrays], row: Arrays) -> float:
        began_s = time.perf_counter()
        for slot in range(rows):
            self._runner.load(slot, self._artifact.initial_state())
        for chunk in chunks:
            self._runner.run(range(rows), chunk, row, filtered=False)
        return time.perf_counter() - began_s


def _chunks(steps: Arrays, first: int, length: int) -> list[Arrays]:
    total = len(next(iter(steps.values())))
    borders = [0, *range(first, total, length), total]
    return [
        {name: array[begin:end] for name, array in steps.items()}
        for begin, end in pairwise(borders)
    ]
