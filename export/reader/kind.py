"""Readers as a kind that is exported."""

from typing import Any

from contract.golden import Arrays, Golden
from contract.manifest import EXACT, Finding, Variant
from contract.reader import PieceUnits
from export.golden import Sample
from export.kind import ExportKind
from export.parity.report import Evidence, Report
from export.reader import golden, parity
from export.variant import GraphWriter
from models.reader import ReaderModel, ReaderStep, TwinModel
from training.reader.kind import learned_reordered


class ReaderExport(ExportKind[ReaderModel]):
    """Pieces of ink in, logits of characters out; no options, no variants."""

    name = "reader"

    def unfit(self, model: ReaderModel | TwinModel) -> str | None:
        online = isinstance(model, ReaderModel)
        return None if online else "a twin that reads both ways; only one that reads on is served"

    def contract(self, facts: dict[str, Any]) -> dict[str, Any]:
        return {"pieces": PieceUnits(reordered=learned_reordered(facts))}

    def step(self, model: ReaderModel, *, filtered: bool, variant: Variant = EXACT) -> ReaderStep:
        return ReaderStep(model)

    def sample(self, model: ReaderModel, steps: int, batch: int, seed: int) -> Sample:
        return golden.sample(model, steps, batch, seed)

    def golden(self, model: ReaderModel, facts: dict[str, Any]) -> Golden:
        return golden.golden(model, facts)

    def compare(
        self, model: ReaderModel, sample: Sample, outputs: Arrays, emitted: Any
    ) -> list[Finding]:
        return parity.compare(model, sample, outputs["logits"])[0]

    def parity(self, writer: GraphWriter, evidence: Evidence) -> Report:
        return parity.report(writer, evidence)
