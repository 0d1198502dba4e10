"""How long a whole line of handwriting takes in process."""

import statistics
import time
from dataclasses import dataclass

from bench.sides import CHUNK_STEPS
from bench.target import ARTIFACTS
from service.artifact import load_artifact
from service.engine.runners import ScanRunner, stack_rows
from service.engine.runtime import Runtime
from service.ink.line import InkEdge, InkLine
from service.state import Moment

ARTIFACT = ARTIFACTS / "handwriting"
TEXT = "A line of just 30 characters.."
_BIAS, _SEED, _REPEATS = 1.0, 4, 15


@dataclass(frozen=True, slots=True)
class LineRow:
    """The median time of a line, and its points."""

    characters: int
    threads: int
    ms_median: float
    points: int


def measure(threads: int, repeats: int = _REPEATS) -> LineRow:
    """Run the service's own job of a line, chunk by chunk."""
    artifact = load_artifact(ARTIFACT)
    runner = ScanRunner(artifact, Runtime("cpu", "scan", threads, slots=1))
    times, points = [], 0
    for _ in range(repeats):
        start = Moment(artifact.initial_state(), _SEED, 0, 0, InkEdge())
        began_s = time.perf_counter()
        line = InkLine(TEXT, start, artifact.manifest, lambda piece: None, bias=_BIAS)
        runner.load(0, line.state)
        row, ended = stack_rows([line.row], axis=0), False
        while not ended:
            steps = line.inputs(min(CHUNK_STEPS, line.steps_wanted()))
            outputs = runner.run([0], stack_rows([steps], axis=1), row, filtered=False)
            ended = line.accept({name: array[:, 0] for name, array in outputs.items()})
        times.append(time.perf_counter() - began_s)
        points = line.written
    return LineRow(len(TEXT), threads, round(statistics.median(times) * 1e3, 2), points)
