"""What moves a model on: a runner owns a fixed number of slots.

A slot holds the recurrent state of one row; `run` moves any of them on by T steps. Shapes: T steps,
B rows that run, W slots.
"""

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Protocol

import numpy as np
import onnxruntime as ort

from contract.golden import Arrays
from service.artifact import Artifact
from service.engine.bundle import Bundle
from service.engine.jobs import length
from service.engine.runtime import Runtime
from service.engine.stretch import State, Stretch

log = logging.getLogger(__name__)

# Who may ask a GPU for anything. The first runs of a session are captured as CUDA graphs, and a
# capture fails if any thread of the process allocates or waits meanwhile: models take turns.
_GPU = threading.RLock()
# Steps that share a copy each way: one alone, as over a WebSocket, and as many as a first chunk and
# any other have, unless told otherwise. What is copied does not shrink with fewer steps.
_STRETCHES = (1, 8, 32)


def make_runner(artifact: Artifact, runtime: Runtime) -> "Runner":
    """The runner of one model."""
    kind = ScanRunner if runtime.runner == "scan" else SlotRunner
    return kind(artifact, runtime)


class Runner(Protocol):
    """Slots that hold state, and a way to move them on. `parts` are those that compute, each of
    which has to prove itself: a runner is its own only one, if it is not made of several.

    Whatever it is asked for takes its `turn`, and so may wait until another model has run. Who
    holds another lock meanwhile has taken the turn before that.
    """

    width: int
    turn: threading.RLock
    divides: bool  # whether some slots may run without the others

    @property
    def threads(self) -> int:
        """Of its runs at present, if it need not make do with fewer."""
        ...

    @property
    def parts(self) -> "Sequence[Runner]":
        """See the class."""
        ...

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

    def give_up(self) -> None:
        """Have the run under way end with an error, after an operator, and whatever comes after
        it. For any thread to call."""


@contextmanager
def given_up(runner: Runner, after_s: float) -> Iterator[None]:
    """Give the runner up, so that its run ends with an error, if the block takes over `after_s`.
    Where the system has no thread to do that, `/livez` alone tells of a run that is stuck."""

    def give_up() -> None:
        log.error("a run of a model is given up after %g s", after_s)
        runner.give_up()

    timer = threading.Timer(min(after_s, threading.TIMEOUT_MAX), give_up)
    timer.daemon = True
    try:
        timer.start()
    except RuntimeError as error:
        log.warning("no run of a model can be given up now: %s", error)
    try:
        yield
    finally:
        timer.cancel()


class ScanRunner:
    """A chunk is one call of the sequence graph, over just the rows that run."""

    divides = True

    def __init__(self, artifact: Artifact, runtime: Runtime) -> None:
        self.width, self.threads = runtime.slots, runtime.threads
        self.turn = threading.RLock()
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
        self._options = ort.RunOptions()

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
        wanted = self._after + self._outputs
        results = session.run(wanted, state | steps | row, self._options)
        for array, after in zip(self._state.values(), results, strict=False):
            array[chosen] = after
        return dict(zip(self._outputs, results[len(self._after) :], strict=True))

    def give_up(self) -> None:
        self._options.terminate = True


class SlotRunner:
    """Single steps over all slots at once, in buffers of a fixed size and address.

    That is the shape CUDA graphs need: no control flow, nothing allocated. State goes from one set
    of buffers to the other and back, and the inputs and outputs of steps that follow one another
    have places of their own: a binding is captured for every place, and is waited for at the last.
    """

    divides = False

    def __init__(self, artifact: Artifact, runtime: Runtime) -> None:
        self.width, self.threads = runtime.slots, runtime.threads
        self.turn = _GPU if runtime.provider == "cuda" else threading.RLock()
        with self.turn:
            self._prepare(artifact, runtime)

    def _prepare(self, artifact: Artifact, runtime: Runtime) -> None:
        ports, device = artifact.manifest.ports, runtime.provider
        state = [(port, 1) for port in ports.state]
        self._state: State = (
            Bundle(state, self.width, device),
            Bundle(state, self.width, device),
        )
        self._side = 0  # of the two, that the state is on
        self._stretches = [Stretch(ports, self.width, device, most) for most in _STRETCHES]
        graphs = artifact.manifest.graphs.step_on(device)
        for filtered, file in ((False, graphs.plain), (True, graphs.filtered)):
            if file is not None:
                session, graph_ids = runtime.session(artifact, file), count(1)
                absent = () if filtered else artifact.manifest.filters
                for stretch in self._stretches:
                    stretch.bind(
                        session,
                        filtered=filtered,
                        state=self._state,
                        absent=absent,
                        graph_ids=graph_ids,
                    )

    @property
    def parts(self) -> Sequence[Runner]:
        return (self,)

    def load(self, slot: int, state: Arrays) -> None:
        with self.turn:
            bundle = self._state[self._side]
            bundle.fetch()
            for name, array in bundle.host.items():
                array[0, slot] = state[name]
            bundle.send()

    def read(self, slot: int) -> Arrays:
        with self.turn:
            bundle = self._state[self._side]
            bundle.fetch()
            return {name: array[0, slot].copy() for name, array in bundle.host.items()}

    def run(self, slots: Sequence[int], steps: Arrays, row: Arrays, *, filtered: bool) -> Arrays:
        with self.turn:
            return self._run(slots, steps, row, filtered)

    def _run(self, slots: Sequence[int], steps: Arrays, row: Arrays, filtered: bool) -> Arrays:
        chosen, total = np.asarray(slots), length(steps)
        outputs: list[Arrays] = []
        begin = 0
        while begin < total:
            left = total - begin
            stretch = next((s for s in self._stretches if left <= s.most), self._stretches[-1])
            end = begin + min(left, stretch.most)
            part = {name: array[begin:end] for name, array in steps.items()}
            outputs.append(stretch.run(self._side, chosen, part, row, filtered=filtered))
            self._side = (self._side + end - begin) % 2
            begin = end
        return {name: np.concatenate([o[name] for o in outputs]) for name in outputs[0]}

    def give_up(self) -> None:
        for stretch in self._stretches:
            stretch.give_up()


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
