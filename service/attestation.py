"""Attestation: replay the golden vectors on the provider in use before serving from it.

The graph draws the golden sample again from its uniforms; bytes must be the same, and logits within
the bound of what float64 training mode computed.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.artifact import Arrays, Artifact
from service.errors import ServiceError
from service.language import Sampling
from service.runtime import Runner

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a replay found; `max_error` is in logits, against float64."""

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
    golden, bound = artifact.golden()
    rows = outputs["next"].shape[1]
    truth = golden["logits_float64"][:, :rows]
    error = np.abs(outputs["logits"].astype(np.float64) - truth)
    different = outputs["next"] != golden["tokens"][:, :rows]
    worst = float(error.max())
    return Verdict(
        ok=not different.any() and worst <= bound,
        max_error=worst,
        bound=bound,
        training_error=float(np.abs(golden["logits_float32"][:, :rows] - truth).max()),
        steps=different.size,
        detail=_explain(error, bound, different),
    )


class GoldenRow:
    """One golden row as a job of the engine, in the queue like any request."""

    filtered = False
    wants_state = False
    started = True

    def __init__(
        self, artifact: Artifact, uniforms: Array, done: Callable[["GoldenRow"], object]
    ) -> None:
        self.state = artifact.initial_state()
        self.row = Sampling().row()
        self.cancelled = False
        self.error: ServiceError | None = None
        self._uniforms = uniforms
        self._outputs: list[Arrays] = []
        self._position = 0
        self._done = done

    @property
    def outputs(self) -> Arrays:
        """What came out, `(T, ...)` each."""
        return {n: np.concatenate([o[n] for o in self._outputs]) for n in self._outputs[0]}

    def steps_wanted(self) -> int:
        return len(self._uniforms) - self._position

    def inputs(self, steps: int) -> Arrays:
        return {
            "forced": np.zeros(steps, np.int64),
            "force": np.zeros(steps, bool),
            "uniform": self._uniforms[self._position : self._position + steps],
        }

    def anchor(self, state: Arrays) -> None:
        """Never called: its last state is of no use."""

    def accept(self, outputs: Arrays) -> bool:
        self._outputs.append(outputs)
        self._position += len(outputs["next"])
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
    uniforms = artifact.golden()[0]["uniforms"]
    return [GoldenRow(artifact, column, done) for column in uniforms.T]


def _explain(error: np.ndarray, bound: float, different: np.ndarray) -> str:
    """Which tensor, which step, how far."""
    broken = (error > bound).any(axis=(1, 2)) | np.isnan(error).any(axis=(1, 2))
    if broken.any():
        step = int(broken.argmax())
        return f"logits leave the bound at step {step}: {error[step].max():.3g} > {bound:.3g}"
    if different.any():
        return f"next differs from the golden bytes at step {int(different.any(1).argmax())}"
    return "every golden byte drawn again, every logit within the bound"
