"""`POST /v1/handwriting`: text in, ink out, whole or point by point while it is being written."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from service.errors import InvalidRequest, StateMismatch, UnknownModel
from service.http.answers import EventStream, event, unless_gone
from service.http.described import BINARY, BUSY, EVENTS, TEXT, Responses, fails
from service.ink.described import Drawn
from service.ink.inkml import to_inkml
from service.ink.model import InkModel
from service.ink.page import Page, Portion, make_page
from service.ink.png import to_png
from service.ink.schemas import HandwritingRequest

router = APIRouter()


_HEADERS = {
    "X-Evenkeel-Seed": {"description": "not with JSON", "schema": {"type": "integer"}},
    "X-Evenkeel-Fingerprint": {"description": "not with JSON", "schema": {"type": "string"}},
}
_KINDS = {
    "image/svg+xml": TEXT,
    "image/png": BINARY,
    "application/inkml+xml": TEXT,
    "text/event-stream": EVENTS,
}
_ANSWERS: Responses = {
    200: {"model": Drawn, "content": _KINDS, "headers": _HEADERS},
    **fails(InvalidRequest, UnknownModel, StateMismatch, *BUSY),
}


@router.post("/v1/handwriting", responses=_ANSWERS)
async def handwriting(body: HandwritingRequest, request: Request) -> Response:
    """Write a text by hand."""
    model = request.app.state.models.pick(body.model, InkModel)
    page = await make_page(body, model, request.app.state.metrics)
    page.begin()
    if body.stream:
        return EventStream(_stream(page), page.leave)
    return await unless_gone(request, _whole(page), page.leave)


async def _whole(page: Page) -> Response:
    async with aclosing(page.write()) as portions:
        async for _ in portions:
            pass
    # Drawing a large page takes a while, and others are being served meanwhile.
    return await asyncio.to_thread(_rendered, page)


def _rendered(page: Page) -> Response:
    if page.body.format == "json":
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
    if page.body.format == "inkml":
        return Response(to_inkml(page.strokes(), page.text), 200, headers, "application/inkml+xml")
    if page.body.format == "png":
        return Response(to_png(page.svg()), 200, headers, "image/png")
    return Response(page.svg(), 200, headers, "image/svg+xml")


async def _stream(page: Page) -> AsyncGenerator[bytes]:
    """Server-sent events: the page, portions of ink, the end of each line, the usage."""
    look = {"stroke_width": page.layout.stroke_width_px, "color": page.layout.color}
    yield event(page.head() | look | {"lines": [line.text for line in page.lines]})
    async with aclosing(page.write()) as portions:
        async for portion in portions:
            for content in _contents(portion):
                yield event(content)
    yield event(page.tail())


def _contents(portion: Portion) -> list[dict[str, Any]]:
    """The ink of a portion, and the end of its line."""
    contents: list[dict[str, Any]] = []
    if len(portion.points):
        contents.append({
            "line": portion.line,
            "points": portion.points.tolist(),
            "character": portion.piece.character,
        })  # fmt: skip
    if portion.piece.finish_reason is not None:
        contents.append({"line": portion.line, "finish_reason": portion.piece.finish_reason})
    return contents
