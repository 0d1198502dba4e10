"""Microseconds per pen point at batch 1, sampling included: this service's runner beside PyTorch
eager, interleaved in one run; and how long a line of 30 characters takes.

Both sides write the same line with the same noise, and the points are compared.
"""

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from bench.step import CHUNK_STEPS, StepRow, compare_times
from export.convert import load_model, read_manifest
from export.golden import initial_state
from models.generation import HandwritingStep
from models.handwriting import HandwritingModel
from service.artifact import Artifact, load_artifact
from service.handwriting import row_of
from service.noise import InkNoise
from service.runtime import Runtime, ScanRunner
from service.state import Moment

TEXT = "A line of just 30 characters.."
_BIAS = 1.0
_SEED = 4
_POINTS = 256
# Points feed back, so rounding grows along a line; in units of the ink, a pixel is a quarter.
_SAME = 1e-2
ARTIFACT = Path("artifacts", "handwriting")


def measure(threads: int) -> StepRow:
    """Compare the shipped pen on its first 256 points of a line."""
    torch.set_num_threads(threads)
    artifact = load_artifact(ARTIFACT)
    served, eager = _served(artifact, threads), _eager(artifact)
    distance = float(np.abs(served() - eager()).max())
    if distance > _SAME:
        raise AssertionError(f"{artifact.name}: the two sides wrote points {distance:.2g} apart")
    return compare_times(artifact.name, threads, served, eager, _POINTS)


def line_ms(threads: int, repeats: int = 15) -> tuple[float, int]:
    """The median time of a whole line of 30 characters in process, and its points."""
    artifact = load_artifact(ARTIFACT)
    runner = ScanRunner(artifact, Runtime("cpu", "scan", threads, slots=1))
    row = _row(artifact)
    times, points = [], 0
    for _ in range(repeats):
        began = time.perf_counter()
        runner.load(0, artifact.initial_state())
        points = 0
        while True:
            outputs = runner.run([0], _steps(points, CHUNK_STEPS), row, filtered=False)
            ended = np.flatnonzero(outputs["ended"][:, 0])
            points += int(ended[0]) if len(ended) else CHUNK_STEPS
            if len(ended):
                break
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e3, points


def _row(artifact: Artifact) -> dict[str, np.ndarray]:
    start = Moment(artifact.initial_state(), _SEED, 0, 0)
    row = row_of(TEXT, start, artifact.manifest, _BIAS)
    return {name: value[None] for name, value in row.items()}


def _steps(first: int, count: int) -> dict[str, np.ndarray]:
    uniforms, normals = InkNoise(_SEED).take(first, count)
    return {
        "forced": np.zeros((count, 1, 3), np.float32),
        "force": np.zeros((count, 1), bool),
        "uniform": uniforms[:, None],
        "normal": normals[:, None],
    }


def _served(artifact: Artifact, threads: int) -> Callable[[], np.ndarray]:
    runner = ScanRunner(artifact, Runtime("cpu", "scan", threads, slots=1))
    row = _row(artifact)

    def write() -> np.ndarray:
        runner.load(0, artifact.initial_state())
        parts = [
            runner.run([0], _steps(first, CHUNK_STEPS), row, filtered=False)["drawn"][:, 0]
            for first in range(0, _POINTS, CHUNK_STEPS)
        ]
        return np.concatenate(parts)

    return write


def _eager(artifact: Artifact) -> Callable[[], np.ndarray]:
    model = load_model(artifact.folder, read_manifest(artifact.folder)).eval()
    assert isinstance(model, HandwritingModel)
    step = HandwritingStep(model)
    row = {name: torch.from_numpy(value) for name, value in _row(artifact).items()}
    options = [row[p.name] for p in step.row_ports]
    unused, free = torch.zeros(1, 3), torch.zeros(1, dtype=torch.bool)
    carried = len(step.state_ports)

    @torch.inference_mode()
    def write() -> np.ndarray:
        state = initial_state(step, 1)
        uniforms, normals = map(torch.from_numpy, InkNoise(_SEED).take(0, _POINTS))
        points = []
        for u, n in zip(uniforms, normals, strict=True):
            results = step(*state, unused, free, u[None], n[None], *options)
            state = results[:carried]
            points.append(state[0][0].numpy())
        return np.stack(points)

    return write
