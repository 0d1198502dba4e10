"""Waves as a kind that is exported."""

import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from contract.golden import Golden
from contract.manifest import EXACT, Finding, Variant
from export.golden import BOUND_FACTOR, Sample, draw
from export.kind import ExportKind
from export.parity import bits, numbers
from export.parity.report import SEED, Evidence, Report
from export.parity.served import follow
from export.variant import GraphWriter
from tests.kinds.waves.contract import noise
from tests.kinds.waves.model import WaveModel, WaveStep

_ROWS = 3
_DRAWN_APART = 1e-3


class WaveExport(ExportKind[WaveModel]):
    """The object of the export stage: no filters, no variants."""

    name = "waves"

    def step(self, model: WaveModel, *, filtered: bool, variant: Variant = EXACT) -> WaveStep:
        return WaveStep(model)

    def sample(self, model: WaveModel, steps: int, batch: int, seed: int) -> Sample:
        model.train()
        rows = [noise(seed + row, 0, steps)["normal"] for row in range(batch)]
        scale = torch.linspace(0.5, 1.0, batch)
        return draw(WaveStep(model), {"scale": scale}, {"normal": np.stack(rows, axis=1)})

    def golden(self, model: WaveModel, facts: dict[str, Any]) -> Golden:
        sample = self.sample(model, facts["batch"]["steps"], _ROWS, SEED)
        float32, float64 = trained(model, sample), trained(copy.deepcopy(model).double(), sample)
        error = (float32.double() - float64).abs().max().item()
        return Golden(
            steps=sample.read(),
            rows=sample.rows(),
            filtered=np.zeros(_ROWS, bool),
            truth={"gaussian": float64.numpy(), "drawn": sample.symbols.double().numpy()},
            bounds={"gaussian": BOUND_FACTOR * error, "drawn": _DRAWN_APART},
            exact={},
            training_error=error,
        )

    def parity(self, writer: GraphWriter, evidence: Evidence) -> Report:
        sample = self.sample(writer.model, evidence.sampled_steps, evidence.rows, SEED)
        outputs, drawn = follow(evidence.served.step, sample)
        rounding, _, curves = numbers.rounding(writer.model, sample, outputs["gaussian"], trained)
        wide = writer.wide()
        structure = self.sample(wide.model, evidence.extent.structure_steps, 2, SEED)
        mixed = self.sample(writer.model, evidence.extent.bit_steps, bits.LARGEST_BATCH, SEED)
        work = bits.Work(mixed.drawn(), mixed.rows(), np.zeros(bits.LARGEST_BATCH, bool))
        apart = float(np.abs(drawn - sample.symbols.numpy()).max())
        return Report([
            numbers.structure(wide, structure, trained, "gaussian"),
            rounding,
            Finding(name="sampling", value=apart, bound=_DRAWN_APART, detail="max |difference|"),
            *bits.findings(evidence.served, work, evidence.extent, SEED),
        ], curves)  # fmt: skip


@torch.no_grad()
def trained(model: nn.Module, sample: Sample) -> Tensor:
    """What training computes: raw outputs `(T, B, 2)`."""
    assert isinstance(model, WaveModel)
    values = sample.symbols.to(model.readout.weight.dtype)
    inputs = torch.cat([torch.zeros_like(values[:1]), values[:-1]])
    raw, _ = model.train()(inputs, model.initial_state(values.shape[1]))
    return torch.as_tensor(raw)
