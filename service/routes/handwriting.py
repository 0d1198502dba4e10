"""`POST /v1/handwriting`: text in, ink out, whole or point by point while it is being written."""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from service import hands
from service.errors import InvalidRequest, ServiceError
from service.handwriting import InkLine, InkPiece, encode
from service.ink.inkml import to_inkml
from service.ink.layout import Layout, break_text
from service.ink.pen import LinePen, strokes
from service.ink.png import to_png
from service.ink.svg import to_svg
from service.ink_schemas import HandwritingRequest, StrokesWithText
from service.metrics import Metrics
from service.models import ServedModel
from service.state import Moment

router = APIRouter()

_CLIENT_CLOSED_REQUEST = 499  # nobody reads it; nginx's number for the log
_DECIMALS = 2  # of a px
_LARGEST_PAGE_PX = 16_000_000


@router.post("/v1/handwriting")
async def handwriting(body: HandwritingRequest, request: Request) -> Response:
    """Write a text by hand."""
    model = hands.pick_model(request.app.state.models, body.model)
    page = await _begin(body, model)
    metrics: Metrics = request.app.state.metrics
    if body.stream:
        portions = page.write(metrics)
        first = await anext(portions)  # a full queue is a 503, not an event of a good answer
        return StreamingResponse(_stream(page, first, portions), media_type="text/event-stream")
    async with aclosing(page.write(metrics)) as portions:
        async for _ in portions:
            if await request.is_disconnected():
                return Response(status_code=_CLIENT_CLOSED_REQUEST)
    # Drawing a large page takes a while, and others are being served meanwhile.
    return await asyncio.to_thread(_whole, page)


async def write_svg(body: HandwritingRequest, model: ServedModel, metrics: Metrics) -> str:
    """The whole of a request as an SVG drawing."""
    page = await _begin(body, model)
    async with aclosing(page.write(metrics)) as portions:
        async for _ in portions:
            pass
    return _svg(page)


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
    """One request on its way: the lines are written one after the other, each going on in the hand
    the one before left off with."""

    body: HandwritingRequest
    model: ServedModel
    layout: Layout
    moment: Moment
    style: str | None
    lines: list[Written]
    id: str = field(default_factory=lambda: f"ink-{secrets.token_hex(12)}")
    created: int = field(default_factory=lambda: int(time.time()))

    async def write(self, metrics: Metrics) -> AsyncGenerator[Portion]:
        """Every portion of ink as it is drawn, empty ones at the ends of lines included."""
        last = max((i for i, line in enumerate(self.lines) if line.text), default=-1)
        for number, line in enumerate(self.lines):
            if not line.text:
                line.finish_reason = "stop"
                yield Portion(number, np.zeros((0, 3)), InkPiece(finish_reason="stop"))
                continue
            pen = LinePen(self.layout, number)
            job, pieces = self._line(line.text, goes_on=number < last or self.body.return_state)
            async with aclosing(pieces):
                async for piece in pieces:
                    points = pen.move(piece.offsets).round(_DECIMALS)
                    line.points.append(points)
                    line.finish_reason = piece.finish_reason
                    self.moment = piece.moment or self.moment
                    yield Portion(number, points, piece)
            _count(job[0], line, self.model.artifact.name, metrics)

    def _line(self, text: str, *, goes_on: bool) -> tuple[list[InkLine], AsyncGenerator[InkPiece]]:
        made: list[InkLine] = []
        manifest, moment = self.model.artifact.manifest, self.moment

        def make(send: Callable[[InkPiece], None]) -> InkLine:
            made.append(
                InkLine(text, moment, manifest, send, bias=self.body.bias, wants_state=goes_on)
            )
            return made[0]

        return made, hands.run_line(self.model, make)

    @property
    def text(self) -> str:
        """The text as it is broken into lines."""
        return "\n".join(line.text for line in self.lines)

    def strokes(self) -> list[np.ndarray]:
        """All strokes `(k, 2)`, line after line."""
        return [stroke for line in self.lines for stroke in line.strokes()]

    def head(self) -> dict[str, Any]:
        """What an answer begins with."""
        return {
            "id": self.id,
            "object": "handwriting",
            "created": self.created,
            "model": self.model.artifact.name,
            "system_fingerprint": self.model.fingerprint,
            "seed": self.moment.seed,
            "style": self.style,
            "width": self.layout.width_px,
            "height": self.layout.height_px(len(self.lines)),
        }

    def tail(self) -> dict[str, Any]:
        """What an answer ends with."""
        characters = sum(len(line.text) for line in self.lines)
        points = sum(len(portion) for line in self.lines for portion in line.points)
        content: dict[str, Any] = {"usage": {"characters": characters, "points": points}}
        if self.body.return_state:
            content["state"] = self.model.codec.encode(self.moment)
        return content


async def _begin(body: HandwritingRequest, model: ServedModel) -> Page:
    manifest = model.artifact.manifest
    assert manifest.ink is not None
    layout = body.layout(manifest.ink.units_per_line, manifest.ink.units_per_character)
    encode(body.text.replace("\r\n", "\n").replace("\n", " "), manifest)
    lines = break_text(body.text, layout.characters_per_line)
    if not any(lines):
        raise InvalidRequest("text has nothing but spaces", "text")
    area_px = layout.width_px * layout.height_px(len(lines))
    if area_px > _LARGEST_PAGE_PX:
        raise InvalidRequest(
            f"text has {len(lines)} lines, a page of {area_px:,} px; "
            f"at most {_LARGEST_PAGE_PX:,}", "text",
        )  # fmt: skip
    if body.state is not None:
        moment = model.codec.decode(body.state)
        if body.seed is not None:
            moment = replace(moment, seed=body.seed, choice=0, drawn=0)
    else:
        seed = secrets.randbits(53) if body.seed is None else body.seed
        moment = await hands.hand_in(model, body.style, seed)
    # A hand made from strokes comes back as a token, so that they need not be sent again.
    own = isinstance(body.style, StrokesWithText)
    style = model.codec.encode(moment) if own else body.style
    assert style is None or isinstance(style, str)
    return Page(body, model, layout, moment, style, [Written(line) for line in lines])


def _whole(page: Page) -> Response:
    body = page.body
    if body.format == "json":
        lines = [
            {
                "text": line.text,
                "strokes": [stroke.tolist() for stroke in line.strokes()],
                "finish_reason": line.finish_reason,
            }
            for line in page.lines
        ]
        return JSONResponse(page.head() | {"lines": lines} | page.tail())
    headers = {
        "X-Evenkeel-Seed": str(page.moment.seed),
        "X-Evenkeel-Fingerprint": page.model.fingerprint,
    }
    if body.format == "inkml":
        return Response(to_inkml(page.strokes(), page.text), 200, headers, "application/inkml+xml")
    if body.format == "png":
        return Response(to_png(_svg(page)), 200, headers, "image/png")
    return Response(_svg(page), 200, headers, "image/svg+xml")


def _svg(page: Page) -> str:
    return to_svg(page.strokes(), page.layout, len(page.lines), page.text)


async def _stream(
    page: Page, first: Portion, portions: AsyncGenerator[Portion]
) -> AsyncIterator[bytes]:
    """Server-sent events: the page, portions of ink, the end of each line, the usage, `[DONE]`."""
    look = {"stroke_width": page.layout.stroke_width_px, "color": page.layout.color}
    yield _event(page.head() | look | {"lines": [line.text for line in page.lines]})
    try:
        async with aclosing(portions):
            for event in _events(first):
                yield event
            async for portion in portions:
                for event in _events(portion):
                    yield event
        yield _event(page.tail())
    except ServiceError as error:
        yield _event(error.body())
    yield b"data: [DONE]\n\n"


def _events(portion: Portion) -> list[bytes]:
    """The ink of a portion, and the end of its line."""
    events = []
    if len(portion.points):
        events.append(_event({
            "line": portion.line,
            "points": portion.points.tolist(),
            "character": portion.piece.character,
        }))  # fmt: skip
    if portion.piece.finish_reason is not None:
        ended = {"line": portion.line, "finish_reason": portion.piece.finish_reason}
        events.append(_event(ended))
    return events


def _event(content: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(content)}\n\n".encode()


def _count(job: InkLine, line: Written, name: str, metrics: Metrics) -> None:
    now = time.perf_counter()
    metrics.finished.labels(name, line.finish_reason).inc()
    metrics.tokens_in.labels(name).inc(len(line.text))
    metrics.tokens_out.labels(name).inc(job.points)
    metrics.total_s.labels(name).observe(now - job.arrived_s)
    if job.first_run_s is not None:
        metrics.queue_s.labels(name).observe(job.first_run_s - job.arrived_s)
    if job.first_point_s is not None:
        metrics.first_byte_s.labels(name).observe(job.first_point_s - job.arrived_s)
        if job.points > 1:
            mean_s = (now - job.first_point_s) / (job.points - 1)
            metrics.inter_token_s.labels(name).observe(mean_s)
