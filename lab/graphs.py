"""A part of a trained task as an ONNX graph, and ways of running it. Shapes: T steps, B rows."""

import copy
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import torch
from safetensors.torch import save_file
from torch import nn

from contract.golden import Arrays
from contract.manifest import WEIGHTS
from export.graph import export_graph
from export.parity.served import session_options
from lab.experiment import Named, Part
from models.generation import Step


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
        self._session = ort.InferenceSession(
            self.path, session_options(), providers=["CPUExecutionProvider"]
        )
        self._outputs = [o.name for o in self._session.get_outputs()]

    def run(self, inputs: Named) -> Arrays:
        """All rows at once; a state after the last step is `NAME_after`."""
        arrays = {name: t.numpy() for name, t in complete(self.step, inputs).items()}
        return dict(zip(self._outputs, self._session.run(self._outputs, arrays), strict=True))

    def rows(self, inputs: Named, rows: Sequence[int]) -> Arrays:
        """Some of the rows at once."""
        timed = timed_ports(self.step, scan=self.part.scan)
        return self.run({n: t[:, rows] if n in timed else t[rows] for n, t in inputs.items()})

    def alone(self, inputs: Named) -> Arrays:
        """Each row by itself, put side by side."""
        parts = [self.rows(inputs, [r]) for r in range(batch_of(self.step, inputs, self.part.scan))]
        timed = timed_ports(self.step, scan=self.part.scan)
        return {n: np.concatenate([p[n] for p in parts], int(n in timed)) for n in parts[0]}

    def taken(self, outputs: Arrays, rows: Sequence[int]) -> Arrays:
        """Some of the rows of outputs."""
        timed = timed_ports(self.step, scan=self.part.scan)
        return {n: a[:, rows] if n in timed else a[rows] for n, a in outputs.items()}


def timed_ports(step: Step, *, scan: bool) -> set[str]:
    """The ports whose tensors have time in front: `(T, B, ...)`."""
    return {p.name for p in (*step.step_ports, *step.output_ports)} if scan else set()


def batch_of(step: Step, inputs: Named, scan: bool) -> int:
    """B of some inputs."""
    name, tensor = next(iter(inputs.items()))
    return tensor.shape[int(name in timed_ports(step, scan=scan))]


def complete(step: Step, inputs: Named) -> Named:
    """The inputs in the step's own precision, and every state that is not among them, initial."""
    ports = (*step.state_ports, *step.step_ports, *step.row_ports)
    scan = any(p.name in inputs and inputs[p.name].dim() > 1 + len(p.shape) for p in ports)
    batch = batch_of(step, inputs, scan)
    initial = zip(step.state_ports, step.initial_state(batch), strict=True)
    states = {port.name: state for port, state in initial}
    return {p.name: (inputs | {n: s for n, s in states.items() if n not in inputs})[p.name]
            .to(p.dtype) for p in ports}  # fmt: skip


def in_precision(inputs: Named, real: torch.dtype) -> Named:
    """The inputs with every real number in another precision."""
    return {n: t.to(real) if t.is_floating_point() else t for n, t in inputs.items()}
