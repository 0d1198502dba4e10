"""`POST /v1/read`: a line of ink in, its text out, with how sure the reader is of it."""

import asyncio
import secrets
import time

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import ValidationError

from contract.pieces import Pieces, cut, line_of
from service.engine import terms
from service.errors import InvalidRequest, StateMismatch, UnknownModel, rule_of
from service.http import record
from service.http.answers import unless_gone
from service.http.described import BUSY, Responses, fails
from service.ink.upright import upright
from service.reader.described import ReadLine
from service.reader.inkml import from_inkml
from service.reader.model import ReaderEdge, ServedReader
from service.reader.online import OnlineReader, described, text_of
from service.reader.schemas import STROKES, ReadRequest
from service.reader.tracer import come_by, require_short
from service.state import Moment

router = APIRouter(tags=["reading"])

_ANSWERS: Responses = {
    200: {"model": ReadLine},
    **fails(InvalidRequest, UnknownModel, StateMismatch, *BUSY),
}
_Strokes = list[list[list[float]]]


@router.post("/v1/read", responses=_ANSWERS)
async def read(body: ReadRequest, request: Request) -> Response:
    """Read a line of ink."""
    return await unless_gone(request, _answer(body, request))


async def _answer(body: ReadRequest, request: Request) -> Response:
    model = request.app.state.models.pick(body.model, ServedReader)
    terms.shorten(body.deadline_s)
    record.current().model = model.name
    line = OnlineReader(model, _begin(model, body))
    # Cutting long ink takes a while, and others are being served meanwhile.
    field, strokes = "strokes", body.strokes
    if body.inkml is not None:
        field, strokes = "inkml", await asyncio.to_thread(_of_inkml, body.inkml)
    assert strokes is not None, "one of the two is there"
    on_a_line = body.line_height is not None or body.state is not None
    with come_by(field):
        if on_a_line:
            pieces = await _on_its_line(line, strokes)
        else:
            pieces = await asyncio.to_thread(_alone, model, strokes)
    try:
        settled = await line.read(pieces)
        ahead = await line.ahead(admitted=True)
    finally:
        record.current().pay(line.ran)
    answer = {
        "id": f"read-{secrets.token_hex(12)}",
        "object": "reading",
        "created": int(time.time()),
        "model": model.name,
        "system_fingerprint": model.fingerprint,
        **line.told,
        "text": text_of([*settled, *ahead]),
        "characters": [*described(settled, settled=True), *described(ahead, settled=False)],
        "usage": {"pieces": len(pieces)},
    }
    return JSONResponse(answer | ({"state": line.token()} if body.return_state else {}))


def _begin(model: ServedReader, body: ReadRequest) -> Moment[ReaderEdge]:
    if body.state is not None:
        moment: Moment[ReaderEdge] = model.codec.go_on(body.state, None, body.state_policy)
        return moment
    return model.on_line(body.line_height, body.origin)


def _of_inkml(document: str) -> _Strokes:
    """The strokes of a document, with the limits that those of a request have."""
    try:
        return STROKES.validate_python(from_inkml(document), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        rule, whole = rule_of(first), isinstance(first["input"], list)
        about = rule if whole else f"a coordinate {first['input']}: {rule}"
        raise InvalidRequest(f"inkml has {about}", "inkml") from error


async def _on_its_line(line: OnlineReader, strokes: _Strokes) -> Pieces:
    """Ink that stands on a ruled line, the pen lifted before and after every stroke."""
    points = [[x, y, i == len(s) - 1] for s in strokes for i, (x, y) in enumerate(s)]
    return np.concatenate([line.lift(), await line.trace(points)])


def _alone(model: ServedReader, strokes: _Strokes) -> Pieces:
    """Ink whose slope, size and baseline are its own."""
    level = line_of(upright(strokes))
    if level is None:
        raise InvalidRequest(
            "the ink has no line in it: with a line_height it may be as small as a point"
        )
    require_short(level)
    return cut(level, reordered=model.manifest.pieces.reordered)
