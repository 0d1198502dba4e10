"""What a replay of golden vectors runs and how its outputs are judged, for each kind of model.

Shapes: T steps, R rows.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.artifact import Arrays, Artifact
from service.language import Sampling

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class GoldenInputs:
    """What one golden row is run with: per-step inputs `(T, ...)` and row inputs."""

    steps: Arrays
    row: Arrays


@dataclass(frozen=True, slots=True)
class Comparison:
    """An output `(T, R, ...)` replayed, what it should be in float64, and how far it may be off."""

    name: str
    found: Array
    truth: Array
    bound: float

    @property
    def error(self) -> float:
        """The largest distance, NaN if there is one."""
        return float(np.abs(self.found.astype(np.float64) - self.truth).max())

    def explain(self) -> str | None:
        """At which step it leaves the bound and how far, if it does."""
        error = np.abs(self.found.astype(np.float64) - self.truth)
        broken = ~(error <= self.bound).reshape(len(error), -1).all(axis=1)  # NaN is broken too
        if not broken.any():
            return None
        step = int(broken.argmax())
        worst = error[step].max()
        return f"{self.name}: outside the bound at step {step}: {worst:.3g} > {self.bound:.3g}"


def golden_inputs(artifact: Artifact) -> list[GoldenInputs]:
    """The inputs of every golden row."""
    golden, _ = artifact.golden()
    if artifact.manifest.kind == "handwriting":
        # The points are forced, so that an error is not fed back; what is drawn shows beside them.
        row_names = [p.name for p in artifact.manifest.ports.row]
        return [
            GoldenInputs(
                {
                    "forced": golden["points"][:, r],
                    "force": np.ones(len(golden["points"]), bool),
                    "uniform": golden["uniforms"][:, r],
                    "normal": golden["normals"][:, r],
                },
                {name: golden[name][r] for name in row_names},
            )
            for r in range(golden["points"].shape[1])
        ]
    row = Sampling().row()
    return [
        GoldenInputs(
            {
                "forced": np.zeros(len(uniforms), np.int64),
                "force": np.zeros(len(uniforms), bool),
                "uniform": uniforms,
            },
            row,
        )
        for uniforms in golden["uniforms"].T
    ]


def comparisons(artifact: Artifact, outputs: Arrays) -> list[Comparison]:
    """Replayed outputs `(T, R, ...)` of the first R golden rows beside the golden file; the first
    is what training computes, its error is the one that is reported."""
    golden, bounds = artifact.golden()
    rows = next(iter(outputs.values())).shape[1]
    names = ("mixture", "drawn") if artifact.manifest.kind == "handwriting" else ("logits",)
    return [
        Comparison(name, outputs[name], golden[f"{name}_float64"][:, :rows], bounds[name])
        for name in names
    ]


def different_symbols(artifact: Artifact, outputs: Arrays) -> Array:
    """Where a replay drew another byte than the golden one, `(T, R)`; ink is compared by distance
    alone, because a point of another Gaussian is far off."""
    if artifact.manifest.kind == "handwriting":
        return np.zeros(outputs["drawn"].shape[:2], bool)
    golden, _ = artifact.golden()
    return np.asarray(outputs["next"] != golden["tokens"][:, : outputs["next"].shape[1]])


def training_error(artifact: Artifact, rows: int) -> float:
    """How far training itself was from float64 on the golden rows."""
    golden, _ = artifact.golden()
    name = "mixture" if artifact.manifest.kind == "handwriting" else "logits"
    both = (golden[f"{name}_float32"][:, :rows], golden[f"{name}_float64"][:, :rows])
    return float(np.abs(both[0] - both[1]).max())
