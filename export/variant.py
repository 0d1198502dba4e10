"""How the graphs of an artifact may differ from the network as trained, for speed, when asked to.

The exact artifact differs in nothing. Whatever a variant adds is derived from the weights, lies in
`derived.safetensors` beside them, and has a parity report of its own.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx_ir as ir
from safetensors.torch import save_file
from torch import Tensor

from export.graph import Rewrite, export_graph
from export.quantize import derived_tensors, quantize
from models.generation import HandwritingStep, LanguageStep, Step
from models.handwriting import HandwritingModel
from models.language import LanguageModel
from models.tabulated import TabulatedLanguageModel

WEIGHTS = "model.safetensors"
DERIVED = "derived.safetensors"
Model = LanguageModel | HandwritingModel


@dataclass(frozen=True, slots=True)
class Variant:
    """`folded`: the first layer's projected input comes from a table, one row per byte.
    `quantized`: matrix products are of 8-bit integers. Both are for language models."""

    folded: bool = False
    quantized: bool = False

    @property
    def exact(self) -> bool:
        """Whether the graphs compute what the network does, operation by operation."""
        return not (self.folded or self.quantized)


EXACT = Variant()


def variant_of(manifest: dict[str, Any]) -> Variant:
    """Which variant a manifest describes; one that says nothing is exact."""
    return Variant(**manifest["variant"]) if "variant" in manifest else EXACT


def make_step(model: Model, *, filtered: bool, variant: Variant = EXACT) -> Step:
    """What is exported of a model; `filtered` adds the options that leave symbols out, if any."""
    if isinstance(model, HandwritingModel):
        return HandwritingStep(model)
    return LanguageStep(
        TabulatedLanguageModel(model) if variant.folded else model, filtered=filtered
    )


class GraphWriter:
    """Writes the tensors of a model and a variant to `folder` once, then any graph over them.

    Raises `ValueError` for a variant the model cannot have.
    """

    def __init__(self, folder: Path, model: Model, variant: Variant) -> None:
        if not variant.exact and not isinstance(model, LanguageModel):
            raise ValueError("only a language model can be folded or quantized")
        self._model, self._variant = model, variant
        self._files = [folder / WEIGHTS]
        save_file(model.state_dict(), self._files[0])
        if not variant.exact:
            self._files.append(folder / DERIVED)
            save_file(self._derived(), self._files[1])

    def step(self, *, filtered: bool) -> Step:
        """What is exported; `filtered` adds the options that leave symbols out, if any."""
        return make_step(self._model, filtered=filtered, variant=self._variant)

    def write(self, path: Path, *, scan: bool, filtered: bool) -> None:
        """One graph. Raises `ConversionError` when it breaks a promise."""
        step = self.step(filtered=filtered)
        ir.save(export_graph(step, *self._files, scan=scan, rewrite=self._rewrite()), path)

    def _rewrite(self) -> Rewrite | None:
        model = self._model
        if not self._variant.quantized:
            return None
        assert isinstance(model, LanguageModel)
        return lambda graph: quantize(graph, model, folded=self._variant.folded)

    def _derived(self) -> dict[str, Tensor]:
        assert isinstance(self._model, LanguageModel)
        folded = self._variant.folded
        tensors = derived_tensors(self._model, folded=folded) if self._variant.quantized else {}
        if folded:
            tensors |= {"table": TabulatedLanguageModel(self._model).table.detach()}
        return tensors
