"""Served graphs as functions, the ways of running a sample through one, and what differs.

Shapes: T steps, B rows. numpy arrays come from onnxruntime, tensors from PyTorch.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from contract.golden import Arrays
from contract.manifest import DERIVED, WEIGHTS, Ports
from export.golden import Sample


class Graph(Protocol):
    """Something that runs the step of an artifact over a state held as a value."""

    def initial_state(self, batch: int) -> Arrays:
        """The state before the first step, B rows of it."""
        ...

    def run(self, state: Arrays, steps: Arrays, row: Arrays) -> tuple[Arrays, Arrays]:
        """`steps` arrays are `(T, B, ...)`, `row` may hold options the graph does not take;
        returns the state after them and outputs `(T, B, ...)`."""
        ...


class ServedGraph:
    """One graph of an artifact on onnxruntime's CPU provider. Raises `ValueError` for one of single
    steps in the place of one of chunks, and the other way round."""

    def __init__(
        self,
        path: Path,
        ports: Ports,
        *,
        scan: bool,
        threads: int = 0,
        prepacking: bool = True,
    ) -> None:
        options = session_options(threads=threads, prepacking=prepacking)
        self._session = session_of(path, options)
        self._scan = scan
        self._outputs = [o.name for o in self._session.get_outputs()]
        taken = {i.name: i.type for i in self._session.get_inputs()}
        ranks = {i.name: len(i.shape) for i in self._session.get_inputs()}
        if ranks.get("force") != 1 + scan:
            raise ValueError(f"{path} is no graph of {'chunks' if scan else 'single steps'}")
        self._state = {p.name: p for p in ports.state}
        self._real = "float64" if "tensor(double)" in taken.values() else "float32"
        self.row_names = [p.name for p in ports.row if p.name in taken]
        self.single = all(math.prod(p.shape) == 1 for p in ports.state)  # of one unit

    def initial_state(self, batch: int) -> Arrays:
        """The state before the first step, B rows of it."""
        return {
            name: np.full((batch, *p.shape), p.initial, p.dtype.replace("float32", self._real))
            for name, p in self._state.items()
        }

    def run(self, state: Arrays, steps: Arrays, row: Arrays) -> tuple[Arrays, Arrays]:
        """See `Graph`."""
        row = {name: row[name] for name in self.row_names}
        if self._scan:
            return self._run(state, steps, row)
        columns: list[Arrays] = []
        for t in range(len(steps["force"])):
            state, outputs = self._run(state, {name: a[t] for name, a in steps.items()}, row)
            columns.append(outputs)
        return state, {name: np.stack([c[name] for c in columns]) for name in columns[0]}

    def _run(self, state: Arrays, steps: Arrays, row: Arrays) -> tuple[Arrays, Arrays]:
        results = self._session.run(self._outputs, state | steps | row)
        named = dict(zip(self._outputs, results, strict=True))
        after = {name: named.pop(f"{name}_after") for name in state}
        return after, named


def session_options(*, threads: int = 0, prepacking: bool = True) -> ort.SessionOptions:
    """Of a session on the CPU; 0 threads is one per core."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    if not prepacking:
        options.add_session_config_entry("session.disable_prepacking", "1")
    return options


def session_of(path: Path, options: ort.SessionOptions) -> ort.InferenceSession:
    """One on the CPU of a graph file, whose weights lie beside it."""
    # Read here: by its name onnxruntime opens no file of which that is no UTF-8.
    beside = (path.with_name(name) for name in (WEIGHTS, DERIVED))
    weights = {file.name: file.read_bytes() for file in beside if file.exists()}
    options.add_external_initializers_from_files_in_memory(
        list(weights), list(weights.values()), [len(content) for content in weights.values()]
    )
    return ort.InferenceSession(path.read_bytes(), options, providers=["CPUExecutionProvider"])


def read(graph: Graph, sample: Sample) -> Arrays:
    """Outputs `(T, B, ...)` of a graph that reads the sample, each row alone."""

    def alone(row: Sample) -> Arrays:
        _, outputs = graph.run(graph.initial_state(1), row.read(), row.rows())
        return outputs

    return _each_row(sample, alone)


def follow(graph: Graph, sample: Sample) -> tuple[Arrays, NDArray[Any]]:
    """Outputs `(T, B, ...)` of a graph that draws by itself, each row alone, one step a call; and
    what it drew `(T, B, ...)`. Each draw starts from the trainer's symbols, so one difference does
    not become many."""

    def alone(row: Sample) -> Arrays:
        state, steps, rows = graph.initial_state(1), row.drawn(), row.rows()
        pending = next(iter(state))
        results: list[Arrays] = []
        for t, symbol in enumerate(row.symbols.numpy()):
            one = {name: a[t : t + 1] for name, a in steps.items()}
            state, outputs = graph.run(state, one, rows)
            results.append(outputs | {_EMITTED: state[pending][None]})
            state[pending] = symbol
        return {name: np.concatenate([r[name] for r in results]) for name in results[0]}

    outputs = _each_row(sample, alone)
    return outputs, outputs.pop(_EMITTED)


_EMITTED = "emitted"


def _each_row(sample: Sample, run: Callable[[Sample], Arrays]) -> Arrays:
    rows = [run(sample.of(slice(r, r + 1))) for r in range(sample.symbols.shape[1])]
    return {name: np.concatenate([r[name] for r in rows], axis=1) for name in rows[0]}


def differing_bytes(a: Arrays, b: Arrays) -> int:
    """How many bytes of `b` differ from those of `a`; both hold the same names and shapes."""
    return sum(int(np.count_nonzero(_bytes(a[name]) != _bytes(b[name]))) for name in a)


def _bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).view(np.uint8)
