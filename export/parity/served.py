"""Served graphs as functions, and the arithmetic of comparing what comes out of them.

Shapes: T steps, B rows, V symbols. numpy arrays come from onnxruntime, tensors from PyTorch.
"""

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from export.golden import NEUTRAL

Arrays = dict[str, NDArray[Any]]


class ServedGraph:
    """One graph of an artifact on onnxruntime's CPU provider, run over a state held as a value."""

    def __init__(
        self,
        path: Path,
        manifest: dict[str, Any],
        *,
        scan: bool,
        threads: int = 0,
        prepacking: bool = True,
    ) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        if not prepacking:
            options.add_session_config_entry("session.disable_prepacking", "1")
        self._session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self._scan = scan
        self._outputs = [o.name for o in self._session.get_outputs()]
        taken = {i.name for i in self._session.get_inputs()}
        self._state_ports = manifest["ports"]["state"]
        self._row_ports = [p for p in manifest["ports"]["row"] if p["name"] in taken]
        self._output_ports = manifest["ports"]["output"]
        self.option_names = [p["name"] for p in self._row_ports]
        self.real = next(p["dtype"] for p in self._output_ports if "float" in p["dtype"])

    def initial_state(self, batch: int) -> Arrays:
        """The state before the first step, B rows of it."""
        return {
            p["name"]: np.full((batch, *p["shape"]), p["initial"], p["dtype"])
            for p in self._state_ports
        }

    def options(self, batch: int) -> Arrays:
        """Row options that leave the model's own distribution as it is."""
        return {
            p["name"]: np.full((batch, *p["shape"]), NEUTRAL[p["name"]], p["dtype"])
            for p in self._row_ports
        }

    def run(self, state: Arrays, steps: Arrays, options: Arrays) -> tuple[Arrays, Arrays]:
        """`steps` arrays are `(T, B)`; returns the state after them and outputs `(T, B, ...)`."""
        if self._scan:
            return self._run(state, steps, options)
        columns: dict[str, list[NDArray[Any]]] = {p["name"]: [] for p in self._output_ports}
        for t in range(len(next(iter(steps.values())))):
            one = {name: array[t] for name, array in steps.items()}
            state, outputs = self._run(state, one, options)
            for name, value in outputs.items():
                columns[name].append(value)
        return state, {name: np.stack(values) for name, values in columns.items()}

    def _run(self, state: Arrays, steps: Arrays, options: Arrays) -> tuple[Arrays, Arrays]:
        results = self._session.run(self._outputs, state | steps | options)
        named = dict(zip(self._outputs, results, strict=True))
        after = {name: named.pop(f"{name}_after") for name in state}
        return after, named


def forced(tokens: NDArray[np.int64], real: str = "float32") -> Arrays:
    """Per-step inputs that make the graph read `tokens (T, B)` and draw nothing."""
    return {
        "forced": tokens,
        "force": np.ones(tokens.shape, bool),
        "uniform": np.zeros(tokens.shape, real),
    }


def drawn(uniforms: NDArray[np.float32]) -> Arrays:
    """Per-step inputs that make the graph draw with `uniforms (T, B)`."""
    return {
        "forced": np.zeros(uniforms.shape, np.int64),
        "force": np.zeros(uniforms.shape, bool),
        "uniform": uniforms,
    }


def log_softmax(logits: NDArray[Any]) -> NDArray[np.float64]:
    """Natural-log probabilities along the last axis, in float64 whatever comes in."""
    wide = logits.astype(np.float64)
    wide -= wide.max(-1, keepdims=True)
    normalised: NDArray[np.float64] = wide - np.log(np.exp(wide).sum(-1, keepdims=True))
    return normalised


def bits_per_byte(log_probabilities: NDArray[np.float64], tokens: NDArray[np.int64]) -> float:
    """Mean of -log2 p over `tokens (T, B)`, given `log_probabilities (T, B, V)`."""
    chosen = np.take_along_axis(log_probabilities, tokens[..., None], -1)
    return float(-chosen.mean() / np.log(2))


def differing_bytes(a: Arrays, b: Arrays) -> int:
    """How many bytes of `b` differ from those of `a`; both hold the same names and shapes."""
    return sum(int(np.count_nonzero(_bytes(a[name]) != _bytes(b[name]))) for name in a)


def _bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).view(np.uint8)
