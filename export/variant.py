"""How the graphs of an artifact are written, exact or as a variant that is faster.

The exact artifact differs in nothing from the network as trained, its matrices of float32 or of
eight bits. Whatever a variant adds is derived from the weights and has a parity report of its own;
which variants there are is for the kind to say. What is derived, the copies of matrices that CUDA
wants for eight bits too, lies in `derived.safetensors` beside the weights.
"""

import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import onnx_ir as ir
import torch
from safetensors.torch import save_file
from torch import Tensor

from contract.manifest import DERIVED, EXACT, WEIGHTS, Port, Ports, Variant
from export.graph import graph_of, trace
from export.integers import cuda_copies, integer_products
from export.kind import ExportKind
from models import generation
from models.generation import Step
from models.quantized import as_floats


@dataclass(slots=True)
class GraphWriter:
    """Writes the tensors of a model and a variant once to a folder, then any graph over them.

    Raises `ValueError` for a variant that its kind of model cannot have.
    """

    kind: ExportKind[Any]
    model: Any
    variant: Variant = EXACT
    # Made anew by `dataclasses.replace`: traces are of one model.
    _written: dict[Path, list[Path]] = field(init=False, default_factory=dict)
    _traced: dict[bool, ir.Model] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        if not self.variant.exact and not self.kind.variants:
            raise ValueError(f"a {self.kind.name} model cannot be folded")

    def wide(self) -> "GraphWriter":
        """The same of the model in float64."""
        return replace(self, model=copy.deepcopy(self.model).double())

    def step(self, *, filtered: bool) -> Step:
        """What is exported; `filtered` adds the options that leave symbols out, if any."""
        return self.kind.step(as_floats(self.model), filtered=filtered, variant=self.variant)

    def write(self, path: Path, *, scan: bool, filtered: bool, signed: bool = False) -> Step:
        """One graph over the weights beside it, whose bytes are `signed` or not; returns its step.
        Raises `ConversionError` when it breaks a promise."""
        step = self.step(filtered=filtered)
        files = self._tensors(path.parent, step)

        def rewrite(graph: ir.Model) -> dict[str, list[str]]:
            return integer_products(graph, self.model, signed=signed)

        if filtered not in self._traced:
            self._traced[filtered] = trace(step)
        graph = graph_of(self._traced[filtered], step, *files, scan=scan, rewrite=rewrite)
        ir.save(graph, path)
        return step

    def ports(self, step: Step) -> Ports:
        """The ports of a step as a manifest lists them."""
        return Ports(
            state=_describe(step.state_ports),
            step=_describe(step.step_ports),
            row=_describe(step.row_ports),
            output=_describe(step.output_ports),
        )

    def _tensors(self, folder: Path, step: Step) -> list[Path]:
        if folder not in self._written:
            files = [folder / WEIGHTS]
            save_file(self.model.state_dict(), files[0])
            if derived := self._derived(step):
                files.append(folder / DERIVED)
                save_file(derived, files[1])
            self._written[folder] = files
        return self._written[folder]

    def _derived(self, step: Step) -> dict[str, Tensor]:
        # A variant may do without a matrix.
        derived = cuda_copies(self.model, step.model.state_dict())
        if not self.variant.exact:
            derived |= self.kind.derived(as_floats(self.model), self.variant)
        return derived


def _describe(ports: tuple[generation.Port, ...]) -> tuple[Port, ...]:
    return tuple(
        Port(name=p.name, dtype=_DTYPES[p.dtype], shape=p.shape, initial=p.initial) for p in ports
    )


# A float64 graph, which only a parity report makes, has the ports of the float32 one.
_DTYPES = {
    torch.float32: "float32",
    torch.float64: "float32",
    torch.int64: "int64",
    torch.bool: "bool",
}
