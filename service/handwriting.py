"""The handwriting adapter: a line of ink as one row of the engine. Text in, offsets of a pen out.

A hand is recurrent state. It comes from nothing, from the line before, from a stored style or from
a person's own strokes, and the next line goes on from it.
Shapes: n points; an offset is dx, dy in units of the model, y up, and 1 where the pen leaves.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from service.artifact import Arrays, CharacterAlphabet, Manifest
from service.errors import InvalidRequest, ServiceError
from service.noise import InkNoise
from service.state import Moment

FinishReason = Literal["stop", "length"]
# A line that takes so many points has lost its way; most take a quarter.
_MOST_POINTS_PER_CHARACTER = 40
_MOST_POINTS_MORE = 100
# The first move of a line that goes on from another covers the space between two words as well.
SPACE_UNITS = 4.0
# Where the window's centres stand at the end of a text: at its last character or just past it.
_KAPPA_AT_END = (np.float32(-1), np.float32(1.5))
# How many of the last points say where the baseline has got to.
_POINTS_OF_BASELINE = 60


@dataclass(slots=True)
class InkPiece:
    """Offsets `(n, 3)` since the last piece and the character being written; the last one says why
    it is the last."""

    offsets: np.ndarray = field(default_factory=lambda: np.zeros((0, 3), np.float32))
    character: int = 0
    finish_reason: FinishReason | None = None
    moment: Moment | None = None
    error: ServiceError | None = None

    @property
    def last(self) -> bool:
        """Whether nothing comes after it."""
        return self.finish_reason is not None or self.error is not None


def encode(text: str, manifest: Manifest) -> np.ndarray:
    """The symbols `(n,)` of a text. Raises `InvalidRequest` naming a character it does not know."""
    assert isinstance(manifest.alphabet, CharacterAlphabet)
    characters = manifest.alphabet.characters
    for place, character in enumerate(text):
        if character not in characters:
            raise InvalidRequest(
                f"text has {character!r} at {place}; this model writes printable ASCII", "text"
            )
    return np.array([characters.index(c) + 1 for c in text], np.int64)


def row_of(text: str, moment: Moment, manifest: Manifest, bias: float) -> Arrays:
    """The row inputs of the graph for a text written from a moment."""
    symbols = encode(_in_sight(text, moment), manifest)
    row = np.zeros(next(p.shape for p in manifest.ports.row if p.name == "text"), np.int64)
    if len(symbols) >= len(row):
        raise InvalidRequest(f"text has {len(text)} characters; a line has fewer", "text")
    row[: len(symbols)] = symbols
    return {
        "text": row,
        "length": np.array(len(symbols), np.int64),
        "bias": np.array(bias, np.float32),
    }


def _in_sight(text: str, moment: Moment) -> str:
    """What the window leaves behind stays in its sight, a space before the line."""
    return f"{moment.context} {text}" if moment.context else text


class InkLine:
    """A job of the engine: a line of ink, read from `known` offsets as far as they go, then drawn.

    With `known`, the offsets are all there is: the job is over when they have been read, and its
    moment is the hand that wrote them.
    """

    filtered = False

    def __init__(
        self,
        text: str,
        moment: Moment,
        manifest: Manifest,
        send: Callable[[InkPiece], None],
        *,
        bias: float = 0.0,
        wants_state: bool = False,
        known: np.ndarray | None = None,
    ) -> None:
        self.text = text
        self.moment = moment
        self.state = moment.state
        self.wants_state = wants_state or known is not None
        self.cancelled = False
        self.started = False
        self.points = 0
        self.arrived_s = time.perf_counter()
        self.first_run_s: float | None = None
        self.first_point_s: float | None = None
        self._in_sight = _in_sight(text, moment)
        self.row = row_of(text, moment, manifest, bias)
        self._send = send
        self._known = known
        self._noise = InkNoise(moment.seed, moment.choice)
        self._most = _MOST_POINTS_PER_CHARACTER * len(text) + _MOST_POINTS_MORE
        self._ink = np.zeros((0, 3), np.float32) if known is None else known
        self._read = 0
        self._anchors: list[tuple[int, Arrays]] = []
        self._finish_reason: FinishReason | None = None
        self._piece = InkPiece()

    def steps_wanted(self) -> int:
        return (self._most if self._known is None else len(self._known)) - self._read

    def inputs(self, steps: int) -> Arrays:
        if self.first_run_s is None:
            self.first_run_s = time.perf_counter()
        forced = np.zeros((steps, 3), np.float32)
        if self._known is not None:
            forced[:] = self._known[self._read : self._read + steps]
        return self._step_inputs(forced, self._read, force=self._known is not None)

    def anchor(self, state: Arrays) -> None:
        self._anchors = [*self._anchors[-1:], (self._read, state)]

    def accept(self, outputs: Arrays) -> bool:
        if self._known is not None:
            self._read += len(outputs["ended"])
            self._finish_reason = "stop" if self.steps_wanted() == 0 else None
            return self._finish_reason is not None
        ended = np.flatnonzero(outputs["ended"])
        count = int(ended[0]) if len(ended) else len(outputs["ended"])
        self._take(outputs["drawn"][:count])
        if count:
            before = len(self._in_sight) - len(self.text)
            character = int(outputs["character"][count - 1]) - before
            self._piece.character = min(max(character, 0), len(self.text) - 1)
        self._read += count
        if len(ended):
            self._finish_reason = "stop"
        elif self.steps_wanted() == 0:
            self._finish_reason = "length"
        return self._finish_reason is not None

    def replay(self) -> tuple[Arrays, Arrays] | None:
        if self._known is not None:
            return None  # read to the end of a chunk, never past it
        start, state = next(a for a in reversed(self._anchors) if a[0] <= self._read)
        return state, self._step_inputs(self._ink[start : self._read], start, force=True)

    def finish(self, state: Arrays | None) -> None:
        if state is not None:
            self._piece.moment = self._moment_after(state)
        self._piece.finish_reason = self._finish_reason
        self._flush()

    def fail(self, error: ServiceError) -> None:
        self._piece.error = error
        self._flush()

    def publish(self) -> None:
        if len(self._piece.offsets):
            self._flush()

    def _take(self, drawn: np.ndarray) -> None:
        self._ink = np.concatenate([self._ink, drawn])
        shown = drawn.copy()
        if len(drawn) and self.points == 0:
            self.started = True
            self.first_point_s = time.perf_counter()
            if self.moment.context:
                # From the end of another line, wherever that was, to the beginning of this one.
                shown[0, 0] = np.clip(shown[0, 0] - SPACE_UNITS, 0, SPACE_UNITS)
                shown[0, 1] += np.float32(self.moment.height)
        self.points += len(drawn)
        self._piece.offsets = np.concatenate([self._piece.offsets, shown])

    def _step_inputs(self, forced: np.ndarray, first: int, *, force: bool) -> Arrays:
        uniforms, normals = self._noise.take(self.moment.drawn + first, len(forced))
        return {
            "forced": np.ascontiguousarray(forced),
            "force": np.full(len(forced), force),
            "uniform": uniforms,
            "normal": normals,
        }

    def _moment_after(self, state: Arrays) -> Moment:
        """The hand after this line. The window is moved back to what of it stays in sight."""
        passed = np.float32(len(self._in_sight) - 1)
        drawn = self.moment.drawn + (self._read if self._known is None else 0)
        kappa = state["kappa"] - passed
        if self._known is not None:
            # The caller says the text has been written, wherever the window has got to.
            kappa = np.clip(kappa, *_KAPPA_AT_END)
        return Moment(
            state | {"kappa": kappa},
            self.moment.seed,
            self.moment.choice,
            drawn,
            context=self._in_sight[-1],
            height=_height(self._ink[: self._read]),
        )

    def _flush(self) -> None:
        piece, self._piece = self._piece, InkPiece(character=self._piece.character)
        self._send(piece)


def _height(ink: np.ndarray) -> float:
    """How far the end of the ink `(n, 3)` is above the baseline, by where its last arcs stand."""
    y = ink[:, 1].astype(np.float64).cumsum()[-_POINTS_OF_BASELINE:]
    if len(y) < 3:
        return 0.0
    lowest = y[1:-1][(y[1:-1] < y[:-2]) & (y[1:-1] <= y[2:])]
    return float(y[-1] - (np.median(lowest) if len(lowest) else y.min()))
