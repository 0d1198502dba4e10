"""Handwriting models as a kind that is exported."""

from typing import Any

from contract.golden import Arrays, Golden
from contract.manifest import EXACT, Finding, Variant
from export.golden import Sample
from export.ink import golden, parity
from export.ink.commands import add_commands
from export.kind import ExportKind
from export.parity.report import Evidence, Report
from export.variant import GraphWriter
from models.generation import HandwritingStep
from models.handwriting import HandwritingModel


class InkExport(ExportKind[HandwritingModel]):
    """Points of a pen in, the next one out; no options that leave anything out, no variants."""

    name = "handwriting"

    def add_commands(self, commands: Any) -> None:
        add_commands(commands)

    def unfit(self, model: HandwritingModel) -> str | None:
        served = model.config.window
        return None if served else "a prediction network; only one that takes a text is served"

    def step(
        self, model: HandwritingModel, *, filtered: bool, variant: Variant = EXACT
    ) -> HandwritingStep:
        return HandwritingStep(model)

    def sample(self, model: HandwritingModel, steps: int, batch: int, seed: int) -> Sample:
        return golden.sample(model, steps, batch, seed)

    def golden(self, model: HandwritingModel, facts: dict[str, Any]) -> Golden:
        return golden.golden(model, facts)

    def compare(
        self, model: HandwritingModel, sample: Sample, outputs: Arrays, emitted: Any
    ) -> list[Finding]:
        return parity.compare(model, sample, outputs["mixture"], emitted)[0]

    def parity(self, writer: GraphWriter, evidence: Evidence) -> Report:
        return parity.report(writer, evidence)
