"""Attestation: replay the golden vectors on the provider in use before serving from it.

The graph draws the golden sample again from its uniforms; bytes must be the same, and logits within
the bound of what float64 training mode computed.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from service.artifact import Artifact
from service.language import Sampling
from service.runtime import Runner


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
    """Replay the golden vectors of an artifact in the first slots of its (idle) runner."""
    golden, bound = artifact.golden()
    truth, tokens = golden["logits_float64"], golden["tokens"]
    steps, rows = tokens.shape
    columns = min(rows, runner.width)
    for slot in range(columns):
        runner.load(slot, artifact.initial_state())
    option = Sampling().row()
    outputs = runner.run(
        range(columns),
        {
            "forced": np.zeros((steps, columns), np.int64),
            "force": np.zeros((steps, columns), bool),
            "uniform": golden["uniforms"][:, :columns],
        },
        {name: np.stack([value] * columns) for name, value in option.items()},
        filtered=False,
    )
    error = np.abs(outputs["logits"].astype(np.float64) - truth[:, :columns])
    worst = float(error.max())
    training = float(np.abs(golden["logits_float32"] - truth).max())
    return Verdict(
        ok=bool((outputs["next"] == tokens[:, :columns]).all()) and worst <= bound,
        max_error=worst,
        bound=bound,
        training_error=training,
        steps=steps * columns,
        detail=_explain(error, bound, outputs["next"] != tokens[:, :columns]),
    )


def _explain(error: np.ndarray, bound: float, different: np.ndarray) -> str:
    """Which tensor, which step, how far."""
    broken = (error > bound).any(axis=(1, 2)) | np.isnan(error).any(axis=(1, 2))
    if broken.any():
        step = int(broken.argmax())
        return f"logits leave the bound at step {step}: {error[step].max():.3g} > {bound:.3g}"
    if different.any():
        return f"next differs from the golden bytes at step {int(different.any(1).argmax())}"
    return "every golden byte drawn again, every logit within the bound"
