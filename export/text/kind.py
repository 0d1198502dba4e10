"""Language models as a kind that is exported."""

from typing import Any

from torch import Tensor

from contract.golden import Arrays, Golden
from contract.manifest import EXACT, Finding, Variant
from export.golden import Sample
from export.kind import ExportKind
from export.parity.report import Evidence, Report
from export.text import golden, parity
from export.variant import GraphWriter
from models.generation import LanguageStep
from models.language import LanguageModel
from models.tabulated import TabulatedLanguageModel


class TextExport(ExportKind[LanguageModel]):
    """Bytes in, the next byte out; options that leave bytes out; folded if asked."""

    name = "language"
    filters = True
    variants = True

    def served_as(self, model: LanguageModel) -> dict[str, Any]:
        mode = {"golden_mode": golden.golden_mode(model)}
        if model.config.norm != "batch":
            return mode
        last = model.config.longest_step
        return mode | {
            "past_longest_step": f"after {last} steps, the statistics of the last of them"
        }

    def step(
        self, model: LanguageModel, *, filtered: bool, variant: Variant = EXACT
    ) -> LanguageStep:
        network = TabulatedLanguageModel(model) if variant.folded else model
        return LanguageStep(network, filtered=filtered)

    def derived(self, model: LanguageModel, variant: Variant) -> dict[str, Tensor]:
        if not variant.folded:
            return {}
        return {"table": TabulatedLanguageModel(model).table.detach()}

    def sample(self, model: LanguageModel, steps: int, batch: int, seed: int) -> Sample:
        return golden.sample(model, steps, batch, seed)

    def golden(self, model: LanguageModel, facts: dict[str, Any]) -> Golden:
        return golden.golden(model, facts)

    def compare(
        self, model: LanguageModel, sample: Sample, outputs: Arrays, emitted: Any
    ) -> list[Finding]:
        return parity.compare(model, sample, outputs["logits"], emitted, len(emitted))[0]

    def parity(self, writer: GraphWriter, evidence: Evidence) -> Report:
        return parity.report(writer, evidence)
