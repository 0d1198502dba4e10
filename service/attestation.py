"""Attestation: replay the golden vectors on the provider in use before serving from it.

The graph computes the golden sample again; what it draws must be the same, and its outputs within
the bound of what float64 training mode computed.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from service.artifact import Arrays, Artifact
from service.errors import ServiceError
from service.golden import (
    GoldenInputs,
    comparisons,
    different_symbols,
    golden_inputs,
    training_error,
)
from service.runtime import Runner


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a replay found; `max_error` is in logits or raw mixture outputs, against float64."""

    ok: bool
    max_error: float
    bound: float
    training_error: float
    steps: int
    detail: str

    def describe(self) -> dict[str, Any]:
        """As JSON, which has no word for NaN: null."""
        entries = asdict(self)
        return {n: None if isinstance(v, float) and v != v else v for n, v in entries.items()}


def attest(artifact: Artifact, runner: Runner) -> Verdict:
    """Replay the golden vectors in the first slots of a runner that nothing else uses yet."""
    rows = golden_rows(artifact)[: runner.width]
    for slot, job in enumerate(rows):
        runner.load(slot, job.state)
    inputs = [job.inputs(job.steps_wanted()) for job in rows]
    outputs = runner.run(
        range(len(rows)),
        {name: np.stack([i[name] for i in inputs], axis=1) for name in inputs[0]},
        {name: np.stack([job.row[name] for job in rows]) for name in rows[0].row},
        filtered=False,
    )
    return judge(artifact, outputs)


def judge(artifact: Artifact, outputs: Arrays) -> Verdict:
    """Compare replayed outputs `(T, R, ...)` of the first R golden rows with the golden file."""
    compared = comparisons(artifact, outputs)
    broken = next((why for c in compared if (why := c.explain())), None)
    different = different_symbols(artifact, outputs)
    if broken is None and different.any():
        step = int(different.any(1).argmax())
        broken = f"next differs from the golden bytes at step {step}"
    return Verdict(
        ok=broken is None,
        max_error=compared[0].error,
        bound=compared[0].bound,
        training_error=training_error(artifact, different.shape[1]),
        steps=different.size,
        detail=broken or "everything golden drawn again, every output within its bound",
    )


class GoldenRow:
    """One golden row as a job of the engine, in the queue like any request."""

    filtered = False
    wants_state = False
    started = True

    def __init__(
        self, state: Arrays, golden: GoldenInputs, done: Callable[["GoldenRow"], object]
    ) -> None:
        self.state = state
        self.row = golden.row
        self.cancelled = False
        self.error: ServiceError | None = None
        self._steps = golden.steps
        self._outputs: list[Arrays] = []
        self._position = 0
        self._done = done

    @property
    def outputs(self) -> Arrays:
        """What came out, `(T, ...)` each."""
        return {n: np.concatenate([o[n] for o in self._outputs]) for n in self._outputs[0]}

    def steps_wanted(self) -> int:
        return len(self._steps["force"]) - self._position

    def inputs(self, steps: int) -> Arrays:
        part = slice(self._position, self._position + steps)
        return {name: array[part] for name, array in self._steps.items()}

    def anchor(self, state: Arrays) -> None:
        """Never called: its last state is of no use."""

    def accept(self, outputs: Arrays) -> bool:
        self._outputs.append(outputs)
        self._position += len(next(iter(outputs.values())))
        return self.steps_wanted() == 0

    def replay(self) -> tuple[Arrays, Arrays]:
        """Never called, like `anchor`."""
        raise AssertionError("a golden row keeps no state")

    def finish(self, state: Arrays | None) -> None:
        self._done(self)

    def fail(self, error: ServiceError) -> None:
        self.error = error
        self._done(self)

    def publish(self) -> None:
        """Nothing is shown before all of it is there."""


def golden_rows(
    artifact: Artifact, done: Callable[[GoldenRow], object] = lambda _: None
) -> list[GoldenRow]:
    """A job for each golden row; `done` is called on the engine's thread as each one ends."""
    rows = golden_inputs(artifact)
    return [GoldenRow(artifact.initial_state(), golden, done) for golden in rows]
