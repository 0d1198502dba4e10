"""A page of handwriting on its way: lines written one after the other, all of them in one hand, and
what comes of them.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from service.http.exchange import Exchange
from service.ink.best import Best, Judge, best_of, joined, parts_of
from service.ink.curve import DECIMALS
from service.ink.layout import Layout
from service.ink.line import Begun, InkEdge, InkLine, InkPiece
from service.ink.marks import LineMarks
from service.ink.model import InkModel
from service.ink.pen import LinePen, strokes
from service.ink.schemas import HandwritingRequest
from service.ink.squeeze import Squeeze
from service.ink.svg import to_svg
from service.ink.wander import Baseline
from service.state import Moment


@dataclass(frozen=True, slots=True)
class Portion:
    """What has been written since the last one: points `(n, 3)` of one line, in px."""

    line: int
    points: np.ndarray
    piece: InkPiece

    def by_character(self) -> Iterator[tuple[int, np.ndarray]]:
        """Each character that is written, with its points `(k, 3)`; marks are of the last. A line
        or a word that was chosen among several comes as one portion."""
        characters = self.piece.characters
        if not len(self.points):
            return
        starts = [0, *(np.flatnonzero(np.diff(characters)) + 1).tolist()]
        for start, points in zip(starts, np.split(self.points, starts[1:]), strict=True):
            yield int(characters[start]) if len(characters) else self.piece.character, points


@dataclass(slots=True)
class Written:
    """A line as far as it has been written."""

    text: str
    points: list[np.ndarray] = field(default_factory=list)
    finish_reason: str | None = None
    best: Best | None = None  # once it has ended, if it was chosen among several
    candidates: list[int] | None = None  # of each part, if it was chosen by words

    def end(self) -> dict[str, Any]:
        """Why it ended, and if it was chosen among several, which it is and how legible."""
        told: dict[str, Any] = {"finish_reason": self.finish_reason}
        if self.best is not None:
            told["legibility"] = self.best.legibility
            by_word = self.candidates is not None
            told |= {"candidates": self.candidates} if by_word else {"candidate": self.best.number}
        return told

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
    judge: Judge | None  # of several draws of each line, if there are
    id: str = field(default_factory=lambda: f"ink-{secrets.token_hex(12)}")
    created: int = field(default_factory=lambda: int(time.time()))
    _writing: Exchange[InkPiece] | None = None
    _others: int = 0  # points of draws that were not kept

    def begin(self) -> None:
        """Queue the first line. Raises what `Engine.submit` raises."""
        first = self.next_line
        number = next(i for i, line in enumerate(self.asked, first) if line.text)
        self._submit(number, self._parts(number)[0])

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
                await asyncio.sleep(0)  # a page may have two thousand of them
                continue
            if self._writing is None:
                self._submit(number, self._parts(number)[0])
            pen, marks = LinePen(self.layout, number), LineMarks(line.text, self.layout.px_per_unit)
            squeeze = Squeeze(self.layout, line.text)
            baseline = Baseline(self.layout, self.moment.seed, number)
            end = np.zeros((0, 3))
            async with aclosing(self._pieces(number)) as pieces:
                async for piece in pieces:
                    points = pen.move(piece.offsets)
                    points[:, 0] = squeeze.place(points[:, 0], piece.characters)
                    marks.follow(piece.offsets, points, piece.characters)
                    end = points[-1:].copy() if len(points) else end  # where the pen is
                    if piece.finish_reason is not None and len(drawn := marks.drawn()):
                        # Of a line that was cut off the pen is down: it is lifted where it is.
                        lifted = end[end[:, 2] < 0.5] + (0, 0, 1)
                        drawn[:, 0] = drawn[:, 0].clip(max=self.layout.width_px)
                        points = np.concatenate([points, lifted, drawn])
                    if self.layout.wander:
                        points = points.copy()  # marks come of these, which have not wandered
                        points[:, 1] += baseline.below_px(points[:, 0])
                    points = points.round(DECIMALS)
                    line.points.append(points)
                    line.finish_reason = piece.finish_reason
                    if line.best is not None and not line.best.readable:
                        line.finish_reason = "unreadable"
                    # Every line is drawn with the noise that is asked for, whichever was the last.
                    self.moment = replace(piece.moment or self.moment, choice=0)
                    self.next_line = number + piece.last
                    yield Portion(number, points, piece)
            self._writing = None

    async def _pieces(self, number: int) -> AsyncGenerator[InkPiece]:
        """The pieces of a line as they come, or the best draw of each part when all have ended."""
        if self.judge is not None:
            async with aclosing(self._chosen(number, self.judge)) as parts:
                async for piece in parts:
                    yield piece
            return
        assert self._writing is not None
        async with aclosing(self._writing.pieces()) as pieces:
            async for _, piece in pieces:
                yield piece

    async def _chosen(self, number: int, judge: Judge) -> AsyncGenerator[InkPiece]:
        """The parts of a line, or all of it as one, each the best of several draws."""
        line, before = self.lines[number], InkPiece()
        shown = before if self.body.best_by == "word" else None
        for until in self._parts(number):
            if before.begun is not None:
                self._submit(number, until, before.begun)
            assert self._writing is not None
            best = await best_of(self._writing, line.text, self.layout, number, judge, shown, until)
            piece = best.piece
            self._others += sum(job.written for job in self._writing.jobs) - len(piece.offsets)
            if shown is not None:
                shown = joined(shown, piece)
                line.candidates = [*(line.candidates or []), best.number]
            if not len(piece.offsets):
                piece.character = before.character
            # Where all draws are lost the rest of the line is not written.
            if until is None or piece.finish_reason == "length":
                line.best = best
                yield piece
                return
            piece.finish_reason = None
            yield piece
            before = piece

    def _parts(self, number: int) -> list[int | None]:
        """Where the parts of a line end that are written one after the other."""
        return parts_of(self.lines[number].text) if self.body.best_by == "word" else [None]

    def _submit(self, number: int, until: int | None, begun: Begun | None = None) -> None:
        last = max(i for i, line in enumerate(self.lines) if line.text)
        # Of draws that are judged nobody sees anything before they have ended.
        exchange: Exchange[InkPiece] = Exchange(streamed=self.body.stream and self.judge is None)
        for choice in self.body.choices:
            line = InkLine(
                self.lines[number].text,
                replace(self.moment, choice=choice),
                self.model.manifest,
                exchange.sender(),
                bias=self.body.bias,
                wants_state=number < last or self.body.return_state,
                begun=begun,
                until=until,
            )
            exchange.jobs.append(line)
        admitted = begun is not None or any(line.points for line in self.lines)
        exchange.submit(self.model.engine, admitted=admitted)
        self._writing = exchange

    def resume(self) -> dict[str, Any]:
        """What to change in the request to go on at the next line, if any has a text; a drawing
        would lack the lines before."""
        left = any(line.text for line in self.lines[self.next_line :])
        if not (left and self.body.as_points):
            return {}
        state = self.model.codec.encode(self.moment)
        return {
            "resume": {
                "style": None,
                "state": state,
                "seed": None,
                "first_line": self.next_line,
                "model": self.model.name,  # whose default may be another on another replica
            }
        }

    @property
    def asked(self) -> list[Written]:
        """The lines that are to be written; those before them are only laid out."""
        return self.lines[self.body.first_line :]

    @property
    def text(self) -> str:
        """What is written, as it is broken into lines."""
        return "\n".join(line.text for line in self.asked)

    def strokes(self) -> list[np.ndarray]:
        """All strokes `(k, 2)`, line after line."""
        return [stroke for line in self.lines for stroke in line.strokes()]

    def svg(self) -> str:
        """The page as a drawing."""
        return to_svg(self.strokes(), self.layout, len(self.lines), self.text)

    def head(self) -> dict[str, Any]:
        """What an answer begins with."""
        return (
            {
                "id": self.id,
                "object": "handwriting",
                "created": self.created,
                "model": self.model.name,
                "system_fingerprint": self.model.fingerprint,
                "seed": self.moment.seed,
                "style": self.style,
                "width": self.layout.width_px,
                "height": self.layout.height_px(len(self.lines)),
            }
            | self.moment.told()
            | self._sheets()
        )

    def _sheets(self) -> dict[str, Any]:
        """How many there are, where there are any."""
        if self.body.page is None:
            return {}
        return {"pages": len(self.layout.sheets(len(self.lines)))}

    def tail(self) -> dict[str, Any]:
        """What an answer ends with."""
        characters = sum(len(line.text) for line in self.asked)
        points = sum(len(portion) for line in self.lines for portion in line.points) + self._others
        content: dict[str, Any] = {"usage": {"characters": characters, "points": points}}
        if self.body.return_state:
            content["state"] = self.model.codec.encode(self.moment)
        return content
