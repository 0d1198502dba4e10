"""Ink read as it is written: a reader followed piece by piece, over `/v1/online` and for a line.

Shapes: n points, N pieces of P numbers.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Self

import numpy as np

from contract.golden import Arrays
from contract.pieces import PIECE, Pieces
from contract.reader import Read, best_path
from service.errors import InvalidRequest
from service.http.waits import turns
from service.online import Online
from service.reader.model import ReaderEdge, ServedReader
from service.reader.schemas import ReaderOpening, ReaderSaid
from service.reader.tracer import Point, Tracer, come_by, require_few
from service.state import Edge, Moment

# How high over the baseline most people begin a line, in units: for a line whose place is unknown.
_FIRST_HEIGHT = 2.5
# Ink that takes two milliseconds to cut: strokes, or points of fewer.
_SHORT, _SHORT_POINTS = 16, 256
_KEPT = 1000  # characters of the text: a line has fewer, a session no end


async def follow(model: ServedReader, opening: ReaderOpening) -> "OnlineReader":
    """Begin a session on the line it asks for, or on that of its token."""
    if opening.state is None:
        return OnlineReader(model, model.on_line(opening.line_height, opening.origin))
    return OnlineReader(model, model.codec.go_on(opening.state, None, opening.state_policy))


class OnlineReader(Online):
    """Pen points on a page in, the text they say so far out.

    The page has y down, and a ruled line on which the ink stands.
    """

    def __init__(self, model: ServedReader, moment: Moment[ReaderEdge]) -> None:
        super().__init__(model, moment, {})
        edge = moment.edge
        self._rests = model.manifest.pieces.rests
        self._px_per_unit, self._origin = edge.px_per_unit, edge.origin
        self._tracer = Tracer(edge.at, edge.path)
        self._last = edge.last
        self._text = ""  # what is settled of it

    async def answer(self, message: Any) -> dict[str, Any]:
        match ReaderSaid.model_validate(message):
            case ReaderSaid(point=list(one), points=None):
                field, points = "point", [one]
            case ReaderSaid(point=None, points=list(points)):
                field = "points"
            case _:
                raise InvalidRequest("a message to this model has either point or points")
        with come_by(field):
            pieces = await self.trace(points)
        settled = await self.read(pieces)
        ahead = await self.ahead(admitted=bool(len(pieces)))
        self._text = (self._text + text_of(settled))[-_KEPT:]
        shown = [*described(settled, settled=True), *described(ahead, settled=False)]
        return {
            "text": (self._text + text_of(ahead))[-_KEPT:],
            "characters": shown,
            "step": self.steps,
        }

    async def trace(self, points: Sequence[Sequence[float]]) -> Pieces:
        """The pieces `(N, P)` that points `[x, y, up]` in px complete; others are served between
        some strokes and the next.

        Raises `InvalidRequest` for ink that is far too large for its line.
        """
        pieces, count = [np.zeros((0, PIECE), np.float32)], 0
        for some in _portions(points):
            # In a thread short strokes would keep everybody from the interpreter, a long one not.
            if len(some) > 2 * _SHORT_POINTS:
                pieces.append(await turns().beside(partial(self._follow, some)))
            else:
                if len(pieces) > 1:
                    await turns().mine(again=True)
                pieces.append(self._follow(some))
            count += len(pieces[-1])
            require_few(count)
        return np.concatenate(pieces)

    def _follow(self, points: Sequence[Sequence[float]]) -> Pieces:
        stroke: list[Point] = []
        pieces = [np.zeros((0, PIECE), np.float32)]
        for x, y, up in points:
            stroke.append(self.on_line(x, y))
            if up > 0:
                pieces.append(self._tracer.follow(stroke, lifted=True))
                stroke = []
        if stroke:
            pieces.append(self._tracer.follow(stroke, lifted=False))
        return np.concatenate(pieces)

    def lift(self) -> Pieces:
        """The pieces `(N, P)` of a stroke that is being written, which ends where the pen is."""
        if not self._tracer.path:
            return np.zeros((0, PIECE), np.float32)
        return self._tracer.follow([], lifted=True)

    def on_line(self, x: float, y: float) -> Point:
        """A place on the page in units, from the left end of the baseline."""
        if self._origin is None:
            self._origin = (x, y + _FIRST_HEIGHT * self._px_per_unit)
        left, base = self._origin
        return (x - left) / self._px_per_unit, (base - y) / self._px_per_unit

    async def read(self, pieces: Pieces, *, admitted: bool = False) -> list[Read]:
        """Read pieces `(N, P)`: what is then settled."""
        if not len(pieces):
            return []
        outputs = await self._read(pieces, admitted=admitted)
        settled = best_path(outputs["logits"], self._last)
        self._last = int(outputs["logits"][-1].argmax())
        return settled

    async def ahead(self, *, admitted: bool) -> list[Read]:
        """What the line would say beyond that if the pen rested; it stands where it stood."""
        if not self._ahead:
            return []
        kept = self._state, self.steps
        unused = np.zeros((self._rests, PIECE), np.float32)
        none = np.zeros(self._rests, bool)
        outputs, _ = await self._run(unused, none, admitted=admitted)
        self._state, self.steps = kept
        return best_path(outputs["logits"], self._last)

    def standing(self) -> Self:
        stands = super().standing()
        stands._tracer = Tracer(self._tracer.at, self._tracer.path)
        return stands

    def _edge(self) -> Edge:
        place = {"px_per_unit": self._px_per_unit, "origin": self._origin}
        pen = {"at": self._tracer.at, "path": tuple(self._tracer.path), "last": self._last}
        return super()._edge().model_copy(update=place | pen)

    def _noise(self, count: int) -> Arrays:
        return {}


def _portions(points: Sequence[Sequence[float]]) -> Iterator[Sequence[Sequence[float]]]:
    """Points `[x, y, up]` in parts of few strokes and few points, of which each but the last ends
    with a stroke."""
    begin = strokes = 0
    for end, (_, _, up) in enumerate(points, 1):
        strokes += up > 0
        if up > 0 and (strokes == _SHORT or end - begin >= _SHORT_POINTS):
            yield points[begin:end]
            begin, strokes = end, 0
    if begin < len(points):
        yield points[begin:]


def described(read: Sequence[Read], *, settled: bool) -> list[dict[str, Any]]:
    """As JSON."""
    return [
        {"character": r.character, "confidence": round(r.confidence, 4), "settled": settled}
        for r in read
    ]


def text_of(read: Sequence[Read]) -> str:
    """The characters in order."""
    return "".join(r.character for r in read)
