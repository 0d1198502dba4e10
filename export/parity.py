"""Comparing what training computes with what onnxruntime serves, number by number.

Shapes: T steps, B rows, V symbols. numpy arrays come from onnxruntime, tensors from PyTorch.
"""

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


class ServedGraph:
    """One graph of an artifact on onnxruntime's CPU provider, run over a state held as a value."""

    def __init__(self, artifact: Path, manifest: dict[str, Any], runner: str, threads: int = 0):
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        self.scan = runner == "scan"
        self.ports = manifest["ports"]
        self._filters = set(manifest["filters"])
        self._session = ort.InferenceSession(
            artifact / manifest["graphs"][runner]["plain"],
            options,
            providers=["CPUExecutionProvider"],
        )
        self._outputs = [o.name for o in self._session.get_outputs()]

    def initial_state(self, batch: int) -> Arrays:
        """The state before the first step, B rows of it."""
        return {
            p["name"]: np.full((batch, *p["shape"]), p["initial"], p["dtype"])
            for p in self.ports["state"]
        }

    def options(self, batch: int) -> Arrays:
        """Row options that leave the model's own distribution as it is."""
        fills = {"inverse_temperature": 1.0, "log_min_p": -np.inf, "logit_bias": 0.0}
        return {
            p["name"]: np.full((batch, *p["shape"]), fills[p["name"]], p["dtype"])
            for p in self.ports["row"]
            if p["name"] not in self._filters
        }

    def run(self, state: Arrays, steps: Arrays, options: Arrays) -> tuple[Arrays, Arrays]:
        """`steps` arrays are `(T, B)`; returns the state after them and outputs `(T, B, ...)`."""
        if self.scan:
            return self._run(state, steps, options)
        columns: dict[str, list[NDArray[Any]]] = {p["name"]: [] for p in self.ports["output"]}
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


def forced(tokens: NDArray[np.int64]) -> Arrays:
    """Per-step inputs that make the graph read `tokens (T, B)` and draw nothing."""
    return {
        "forced": tokens,
        "force": np.ones(tokens.shape, bool),
        "uniform": np.zeros(tokens.shape, np.float32),
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
