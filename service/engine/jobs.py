"""Work for the engine: what it asks of a job, and a job that writes.

Shapes: T steps of a chunk.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from contract.golden import Arrays
from service.errors import ServiceError
from service.state import Moment

FinishReason = Literal["stop", "length"]


class Job(ABC):
    """One row's work. The engine's thread makes all calls; another one only before the job is
    queued, instead of that, and where that thread is stuck. Anyone may set `cancelled` and
    `paused`, and has to wake the engine then.

    `urgent` is whether somebody watches for its first output, `started` whether that is out,
    `filtered` whether it needs the graph that can leave symbols out. A job that `overshoots` may
    end inside a chunk: if it wants its last state, it has to say in `anchor` and `replay` how to
    get there. A job that is parked holds its `state` itself. `then` has something called once all
    that was published before has been taken; None where nobody takes it on another thread.
    """

    state: Arrays
    row: Arrays
    filtered = False
    cancelled = False
    paused = False  # nobody takes what it has put out
    wants_state = False
    urgent = True
    started = False
    overshoots = False
    then: Callable[[Callable[[], None]], None] | None = None

    @abstractmethod
    def steps_wanted(self) -> int:
        """Steps it could still use, at least 1."""

    @abstractmethod
    def inputs(self, steps: int) -> Arrays:
        """Its next per-step inputs, `(steps, ...)` each."""

    @abstractmethod
    def accept(self, outputs: Arrays) -> bool:
        """Take outputs `(steps, ...)`; True when that was the last it needed."""

    @abstractmethod
    def finish(self, state: Arrays | None) -> None:
        """The end, with its last state if it wanted that."""

    @abstractmethod
    def fail(self, error: ServiceError, state: Arrays | None = None) -> None:
        """The end, by an error; with its state after the last accepted step where that is known."""

    def steps_expected(self) -> int:
        """Steps it will likely use."""
        return self.steps_wanted()

    def steps_to_first(self) -> int:
        """Steps until it has something to show."""
        return 1

    # Nothing, unless a job has something to do there.

    def anchor(self, state: Arrays) -> None:  # noqa: B027
        """Its state before the coming chunk, if it overshoots and wants its last state."""

    def replay(self) -> tuple[Arrays, Arrays] | None:
        """Once finished: an anchored state, and the inputs `(steps, ...)` from there to its end;
        None if it ended where the chunk did."""
        return None

    def wants_checkpoint(self) -> bool:
        """Whether it asks, between two chunks, for its state after the last accepted step."""
        return False

    def checkpoint(self, state: Arrays) -> None:  # noqa: B027
        """That state."""

    def publish(self, gap_s: float = 0.0) -> None:  # noqa: B027
        """Hand what has been gathered to whoever waits for it, if the last time is `gap_s` ago."""


@dataclass(slots=True)
class Piece:
    """What became final since the last piece; the last one says why it is the last."""

    finish_reason: FinishReason | None = None
    moment: Moment[Any] | None = None
    error: ServiceError | None = None

    @property
    def last(self) -> bool:
        """Whether nothing comes after it."""
        return self.finish_reason is not None or self.error is not None


P = TypeVar("P", bound=Piece)


class Generation(Job, Generic[P]):
    """A job that writes until it is done, and hands out pieces of what it wrote.

    Positions count steps since `moment`. `asked` and `written` are what it is to read and what it
    wrote, in the units its kind counts by; times are of `time.perf_counter`.
    """

    overshoots = True

    def __init__(
        self,
        moment: Moment[Any],
        row: Arrays,
        send: Callable[[P], None],
        piece: P,
        *,
        asked: int,
        wants_state: bool,
    ) -> None:
        self.moment = moment
        self.state = moment.state
        self.row = row
        self.wants_state = wants_state
        self.asked = asked
        self.written = 0
        self.arrived_s = time.perf_counter()
        self.first_run_s: float | None = None
        self.first_output_s: float | None = None
        self._send = send
        self._piece = piece
        self._read = 0  # steps done
        self._anchors: list[tuple[int, Arrays]] = []
        self._finish_reason: FinishReason | None = None
        self._flushed_s = -math.inf

    def anchor(self, state: Arrays) -> None:
        self._anchors.append((self._read, state))
        # Only the last anchor at or before the first undecided step can still be needed.
        while len(self._anchors) > 1 and self._anchors[1][0] <= self._decided():
            del self._anchors[0]

    def replay(self) -> tuple[Arrays, Arrays]:
        start, state = next(a for a in reversed(self._anchors) if a[0] <= self._read)
        return state, self._again(start)

    def finish(self, state: Arrays | None) -> None:
        if state is not None:
            self._piece.moment = self._moment_after(state)
        self._piece.finish_reason = self._finish_reason
        self._flush()

    def fail(self, error: ServiceError, state: Arrays | None = None) -> None:
        self._end_by(error)

    def given_up(self, error: ServiceError) -> P:
        """A piece that ends it for whoever waits, where the engine is stuck."""
        piece = self._next_piece()
        piece.error = error
        return piece

    def _end_by(self, error: ServiceError, moment: Moment[Any] | None = None) -> None:
        """Tell what was gathered, and then the error alone, with where one can go on from."""
        self.publish()
        self._piece.moment, self._piece.error = moment, error
        self._flush()

    @property
    def read(self) -> int:
        """What it has read of what was asked: all of it, once it has run."""
        return self.asked if self.first_run_s is not None else 0

    @property
    def finished_at_once(self) -> bool:
        """True when there is nothing to run: `finish` with the state it came with."""
        return self._finish_reason is not None

    def _runs(self) -> None:
        """Note when it first did."""
        if self.first_run_s is None:
            self.first_run_s = time.perf_counter()

    def _begins(self) -> None:
        """Note when the first output came, which waits for nothing."""
        if not self.started:
            self.started = True
            self.first_output_s = time.perf_counter()
            self._flushed_s = -math.inf

    def _flush(self) -> None:
        piece, self._piece = self._piece, self._next_piece()
        self._flushed_s = time.perf_counter()
        self._send(piece)

    def _rested(self, gap_s: float) -> bool:
        """Whether nothing has been handed out for so long."""
        return time.perf_counter() - self._flushed_s >= gap_s

    def _decided(self) -> int:
        """Up to which step it will not go back."""
        return self._read

    @abstractmethod
    def _again(self, start: int) -> Arrays:
        """The inputs from a step to the last, all of them forced."""

    @abstractmethod
    def _moment_after(self, state: Arrays) -> Moment[Any]:
        """Where it stands, given the state after its last step."""

    @abstractmethod
    def _next_piece(self) -> P:
        """An empty piece to go on with."""


def length(arrays: Arrays) -> int:
    """T."""
    return len(next(iter(arrays.values())))
