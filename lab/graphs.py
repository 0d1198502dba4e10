"""A part of a trained task as an ONNX graph, and ways of running it. Shapes: T steps, B rows."""

import copy
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx_ir as ir
import torch
from safetensors.torch import save_file
from torch import nn

from contract.golden import Arrays
from contract.manifest import WEIGHTS
from export.graph import export_graph
from export.parity.served import session_of, session_options
from lab.experiment import Named, Part


class PartGraph:
    """Writes `PART.onnx` over the weights of `model`, which a folder has once, and runs it on
    onnxruntime's CPU provider: inputs by port to outputs by port.

    Raises `ConversionError` when the graph breaks a promise of `export.graph`.
    """

    def __init__(self, part: Part, model: nn.Module, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        weights = folder / WEIGHTS
        if not weights.exists():
            save_file(model.state_dict(), weights)
        frozen = copy.deepcopy(model)  # an export changes the mode of what it traces
        self.step = part.step(frozen)
        self.part, self.path = part, folder / f"{part.name}.onnx"
        ir.save(export_graph(self.step, weights, scan=part.scan, whole=frozen), self.path)
        self._session = session_of(self.path, session_options(threads=1))
        self._outputs = [o.name for o in self._session.get_outputs()]

    def run(self, inputs: Named) -> Arrays:
        """All rows at once; a state after the last step is `NAME_after`."""
        arrays = {name: t.numpy() for name, t in (self._initial(inputs) | inputs).items()}
        return dict(zip(self._outputs, self._session.run(self._outputs, arrays), strict=True))

    def rows(self, inputs: Named, rows: Sequence[int]) -> Arrays:
        """Some of the rows at once."""
        return self.run({n: t[:, rows] if n in self.timed else t[rows] for n, t in inputs.items()})

    def alone(self, inputs: Named) -> Arrays:
        """Each row by itself, put side by side."""
        parts = [self.rows(inputs, [row]) for row in range(self.batch(inputs))]
        return {n: np.concatenate([p[n] for p in parts], int(n in self.timed)) for n in parts[0]}

    def taken(self, outputs: Arrays, rows: Sequence[int]) -> Arrays:
        """Some of the rows of outputs."""
        return {n: a[:, rows] if n in self.timed else a[rows] for n, a in outputs.items()}

    def batch(self, inputs: Named) -> int:
        """B of some inputs."""
        name, tensor = next(iter(inputs.items()))
        return int(tensor.shape[int(name in self.timed)])

    @property
    def timed(self) -> set[str]:
        """The ports whose tensors have time in front, `(T, B, ...)`."""
        step = self.step
        return {p.name for p in (*step.step_ports, *step.output_ports)} if self.part.scan else set()

    def _initial(self, inputs: Named) -> Named:
        states = self.step.initial_state(self.batch(inputs))
        return {p.name: s for p, s in zip(self.step.state_ports, states, strict=True)}


def in_precision(inputs: Named, real: torch.dtype) -> Named:
    """The inputs with every real number in another precision."""
    return {n: t.to(real) if t.is_floating_point() else t for n, t in inputs.items()}
