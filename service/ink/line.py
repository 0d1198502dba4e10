"""A line of ink as one row of the engine. Text in, offsets of a pen out.

A hand is recurrent state: of a stored style, of a person's own strokes, or of the first line in a
hand the model makes up. Every further line begins from that state and not from where the line
before ended: the ink a model wrote is a poor guide to a hand, and pages that go on from it decay.
Shapes: n points; an offset is dx, dy in units of the model, y up, and 1 where the pen leaves.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from contract import alphabets
from contract.ending import Ending
from contract.golden import Arrays
from contract.ink import InkManifest
from contract.noise import InkNoise
from service.engine.jobs import Generation, Piece
from service.errors import InvalidRequest
from service.ink.letters import bases
from service.state import Edge, Length, Moment

# A line that takes so many points has lost its way; most take a quarter.
_MOST_POINTS_PER_CHARACTER = 40
USUAL_POINTS_PER_CHARACTER = 10
_MOST_POINTS_MORE = 100
_LEAST_STEPS = 8  # of a chunk in which a part may end
# The first move of a line that goes on from another covers the space between two words as well.
SPACE_UNITS = 4.0
# Where the window's centres stand at the end of a text: at its last character or just past it.
_KAPPA_AT_END = (np.float32(-1), np.float32(1.5))
# How many of the last points say where the baseline has got to.
_POINTS_OF_BASELINE = 60


@dataclass(frozen=True, slots=True)
class Begun:
    """A line as far as it has been drawn, up to a character of its text: its ink `(n, 3)` as the
    graph put it out, and the state before point number `at` of it. Whoever goes on has the points
    from there drawn again."""

    ink: np.ndarray
    state: Arrays
    at: int
    until: int


@dataclass(slots=True)
class InkPiece(Piece):
    """Offsets `(n, 3)` since the last piece, the character the window was at for each `(n,)`, and
    the one being written; and at the end of a part of a line, where to go on from."""

    offsets: np.ndarray = field(default_factory=lambda: np.zeros((0, 3), np.float32))
    characters: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    character: int = 0
    begun: Begun | None = None


class InkEdge(Edge):
    """The character the window leaves behind, which stays in its sight, and the height of the pen
    over the baseline in units; of a session, where on the page its pen is, how far right of it its
    ink may reach in units, and if its text has `ended`. `advance` is the width of a character of
    the hand in units, where that is known."""

    context: Annotated[str, Field(max_length=1)] = ""
    height: Length = 0.0
    advance: Annotated[Length, Field(gt=0)] | None = None
    place: tuple[Length, Length] | None = None
    reach: Annotated[Length, Field(ge=0)] = 0.0
    ended: bool = False

    @field_validator("context")
    @classmethod
    def _can_be_read(cls, context: str) -> str:
        alphabets.encode(bases(context))
        return context

    @property
    def known(self) -> bool:
        """Whether there is a hand to write in, or one has yet to be made up."""
        return bool(self.context)


def encode(text: str, manifest: InkManifest) -> np.ndarray:
    """The symbols `(n,)` of a text that has passed `letters.written`, of its base letters."""
    return np.array(alphabets.encode(bases(text), manifest.alphabet.characters), np.int64)


def row_of(text: str, edge: InkEdge, manifest: InkManifest, bias: float) -> Arrays:
    """The row inputs of the graph for a text written from a moment."""
    symbols = encode(in_sight(text, edge), manifest)
    longest = manifest.alphabet.longest_text
    if len(symbols) > longest:
        raise InvalidRequest(f"text has {len(text)} characters; a line has fewer", "text")
    row = np.full(longest + 1, manifest.alphabet.end, np.int64)
    row[: len(symbols)] = symbols
    return {
        "text": row,
        "length": np.array(len(symbols), np.int64),
        "bias": np.array(bias, np.float32),
    }


def in_sight(text: str, edge: InkEdge) -> str:
    """What the window leaves behind stays in its sight, a space before the line."""
    return f"{edge.context} {text}" if edge.context else text


def hand_after(
    before: Moment[InkEdge], text: str, ink: np.ndarray, state: Arrays, *, drawn: int
) -> Moment[InkEdge]:
    """The hand that wrote `ink (n, 3)`, the text in sight, and was then in `state`, with `drawn`
    steps of randomness used. The window is moved back to what of the text stays in sight."""
    kappa = state["kappa"] - np.float32(len(text) - 1)
    edge = InkEdge(context=text[-1], height=_height(ink))
    drawn += before.drawn
    return replace(before, state=state | {"kappa": kappa}, drawn=drawn, edge=edge)


def on_its_line(ink: np.ndarray, edge: InkEdge) -> np.ndarray:
    """Ink `(n, 3)` of a line from its beginning, n at least 1, as it is shown: its first move is
    from the end of the hand's own ink, wherever that was, to the beginning of the line."""
    shown = ink.copy()
    if edge.known:
        shown[0, 0] = np.clip(shown[0, 0] - SPACE_UNITS, 0, SPACE_UNITS)
        shown[0, 1] += np.float32(edge.height)
    return shown


def at_end(hand: Moment[InkEdge]) -> Moment[InkEdge]:
    """The same with its text written out, wherever the window has got to: its writer says so."""
    kappa = np.clip(hand.state["kappa"], *_KAPPA_AT_END)
    return replace(hand, state=hand.state | {"kappa": kappa})


class InkLine(Generation[InkPiece]):
    """A job of the engine: a line of ink, drawn until its text is over. `written` counts points.

    Or a part of a line: from where it has `begun`, and `until` the window is at that character of
    the text, when all of it is handed out.
    """

    moment: Moment[InkEdge]

    def __init__(
        self,
        text: str,
        moment: Moment[InkEdge],
        manifest: InkManifest,
        send: Callable[[InkPiece], None],
        *,
        bias: float = 0.0,
        wants_state: bool = False,
        begun: Begun | None = None,
        until: int | None = None,
    ) -> None:
        row = row_of(text, moment.edge, manifest, bias)
        # A hand that is known is the same after the line.
        wants_state = until is not None or (wants_state and not moment.edge.known)
        asked = len(text) if begun is None else 0
        super().__init__(moment, row, send, InkPiece(), asked=asked, wants_state=wants_state)
        self.text = text
        self._until = until
        self._in_sight = in_sight(text, moment.edge)
        self._noise = InkNoise(moment.seed, moment.choice)
        self._begun = begun
        self._length = len(text) if until is None else until
        self._most = _MOST_POINTS_PER_CHARACTER * self._length + _MOST_POINTS_MORE
        self._ink = np.zeros((0, 3), np.float32)
        self._ending = Ending()
        if begun is not None:
            self.state, self._read, self._ink = begun.state, begun.at, begun.ink
            self._ending.follow(begun.ink)

    def steps_wanted(self) -> int:
        left = self._most - self._read
        if self._until is None:
            return left
        # What is drawn beyond the end of a part is drawn for nothing, and what comes before it in a
        # chunk, again: so the end is expected where this hand's pace has it.
        ink, characters = (len(self._begun.ink), self._begun.until) if self._begun else (0, 0)
        pace = ink / characters if characters else USUAL_POINTS_PER_CHARACTER
        end = ink + round(pace * (self._until - characters))
        return min(left, max(end - self._read, _LEAST_STEPS))

    def steps_expected(self) -> int:
        return max(1, USUAL_POINTS_PER_CHARACTER * self._length - self._read)

    def inputs(self, steps: int) -> Arrays:
        self._runs()
        again = self._ink[self._read : self._read + steps]
        forced = np.concatenate([again, np.zeros((steps - len(again), 3), np.float32)])
        return self._step_inputs(forced, self._read, force=np.arange(steps) < len(again))

    def accept(self, outputs: Arrays) -> bool:
        again = min(len(self._ink) - self._read, len(outputs["drawn"]))
        self._read += again
        drawn, ended, characters = (outputs[n][again:] for n in ("drawn", "ended", "character"))
        characters = characters - (len(self._in_sight) - len(self.text))
        end = self._ending.first(ended, drawn)
        beyond = np.flatnonzero(characters >= (self._until or np.inf))
        reached = len(beyond) > 0 and (end is None or beyond[0] < end)
        if reached:
            end = int(beyond[0])
        count = len(drawn) if end is None else end
        self._ending.follow(drawn[:count])
        self._take(drawn[:count])
        if count:
            characters = np.clip(characters[:count], 0, len(self.text) - 1)
            self._piece.characters = np.concatenate([self._piece.characters, characters])
            self._piece.character = int(characters[-1])
        self._read += count
        if reached and self.written > 1:
            self._drop_last()
        if end is not None:
            self._finish_reason = "stop"
        elif self._read >= self._most:
            self._finish_reason = "length"
        return self._finish_reason is not None

    def replay(self) -> tuple[Arrays, Arrays]:
        if self._until is None or self._finish_reason == "length":
            return super().replay()
        # Whoever goes on does it together with the first steps of theirs.
        at, state = next(a for a in reversed(self._anchors) if a[0] <= self._read)
        self._piece.begun = Begun(self._ink, state, at, self._until)
        return state, self._again(self._read)

    def finish(self, state: Arrays | None) -> None:
        if self._piece.begun is not None:
            state = None  # it is told there
        elif self.moment.edge.known:
            self._piece.moment = replace(self.moment, drawn=self.moment.drawn + self._read)
            state = None
        super().finish(state)

    def publish(self, gap_s: float = 0.0) -> None:
        if len(self._piece.offsets) and self._until is None and self._rested(gap_s):
            self._flush()

    def _take(self, drawn: np.ndarray) -> None:
        shown = drawn
        if len(drawn):
            self._begins()
            if not len(self._ink):
                shown = on_its_line(drawn, self.moment.edge)
        self._ink = np.concatenate([self._ink, drawn])
        self.written += len(drawn)
        self._piece.offsets = np.concatenate([self._piece.offsets, shown])

    def _drop_last(self) -> None:
        """The window is at the next word when the pen has just come down there, or is about to."""
        self._ink = self._ink[:-1]
        self._piece.offsets, self._piece.characters = (
            part[:-1] for part in (self._piece.offsets, self._piece.characters)
        )
        self._read -= 1
        self.written -= 1

    def _decided(self) -> int:
        return self._read - (self._until is not None)

    def _step_inputs(self, forced: np.ndarray, first: int, *, force: NDArray[np.bool_]) -> Arrays:
        uniforms, normals = self._noise.take(self.moment.drawn + first, len(forced))
        return {
            "forced": np.ascontiguousarray(forced),
            "force": force,
            "uniform": uniforms,
            "normal": normals,
        }

    def _again(self, start: int) -> Arrays:
        again = self._ink[start : self._read]
        return self._step_inputs(again, start, force=np.ones(len(again), np.bool_))

    def _moment_after(self, state: Arrays) -> Moment[InkEdge]:
        ink = self._ink[: self._read]
        hand = hand_after(self.moment, self._in_sight, ink, state, drawn=self._read)
        # The window of a line that was cut off stands before texts that come later.
        return at_end(hand) if self._finish_reason == "length" else hand

    def _next_piece(self) -> InkPiece:
        return InkPiece(character=self._piece.character)


def _height(ink: np.ndarray) -> float:
    """How far the end of the ink `(n, 3)` is above the baseline, by where its last arcs stand."""
    y = ink[:, 1].astype(np.float64).cumsum()[-_POINTS_OF_BASELINE:]
    if len(y) < 3:
        return 0.0
    lowest = y[1:-1][(y[1:-1] < y[:-2]) & (y[1:-1] <= y[2:])]
    return float(y[-1] - (np.median(lowest) if len(lowest) else y.min()))
