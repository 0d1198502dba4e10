"""`POST /v1/handwriting`: text in, ink out, whole or point by point while it is being written."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic_core import to_json

from service.engine import terms
from service.errors import InvalidRequest, ServiceError, StateMismatch, UnknownModel
from service.http.answers import EventStream, unless_gone
from service.http.aside import Aside
from service.http.described import BUSY, OF_STREAMS, Responses, events, fails
from service.ink.best import Judge, judge_of
from service.ink.described import Drawn, LineEnded, PageBegun, PageEnded, Points
from service.ink.drawing import CONTENT, draw, in_event
from service.ink.making import make_page
from service.ink.model import InkModel
from service.ink.page import Page, Portion
from service.ink.schemas import HandwritingRequest

router = APIRouter(tags=["handwriting"])

PATH = "/v1/handwriting"


_HEADERS = {
    "X-Evenkeel-Seed": {
        "description": "not with JSON",
        "schema": {"type": "integer"},
        "example": 7,
    },
    "X-Evenkeel-Fingerprint": {
        "description": "not with JSON",
        "schema": {"type": "string"},
        "example": "8c6e3f0a1b2d",
    },
    "X-Evenkeel-State-Runtime": {
        "description": "not with JSON: of a token that was computed elsewhere, where close will do",
        "schema": {"type": "string"},
        "example": "cpu-ort1.31.1-x86_64-avx2",
    },
    "X-Evenkeel-Legibility": {
        "description": "not with JSON, with best_of: that of the least legible line",
        "schema": {"type": "number"},
        "example": -0.0312,
    },
    "X-Evenkeel-Unreadable": {
        "description": "not with JSON, with best_of: lines that are not legible enough",
        "schema": {"type": "integer"},
        "example": 0,
    },
}
_KINDS = CONTENT | {"text/event-stream": events(PageBegun, Points, LineEnded, PageEnded)}
_ANSWERS: Responses = {
    200: {"model": Drawn, "content": _KINDS, "headers": _HEADERS | OF_STREAMS},
    **fails(InvalidRequest, UnknownModel, StateMismatch, *BUSY),
}


@router.post(PATH, responses=_ANSWERS)
async def handwriting(body: HandwritingRequest, request: Request) -> Response:
    """Write a text by hand."""
    model = request.app.state.models.pick(body.model, InkModel)
    terms.shorten(body.deadline_s)
    judge = None if body.best_of == 1 else judge_of(request.app.state.models, body.judge)
    answer = _answer(body, model, judge, request.app.state.aside)
    return await unless_gone(request, answer)


async def _answer(
    body: HandwritingRequest, model: InkModel, judge: Judge | None, aside: Aside
) -> Response:
    page = await make_page(body, model, judge)
    page.begin()
    if body.stream:
        return EventStream(_stream(page, aside), page.leave, model.engine, numbered=body.event_ids)
    try:
        return await _whole(page, aside)
    finally:
        page.leave()


async def _whole(page: Page, aside: Aside) -> Response:
    async with aclosing(page.write()) as portions:
        async for _ in portions:
            pass
    # Drawing a large page takes a while, and others are being served meanwhile.
    rendered = partial(_rendered, page)
    return await (asyncio.to_thread(rendered) if page.body.format == "json" else aside.do(rendered))


def _rendered(page: Page) -> Response:
    if page.body.format == "json":
        lines = [
            {
                "text": line.text,
                "strokes": [stroke.tolist() for stroke in line.strokes()],
            }
            | line.end()
            for line in page.asked
        ]
        # Nobody else has the interpreter meanwhile; json.dumps keeps it five times as long.
        told = to_json(page.head() | {"lines": lines} | page.tail())
        return Response(told, media_type="application/json")
    headers = {
        "X-Evenkeel-Seed": str(page.moment.seed),
        "X-Evenkeel-Fingerprint": page.model.fingerprint,
    }
    if page.moment.runtime is not None:
        headers["X-Evenkeel-State-Runtime"] = page.moment.runtime
    legible = [line.best for line in page.asked if line.best is not None]
    if legible:
        headers["X-Evenkeel-Legibility"] = str(min(best.legibility for best in legible))
        headers["X-Evenkeel-Unreadable"] = str(sum(not best.readable for best in legible))
    media_type, content = draw(page)
    return Response(content, 200, headers, media_type)


async def _stream(page: Page, aside: Aside) -> AsyncGenerator[str]:
    """Server-sent events: the page, portions of ink, the end of each line, the usage."""
    layout = page.layout
    look = {
        "stroke_width": layout.stroke_width_px,
        "thinning": layout.thinning,
        "color": layout.color,
    }
    lines = {"lines": [line.text for line in page.lines]}
    yield json.dumps(page.head() | look | lines | _resume(page))
    try:
        async with aclosing(page.write()) as portions:
            async for portion in portions:
                for content in _contents(page, portion):
                    yield json.dumps(content)
    except ServiceError as error:
        yield json.dumps(error.body() | page.resume())
    else:
        # Points have been told.
        drawn = {} if page.body.as_points else await aside.do(partial(in_event, page))
        yield json.dumps(page.tail() | drawn)


def _contents(page: Page, portion: Portion) -> list[dict[str, Any]]:
    """The ink of a portion, and the end of its line."""
    contents = [
        {"line": portion.line, "points": points.tolist(), "character": character}
        for character, points in portion.by_character()
    ]
    if portion.piece.finish_reason is not None:
        line = page.lines[portion.line]
        # A line without a text moves no state, and a page may have two thousand of them.
        resume = _resume(page) if line.text else {}
        contents.append({"line": portion.line} | line.end() | resume)
    return contents


def _resume(page: Page) -> dict[str, Any]:
    return page.resume() if page.body.resume else {}
