"""What moves a model on: a runner owns a fixed number of slots.

A slot holds the recurrent state of one row; `run` moves any of them on by T steps. Shapes: T steps,
B rows that run, W slots.
"""

import threading
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from contract.golden import Arrays
from service.artifact import Artifact
from service.engine.bundle import Bundle
from service.engine.runtime import Runtime

# Who may ask a GPU for anything. The first runs of a session are captured as CUDA graphs, and a
# capture fails if any thread of the process allocates or waits meanwhile: models take turns.
_GPU = threading.Lock()


def make_runner(artifact: Artifact, runtime: Runtime) -> "Runner":
    """The runner of one model."""
    kind = ScanRunner if runtime.runner == "scan" else SlotRunner
    return kind(artifact, runtime)


class Runner(Protocol):
    """Slots that hold state, and a way to move them on. `parts` are those that compute, each of
    which has to prove itself: a runner is its own only one, if it is not made of several."""

    width: int
    divides: bool  # whether some slots may run without the others

    @property
    def taken(self) -> bool:
        """Whether what it runs on is another model's for now, so that a run would wait."""
        ...

    @property
    def parts(self) -> "Sequence[Runner]": ...

    def load(self, slot: int, state: Arrays) -> None:
        """Put one row's state into a slot."""

    def read(self, slot: int) -> Arrays:
        """A copy of the state in a slot."""
        ...

    def run(self, slots: Sequence[int], steps: Arrays, row: Arrays, *, filtered: bool) -> Arrays:
        """Move `slots` on: `steps` arrays `(T, B, ...)`, `row` `(B, ...)`, outputs `(T, B, ...)`.

        `filtered` takes the graph with the options that leave symbols out; `row` always holds them.
        """
        ...


class ScanRunner:
    """A chunk is one call of the sequence graph, over just the rows that run."""

    divides, taken = True, False

    def __init__(self, artifact: Artifact, runtime: Runtime) -> None:
        self.width = runtime.slots
        ports = artifact.manifest.ports
        graphs = artifact.manifest.graphs.scan
        self._plain = self._filtered = runtime.session(artifact, graphs.plain)
        if graphs.filtered is not None:
            self._filtered = runtime.session(artifact, graphs.filtered)
        self._plain_row = [p.name for p in ports.row if p.name not in artifact.manifest.filters]
        self._after = [f"{p.name}_after" for p in ports.state]
        self._outputs = [p.name for p in ports.output]
        self._state = {
            p.name: np.full((self.width, *p.shape), p.initial, p.dtype) for p in ports.state
        }

    @property
    def parts(self) -> Sequence[Runner]:
        return (self,)

    def share(self, other: "ScanRunner") -> None:
        """Have the slots of another runner of the same model."""
        self._state = other._state

    def load(self, slot: int, state: Arrays) -> None:
        for name, array in self._state.items():
            array[slot] = state[name]

    def read(self, slot: int) -> Arrays:
        return {name: array[slot].copy() for name, array in self._state.items()}

    def run(self, slots: Sequence[int], steps: Arrays, row: Arrays, *, filtered: bool) -> Arrays:
        session = self._filtered if filtered else self._plain
        if not filtered:
            row = {name: row[name] for name in self._plain_row}
        # Of one row a view: copying a row by its number takes as long as some operators.
        first = slots[0]
        chosen = slice(first, first + 1) if len(slots) == 1 else np.asarray(slots)
        state = {name: array[chosen] for name, array in self._state.items()}
        results = session.run(self._after + self._outputs, state | steps | row)
        for array, after in zip(self._state.values(), results, strict=False):
            array[chosen] = after
        return dict(zip(self._outputs, results[len(self._after) :], strict=True))


class SlotRunner:
    """Single steps over all slots at once, in buffers of a fixed size and address.

    That is the shape CUDA graphs need: no control flow, nothing allocated. State goes from one set
    of buffers to the other and back, so two bindings are captured, one each way.
    """

    divides = False

    def __init__(self, artifact: Artifact, runtime: Runtime) -> None:
        self.width = runtime.slots
        self._turn: AbstractContextManager[object] = nullcontext()
        if runtime.provider == "cuda":
            self._turn = _GPU
        with self._turn:
            self._prepare(artifact, runtime)

    @property
    def taken(self) -> bool:
        return self._turn is _GPU and _GPU.locked()

    def _prepare(self, artifact: Artifact, runtime: Runtime) -> None:
        ports = artifact.manifest.ports
        device = runtime.provider
        graphs = artifact.manifest.graphs.step_on(device)
        filters = set(artifact.manifest.filters)

        def buffers(group: str) -> dict[str, ort.OrtValue]:
            return {
                p.name: ort.OrtValue.ortvalue_from_numpy(
                    np.full((self.width, *p.shape), p.initial, p.dtype), device, 0
                )
                for p in getattr(ports, group)
            }

        self._state = (buffers("state"), buffers("state"))
        self._inputs = Bundle((*ports.step, *ports.row), self.width, device)
        self._outputs = Bundle(ports.output, self.width, device)
        self._bindings = {}
        for filtered, file in ((False, graphs.plain), (True, graphs.filtered)):
            if file is not None:
                session = runtime.session(artifact, file)
                absent = () if filtered else filters
                sides = [self._bind(session, absent, source) for source in (0, 1)]
                self._bindings[filtered] = (session, sides)
        self._current = 0

    def _bind(
        self, session: ort.InferenceSession, absent: Collection[str], source: int
    ) -> tuple[ort.IOBinding, ort.RunOptions]:
        binding = session.io_binding()
        for name, value in self._state[source].items():
            binding.bind_ortvalue_input(name, value)
        for name, place in self._inputs.places.items():
            if name not in absent:
                binding.bind_input(name, *place)
        for name, value in self._state[1 - source].items():
            binding.bind_ortvalue_output(f"{name}_after", value)
        for name, place in self._outputs.places.items():
            binding.bind_output(name, *place)
        options = ort.RunOptions()
        options.add_run_config_entry("gpu_graph_id", str(source + 1))
        return binding, options

    @property
    def parts(self) -> Sequence[Runner]:
        return (self,)

    def load(self, slot: int, state: Arrays) -> None:
        with self._turn:
            for name, value in self._state[self._current].items():
                array = value.numpy().copy()
                array[slot] = state[name]
                value.update_inplace(array)

    def read(self, slot: int) -> Arrays:
        with self._turn:
            return {n: v.numpy()[slot].copy() for n, v in self._state[self._current].items()}

    def run(self, slots: Sequence[int], steps: Arrays, row: Arrays, *, filtered: bool) -> Arrays:
        with self._turn:
            return self._run(np.asarray(slots), steps, row, filtered)

    def _run(
        self, chosen: NDArray[np.integer], steps: Arrays, row: Arrays, filtered: bool
    ) -> Arrays:
        for name, array in row.items():
            self._inputs.host[name][chosen] = array
        session, bindings = self._bindings[filtered]
        total = len(next(iter(steps.values())))
        columns: dict[str, list[np.ndarray]] = {name: [] for name in self._outputs.places}
        for t in range(total):
            for name, array in steps.items():
                self._inputs.host[name][chosen] = array[t]
            self._inputs.send()
            binding, options = bindings[self._current]
            session.run_with_iobinding(binding, options)
            self._current = 1 - self._current
            self._outputs.fetch()
            for name, column in columns.items():
                column.append(self._outputs.host[name][chosen])
        return {name: np.stack(values) for name, values in columns.items()}


def stack_rows(rows: Sequence[Arrays], axis: int) -> Arrays:
    """The inputs of a run from those of its rows, B at `axis`."""
    if len(rows) == 1:  # a view: eight calls of `np.stack` take a fifth of a step
        place = (*[slice(None)] * axis, None)
        return {name: array[place] for name, array in rows[0].items()}
    return {name: np.stack([row[name] for row in rows], axis) for name in rows[0]}


def require_numbers(outputs: Arrays) -> None:
    """Raise `ArithmeticError` for a NaN or an infinity, of which no answer can be made."""
    for name, array in outputs.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ArithmeticError(f"{name} is not finite")
