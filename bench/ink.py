"""What the pen is timed on: `task`, the steps `bench.step` compares, and how long a line of 30
characters takes.

Every side writes the same line with the same noise, and the points are compared.
"""

import statistics
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.step_peers import CHUNK_STEPS, Task
from contract.noise import InkNoise
from service.artifact import Arrays, Artifact, load_artifact
from service.engine.runtime import Runtime, ScanRunner
from service.ink.line import row_of
from service.state import Moment

TEXT = "A line of just 30 characters.."
_BIAS = 1.0
_SEED = 4
_POINTS = 256
# Points feed back, so rounding grows along a line; in units of the ink, a pixel is a quarter.
_SAME = 1e-2
ARTIFACT = Path("artifacts", "handwriting")


def task(artifact: Artifact) -> Task:
    """The first points of a line."""
    start = Moment(artifact.initial_state(), _SEED, 0, 0)
    options = row_of(TEXT, start, artifact.manifest, _BIAS)
    return Task(artifact, _POINTS, _noise(0, _POINTS), options, "drawn", tolerance=_SAME)


def line_ms(threads: int, repeats: int = 15) -> tuple[float, int]:
    """The median time of a whole line of 30 characters in process, and its points."""
    artifact = load_artifact(ARTIFACT)
    runner = ScanRunner(artifact, Runtime("cpu", "scan", threads, slots=1))
    line, ports = task(artifact), artifact.manifest.ports
    row = line.row(ports.row)
    times, points = [], 0
    for _ in range(repeats):
        began = time.perf_counter()
        runner.load(0, artifact.initial_state())
        points = 0
        while True:
            chunk = replace(line, steps=CHUNK_STEPS, noise=_noise(points, CHUNK_STEPS))
            outputs = runner.run([0], chunk.columns(ports.step), row, filtered=False)
            ended = np.flatnonzero(outputs["ended"][:, 0])
            points += int(ended[0]) if len(ended) else CHUNK_STEPS
            if len(ended):
                break
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e3, points


def _noise(first: int, count: int) -> Arrays:
    uniforms, normals = InkNoise(_SEED).take(first, count)
    return {"uniform": uniforms, "normal": normals}
