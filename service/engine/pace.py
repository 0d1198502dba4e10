"""How long a step takes, by the number of rows that share it: measured at the start, then followed.

The engine needs it to say how long a chunk may be, and how long somebody would have to wait.
"""

import statistics
import time
from dataclasses import dataclass

import numpy as np

from service.artifact import Artifact
from service.engine.runners import Runner, stack_rows

_STEPS = 8  # of a run, as short as the first of a request
_WARM_UP_RUNS = 2
_MEMORY = 0.9  # of what was found before, against one more chunk
# What slows a chunk tenfold is no pace but a pause, and is forgotten in a few chunks.
_MOST_AT_ONCE = 4.0


@dataclass(slots=True)
class _Line:
    """Seconds of a step: `one_s` with one row, `more_s` with each one more, times `factor`."""

    one_s: float
    more_s: float
    factor: float = 1.0

    def step_s(self, rows: int) -> float:
        return (self.one_s + self.more_s * (rows - 1)) * self.factor

    def follow(self, rows: int, step_s: float) -> None:
        off = min(step_s / self.step_s(rows), _MOST_AT_ONCE)
        self.factor *= _MEMORY + (1 - _MEMORY) * off


class Pace:
    """Of one model, with and without the options that leave symbols out."""

    def __init__(self, plain: tuple[float, float], filtered: tuple[float, float]) -> None:
        """Seconds of a step with one row, and for each row more, of either graph."""
        self._lines = {False: _Line(*plain), True: _Line(*filtered)}
        self._chunk_by_run = 1.0  # of their times

    def step_s(self, rows: int, *, filtered: bool = False) -> float:
        """Of a step of so many rows."""
        return self._lines[filtered].step_s(rows)

    def follow(self, rows: int, step_s: float, *, filtered: bool = False) -> None:
        """Take note of what one took."""
        self._lines[filtered].follow(rows, step_s)

    def follow_chunk(self, chunk_s: float, run_s: float) -> None:
        """What a chunk took in all, and its runs of that. The rest does not grow with steps: taken
        for theirs it would make chunks shorter, and so itself the larger part."""
        ratio = min(chunk_s / max(run_s, 1e-9), _MOST_AT_ONCE)
        self._chunk_by_run += (1 - _MEMORY) * (ratio - self._chunk_by_run)

    def wait_s(self, width: int) -> float:
        """Until a step of one row is done, where all of `width` have work."""
        return self.step_s(width) * self._chunk_by_run / width

    def parts(self, plain: int, filtered: int) -> bool:
        """Whether so many plain rows and so many filtered ones are faster in two runs."""
        apart_s = self.step_s(plain) + self.step_s(filtered, filtered=True)
        return apart_s < self.step_s(plain + filtered, filtered=True)


def measure_pace(artifact: Artifact, runner: Runner) -> Pace:
    """On a runner that nothing else uses yet, of whose slots it leaves nothing."""

    def line(filtered: bool) -> tuple[float, float]:
        one_s = median_step_s(artifact, runner, 1, runs=3, filtered=filtered)
        if runner.width == 1:
            return one_s, 0.0
        all_s = median_step_s(artifact, runner, runner.width, runs=3, filtered=filtered)
        return one_s, max(0.0, all_s - one_s) / (runner.width - 1)

    plain = line(False)
    return Pace(plain, line(True) if artifact.manifest.graphs.scan.filtered else plain)


def median_step_s(
    artifact: Artifact, runner: Runner, rows: int, *, runs: int, filtered: bool = False
) -> float:
    """Seconds of a step of the first `rows` slots, which read a golden row from the beginning."""
    golden, first = artifact.golden, artifact.golden.plain_rows[0]
    for slot in range(rows):
        runner.load(slot, artifact.initial_state())
    one = {name: array[:_STEPS] for name, array in golden.step_inputs(first).items()}
    steps = stack_rows([one] * rows, axis=1)
    row = stack_rows([golden.row_inputs(first)] * rows, axis=0)
    taken_s = []
    for _ in range(_WARM_UP_RUNS + runs):
        began_s = time.perf_counter()
        runner.run(range(rows), steps, row, filtered=filtered)
        taken_s.append(time.perf_counter() - began_s)
    return float(np.divide(statistics.median(taken_s[_WARM_UP_RUNS:]), _STEPS))
