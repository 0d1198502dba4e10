"""A page of handwriting on its way: lines written one after the other, all of them in one hand, and
what comes of them.
"""

import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from service.errors import InvalidRequest
from service.http.answers import Exchange
from service.ink import hands
from service.ink.layout import Layout, break_text
from service.ink.letters import written
from service.ink.line import InkEdge, InkLine, InkPiece
from service.ink.marks import LineMarks
from service.ink.model import InkModel
from service.ink.pen import LinePen, strokes
from service.ink.schemas import HandwritingRequest, StrokesWithText
from service.ink.svg import to_svg
from service.state import Moment

_DECIMALS = 2  # of a px
_LARGEST_PAGE_PX = 16_000_000


@dataclass(frozen=True, slots=True)
class Portion:
    """What has been written since the last one: points `(n, 3)` of one line, in px."""

    line: int
    points: np.ndarray
    piece: InkPiece


@dataclass(slots=True)
class Written:
    """A line as far as it has been written."""

    text: str
    points: list[np.ndarray] = field(default_factory=list)
    finish_reason: str | None = None

    def strokes(self) -> list[np.ndarray]:
        """Its strokes `(k, 2)`."""
        return strokes(np.concatenate(self.points)) if self.points else []


@dataclass(slots=True)
class Page:
    """One request: `moment` is the hand as far as the lines before `next_line` go."""

    body: HandwritingRequest
    model: InkModel
    layout: Layout
    moment: Moment[InkEdge]
    style: str | None
    lines: list[Written]
    next_line: int
    id: str = field(default_factory=lambda: f"ink-{secrets.token_hex(12)}")
    created: int = field(default_factory=lambda: int(time.time()))
    _writing: Exchange[InkPiece] | None = None

    def begin(self) -> None:
        """Queue the first line. Raises what `Engine.submit` raises."""
        first = self.next_line
        self._submit(next(i for i, line in enumerate(self.asked, first) if line.text))

    def leave(self) -> None:
        """Give the slot back; nothing happens when all has been written."""
        if self._writing is not None:
            self._writing.cancel()

    async def write(self) -> AsyncGenerator[Portion]:
        """Every portion of ink as it is drawn, empty ones at the ends of lines included."""
        for number, line in enumerate(self.asked, self.next_line):
            if not line.text:
                line.finish_reason = "stop"
                self.next_line = number + 1
                yield Portion(number, np.zeros((0, 3)), InkPiece(finish_reason="stop"))
                continue
            if self._writing is None:
                self._submit(number)
            assert self._writing is not None
            pen, marks = LinePen(self.layout, number), LineMarks(line.text, self.layout.px_per_unit)
            async with aclosing(self._writing.pieces()) as pieces:
                async for _, piece in pieces:
                    points = pen.move(piece.offsets)
                    marks.follow(piece.offsets, points, piece.characters)
                    if piece.finish_reason is not None:
                        points = np.concatenate([points, marks.drawn()])
                    points = points.round(_DECIMALS)
                    line.points.append(points)
                    line.finish_reason = piece.finish_reason
                    self.moment = piece.moment or self.moment
                    self.next_line = number + piece.last
                    yield Portion(number, points, piece)
            self._writing = None

    def _submit(self, number: int) -> None:
        last = max(i for i, line in enumerate(self.lines) if line.text)
        exchange: Exchange[InkPiece] = Exchange(streamed=self.body.stream)
        line = InkLine(
            self.lines[number].text,
            self.moment,
            self.model.manifest,
            exchange.sender(),
            bias=self.body.bias,
            wants_state=number < last or self.body.return_state,
        )
        exchange.jobs.append(line)
        begun = any(line.points for line in self.lines)
        exchange.submit(self.model.engine, going_on=begun)
        self._writing = exchange

    def resume(self) -> dict[str, Any]:
        """What to change in the request to go on at the next line, if any has a text."""
        if not any(line.text for line in self.lines[self.next_line :]):
            return {}
        state = self.model.codec.encode(self.moment)
        changes = {"style": None, "state": state, "seed": None, "first_line": self.next_line}
        return {"resume": changes}

    @property
    def asked(self) -> list[Written]:
        """The lines that are to be written; those before them are only laid out."""
        return self.lines[self.body.first_line :]

    @property
    def text(self) -> str:
        """The text as it is broken into lines."""
        return "\n".join(line.text for line in self.lines)

    def strokes(self) -> list[np.ndarray]:
        """All strokes `(k, 2)`, line after line."""
        return [stroke for line in self.lines for stroke in line.strokes()]

    def svg(self) -> str:
        """The page as a drawing."""
        return to_svg(self.strokes(), self.layout, len(self.lines), self.text)

    def head(self) -> dict[str, Any]:
        """What an answer begins with."""
        return {
            "id": self.id,
            "object": "handwriting",
            "created": self.created,
            "model": self.model.name,
            "system_fingerprint": self.model.fingerprint,
            "seed": self.moment.seed,
            "style": self.style,
            "width": self.layout.width_px,
            "height": self.layout.height_px(len(self.lines)),
        } | self.moment.told()

    def tail(self) -> dict[str, Any]:
        """What an answer ends with."""
        characters = sum(len(line.text) for line in self.asked)
        points = sum(len(portion) for line in self.lines for portion in line.points)
        content: dict[str, Any] = {"usage": {"characters": characters, "points": points}}
        if self.body.return_state:
            content["state"] = self.model.codec.encode(self.moment)
        return content


async def make_page(body: HandwritingRequest, model: InkModel) -> Page:
    """A request laid out, in the hand it asks for. Raises `InvalidRequest` for a text that cannot
    be written and for a hand that is none."""
    text = written(body.text, model.manifest)
    if not text.strip():
        raise InvalidRequest("text has nothing but spaces", "text")
    moment, style = await _begin(body, model)
    units = model.manifest.ink
    advance = moment.edge.advance or units.units_per_character
    layout = body.layout(units.units_per_line, advance)
    lines = break_text(text, layout.characters_per_line)
    if not any(lines[body.first_line :]):
        last = max(number for number, line in enumerate(lines) if line)
        raise InvalidRequest(
            f"first_line is {body.first_line}; the last line with a text is {last}", "first_line"
        )
    area_px = layout.width_px * layout.height_px(len(lines))
    if area_px > _LARGEST_PAGE_PX:
        raise InvalidRequest(
            f"text has {len(lines)} lines, a page of {area_px:,} px; "
            f"at most {_LARGEST_PAGE_PX:,}", "text",
        )  # fmt: skip
    kept = [Written(line) for line in lines]
    return Page(body, model, layout, moment, style, kept, body.first_line)


async def _begin(body: HandwritingRequest, model: InkModel) -> tuple[Moment[InkEdge], str | None]:
    """The hand a request asks for, and what to call it; nothing, if that is a state token."""
    if body.state is not None:
        return hands.from_token(model, body.state, body.seed, body.state_policy), None
    seed = secrets.randbits(53) if body.seed is None else body.seed
    style = hands.by_seed(model, seed) if body.style is None else body.style
    moment = await hands.hand_in(model, style, seed, body.state_policy)
    # A hand made from strokes comes back as a token, so that they need not be sent again.
    return moment, model.codec.encode(moment) if isinstance(style, StrokesWithText) else style
