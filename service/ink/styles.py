"""`/v1/styles`: the stored hands, what each looks like, and new ones from a caller's strokes."""

import asyncio
from contextlib import aclosing
from functools import partial
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse, Response

from contract.ink import StyleEntry
from service.catalogue import Models
from service.errors import InvalidRequest, UnknownModel, UnknownStyle, shown
from service.http import record
from service.http.answers import unless_gone
from service.http.described import BUSY, TEXT, Responses, fails
from service.http.methods import Routes
from service.ink import hands
from service.ink.best import Judge, only_judge
from service.ink.described import Made, StoredList
from service.ink.making import make_page
from service.ink.measure import Measures
from service.ink.model import InkModel
from service.ink.schemas import HandwritingRequest, StyleRequest

router = Routes(tags=["handwriting"])

_PREVIEW_TEXT, _KEPT = "an even keel", "private, max-age=3600"
_PREVIEW_SEED, _PREVIEW_DRAWS = 1, 4
_MEASURED_TEXT = "the quick brown fox jumps over the dog"
_PREVIEW_WIDTH, _PREVIEW_LINE = 330, 56.0  # px
_WIDER = 1.1
_MEASURED_AT_ONCE = 4
_DRAWING: Responses = {
    200: {
        "content": {"image/svg+xml": TEXT},
        "headers": {"Cache-Control": {"schema": {"type": "string"}, "example": _KEPT}},
    },
    **fails(InvalidRequest, UnknownModel, UnknownStyle, *BUSY),
}
_MADE: Responses = {200: {"model": Made}, **fails(InvalidRequest, UnknownModel, *BUSY)}


@router.get("/v1/styles", response_model=StoredList, responses=fails(*BUSY))
async def list_styles(request: Request) -> dict[str, Any]:
    """All stored hands of all handwriting models that are ready."""
    models: Models = request.app.state.models
    every = models.of(InkModel)
    pens = [pen for pen in every if pen.engine.ready] or every
    # Those to be measured are rows of few batches: all at once are refused where they hold
    # others up. Whatever fails, the rest has been measured when it is asked for again.
    turn = asyncio.Semaphore(_MEASURED_AT_ONCE)
    described = (_describe(pen, style, turn) for pen in pens for style in pen.manifest.styles)
    entries = await asyncio.gather(*described, return_exceptions=True)
    for failure in entries:
        if isinstance(failure, BaseException):
            raise failure
    return {"object": "list", "data": entries}


@router.get("/v1/styles/{style}/preview.svg", response_class=Response, responses=_DRAWING)
async def preview(request: Request, style: str, model: str | None = None) -> Response:
    """A few words in a stored hand, always the same: the most legible of a few draws, where there
    is a model that reads. If no model is named, by the one that answers requests which name none,
    or else by the first that has such a hand."""
    models: Models = request.app.state.models
    pen, judge = _model_of(models, model, style), only_judge(models)
    by = None if judge is None else judge.fingerprint
    if style not in pen.previews or pen.previews[style][0] != by:
        drawn = partial(_drawn, pen, style, judge)
        pen.previews[style] = by, await pen.shared.get(("preview", style, by), drawn)
    return Response(pen.previews[style][1], 200, {"Cache-Control": _KEPT}, "image/svg+xml")


async def _drawn(model: InkModel, style: str, judge: Judge | None) -> str:
    body = HandwritingRequest(
        text=_PREVIEW_TEXT,
        style=style,
        seed=_PREVIEW_SEED,
        width=_PREVIEW_WIDTH,
        line_height=_PREVIEW_LINE,
        best_of=1 if judge is None else _PREVIEW_DRAWS,
    )
    page = await make_page(body, model, judge)
    while len(page.lines) > 1:  # in a hand that wide; a preview is a line
        body = body.model_copy(update={"width": round(_WIDER * body.width)})
        page = await make_page(body, model, judge)
    async with aclosing(page.write()) as portions:
        async for _ in portions:
            pass
    return page.svg()


@router.post("/v1/styles", responses=_MADE)
async def make_style(body: StyleRequest, request: Request) -> Response:
    """A hand made from strokes, as a token to use as `style`; nothing is kept here."""
    return await unless_gone(request, _made(body, request))


async def _made(body: StyleRequest, request: Request) -> Response:
    model = request.app.state.models.pick(body.model, InkModel)
    record.current().model = model.name
    moment, looks = await hands.read_strokes(model, body, within="")
    whose = {"model": model.name, "system_fingerprint": model.fingerprint}
    return JSONResponse(whose | {"style": model.codec.encode(moment)} | _facts(looks))


async def _describe(model: InkModel, style: StyleEntry, turn: asyncio.Semaphore) -> dict[str, Any]:
    async with turn:
        if style.id not in model.looks:
            look = partial(hands.look, model, style.id, _MEASURED_TEXT)
            model.looks[style.id] = await model.shared.get(("look", style.id), look)
    return {
        "id": style.id,
        "model": model.name,
        "description": style.description,
        **_facts(model.looks[style.id]),
        "preview": f"/v1/styles/{style.id}/preview.svg?model={model.name}",
    }


def _facts(looks: Measures) -> dict[str, float]:
    return {
        "slant_degrees": looks.slant_degrees,
        "size": looks.size_units,
        "speed": looks.units_per_point,
    }


def _model_of(models: Models, name: str | None, style: str) -> InkModel:
    every = models.of(InkModel) if name is None else [models.pick(name, InkModel)]
    able = [model for model in every if style in model.styles]
    if able:
        usual = models.default(InkModel)
        return min(able, key=lambda model: (not model.engine.ready, model is not usual))
    known = ", ".join(dict.fromkeys(s for model in every for s in model.styles)) or "none"
    whose = "this service" if name is None else f"model {name!r}"
    raise UnknownStyle(f"style is {shown(style)}; {whose} has: {known}", "style")
