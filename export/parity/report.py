"""A parity report: what goes into one, how much of it is compared, and what came out."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contract.manifest import Finding, Manifest
from export.parity.served import ServedGraph

SEED = 2016
COST = "bits, cost"  # the finding that is timed, and says nothing of what is computed


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is compared; the bounds are the same."""

    sampled_steps: int
    structure_steps: int
    bit_steps: int
    timed: bool  # timings need a quiet machine, so a build does not hang on them


QUICK = Extent(sampled_steps=3_200, structure_steps=1_000, bit_steps=24, timed=False)
FULL = Extent(sampled_steps=100_000, structure_steps=1_000, bit_steps=480, timed=True)


@dataclass(frozen=True, slots=True)
class Report:
    """All findings, the largest error at each step for the plot, and what could not be compared."""

    findings: list[Finding]
    error_curves: dict[str, NDArray[np.float64]]
    notes: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether every finding is within its bound."""
        return all(f.holds for f in self.findings)


class Served:
    """The graphs of an artifact on the CPU provider."""

    def __init__(self, artifact: Path, manifest: Manifest) -> None:
        self._artifact, self._manifest = artifact, manifest
        self.variants = list(manifest.graphs.scan.files())
        self.scan = self.graph("scan", "plain")
        self.step = self.graph("step", "plain")

    def graph(self, runner: str, options: str, **settings: Any) -> ServedGraph:
        """One graph, with session options if any."""
        file = getattr(self._manifest.graphs, runner).files()[options]
        return ServedGraph(
            self._artifact / file, self._manifest.ports, scan=runner == "scan", **settings
        )


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a kind compares its model with: the artifact's manifest and graphs, how much of it, and
    the folder where the training data may be."""

    manifest: Manifest
    served: Served
    extent: Extent
    data_folder: Path | None

    @property
    def rows(self) -> int:
        """Rows of a batch in training."""
        return int(self.manifest.provenance["batch"]["rows"])

    @property
    def sampled_steps(self) -> int:
        """Steps of each of these rows that are sampled."""
        return -(-self.extent.sampled_steps // self.rows)
