"""An engine over a runner that knows beforehand what it will write.

The script says which byte each uniform draws, so a request that asks for the wrong uniforms writes
the wrong text. The state counts steps, so it tells where a request really stands.
"""

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from contract.golden import Arrays
from contract.noise import UniformStream
from service.engine.chunk import Chunks
from service.engine.engine import Engine
from service.engine.limits import Limits
from service.engine.pace import Pace
from service.engine.runners import Runner
from service.engine.slots import Slots
from service.engine.terms import Terms
from service.metrics import Metrics
from service.state import Moment
from service.text.completion import Completion, CompletionSpec, TextEdge, TextPiece
from service.text.sampling import Sampling

SEED = 11
_PATIENCE_S = 20.0
_FAST = (1e-6, 0.0)  # seconds of a step, and of each row more
_LOGITS = np.eye(256, dtype=np.float32)  # of each byte, where it is the likeliest
_COUNTED_BY_NOBODY = Metrics().of_engine("scripted")


@cache
def _drawn_by(script: bytes) -> dict[float, int]:
    """The byte that each uniform draws."""
    uniforms = UniformStream(SEED).take(0, len(script)).tolist()
    return dict(zip(uniforms, script, strict=True))


@dataclass(frozen=True)
class Run:
    """One call of the runner."""

    slots: tuple[int, ...]
    steps: int
    filtered: bool


class ScriptedRunner:
    """Writes `script`, byte number k for uniform number k of `SEED`; remembers its calls.

    `during` is called in the middle of every run, with the number of runs before it.
    """

    def __init__(
        self, script: bytes, width: int = 4, during: Callable[[int], None] = lambda number: None
    ) -> None:
        self.width, self.threads = width, 1
        self.divides, self.turn = True, threading.RLock()
        self.runs: list[Run] = []
        self._during = during
        self._byte = _drawn_by(script)
        self._position = np.zeros(width, np.int64)

    def load(self, slot: int, state: Arrays) -> None:
        self._position[slot] = state["position"]

    def read(self, slot: int) -> Arrays:
        return {"position": self._position[slot].copy()}

    def run(self, slots: Sequence[int], steps: Arrays, row: Arrays, *, filtered: bool) -> Arrays:
        shape = steps["forced"].shape
        self._during(len(self.runs))
        self.runs.append(Run(tuple(slots), shape[0], filtered))
        self._position[list(slots)] += shape[0]
        each = (steps[name].ravel().tolist() for name in ("force", "forced", "uniform"))
        written = [f if force else self._byte[u] for force, f, u in zip(*each, strict=True)]
        tokens = np.array(written, np.int64).reshape(shape)
        return {"next": tokens, "logits": _LOGITS[tokens]}

    def give_up(self) -> None:
        pass


class NoFilters(ScriptedRunner):
    """Fails where rows are filtered."""

    def run(self, slots: Sequence[int], steps: Arrays, row: Arrays, *, filtered: bool) -> Arrays:
        if filtered:
            raise OSError("no such kernel")
        return super().run(slots, steps, row, filtered=filtered)


def limits(**changes: float) -> Limits:
    """Of an engine that is told by steps alone when to look up."""
    usual: dict[str, Any] = {"chunk_steps": 8, "first_chunk_steps": 3, "queue_size": 8}
    never = {"chunk_s": 1e9, "piece_s": 0.0, "slice_s": 1e9, "max_wait_s": 1e9}
    return Limits(**usual | never | changes)


def made_engine(
    runner: Runner, *, metrics: Metrics | None = None, name: str = "scripted", **more: Any
) -> Engine:
    """An engine that finds every model good, and a step to take a microsecond."""
    usual: dict[str, Any] = {
        "limits": limits(),
        "attest": lambda runner: True,
        "measure": lambda runner: Pace(_FAST, _FAST),
    }
    return Engine(runner, (metrics or Metrics()).of_engine(name), name=name, **usual | more)


@contextmanager
def engine(
    runner: Runner, *, chunk: int = 8, first: int = 3, queue: int = 8, **more: Any
) -> Iterator[Engine]:
    """An engine that has started and is ready."""
    some = limits(chunk_steps=chunk, first_chunk_steps=first, queue_size=queue)
    made = made_engine(runner, **{"limits": some} | more)
    made.start()
    try:
        assert made.attested.wait(_PATIENCE_S)
        assert made.ready
        yield made
    finally:
        made.stop()


def sleeps(engine: Engine) -> bool:
    """Whether its thread has nothing to do. It says so a moment before it lets go of the lock."""
    with engine._wake:
        return engine._idle


class Call:
    """A completion and the pieces that have come of it."""

    def __init__(self, moment: Moment[TextEdge] | None = None, **spec: Any) -> None:
        usual = {"prompt": b"", "max_tokens": 8, "sampling": Sampling()}
        start = Moment({"position": np.zeros((), np.int64)}, SEED, 0, 0, TextEdge())
        self.pieces: queue.Queue[TextPiece] = queue.Queue()
        self.job = Completion(CompletionSpec(**usual | spec), moment or start, self.pieces.put)

    def result(self) -> "Result":
        """All of it, once the last piece has come."""
        pieces = [self.pieces.get(timeout=_PATIENCE_S)]
        while not pieces[-1].last:
            pieces.append(self.pieces.get(timeout=_PATIENCE_S))
        return Result(pieces, self.job.written)


@dataclass(frozen=True)
class Result:
    """The pieces of a completion, put together."""

    pieces: list[TextPiece]
    written: int

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)

    @property
    def tokens(self) -> bytes:
        """The bytes that log-probabilities were given for."""
        return bytes(entry.token for piece in self.pieces for entry in piece.logprobs)

    @property
    def finish_reason(self) -> str | None:
        return self.pieces[-1].finish_reason

    @property
    def moment(self) -> Moment[TextEdge]:
        moment = self.pieces[-1].moment
        assert moment is not None
        return moment


def complete(
    script: bytes, moment: Moment[TextEdge] | None = None, *, chunk: int = 8, **spec: Any
) -> Result:
    """One completion, chunk after chunk on this thread: the tests of text want thousands, and an
    engine takes longer to begin and to end than one of them. A run that fails is raised."""
    call = Call(moment, **spec)
    if call.job.finished_at_once:
        call.job.finish(call.job.state if call.job.wants_state else None)
        return call.result()
    slots = Slots(ScriptedRunner(script), _COUNTED_BY_NOBODY, slice_s=1e9)
    some = limits(chunk_steps=chunk, first_chunk_steps=min(3, chunk))
    chunks = Chunks(slots, Pace(_FAST, _FAST), some, _COUNTED_BY_NOBODY)
    slots.schedule.add([call.job], Terms())
    slots.tend(0.0)
    while tickets := slots.schedule.slots.values():
        (job,) = (ticket.job for ticket in tickets)
        steps = chunks.steps_for([job], step_s=_FAST[0])
        chunks.run([0], steps, filtered=job.filtered)
    return call.result()
