"""`POST /v1/read`: ink in, its text out line by line, with how sure the reader is of it."""

import secrets
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import ValidationError

from contract.pieces import Pieces, cut, line_of
from contract.reader import Read
from service.engine import terms
from service.errors import InvalidRequest, StateMismatch, UnknownModel, rule_of
from service.http import record
from service.http.answers import unless_gone
from service.http.described import BUSY, Responses, fails
from service.http.waits import turns
from service.ink.upright import upright
from service.reader.described import ReadLine
from service.reader.inkml import from_inkml
from service.reader.lines import lines_of
from service.reader.model import ReaderEdge, ServedReader
from service.reader.online import OnlineReader, described
from service.reader.schemas import STROKES, ReadRequest
from service.reader.tracer import come_by, require_short
from service.state import Moment

router = APIRouter(tags=["reading"])

_ANSWERS: Responses = {
    200: {"model": ReadLine},
    **fails(InvalidRequest, UnknownModel, StateMismatch, *BUSY),
}
_Strokes = list[list[list[float]]]
# Told by the place of the ink, which the reader does not see.
_LINE_BREAK = Read("\n", 0, 1.0)


@router.post("/v1/read", responses=_ANSWERS)
async def read(body: ReadRequest, request: Request) -> Response:
    """Read ink, of one line or of several."""
    return await unless_gone(request, _answer(body, request))


async def _answer(body: ReadRequest, request: Request) -> Response:
    model = request.app.state.models.pick(body.model, ServedReader)
    terms.shorten(body.deadline_s)
    record.current().model = model.name
    line = OnlineReader(model, _begin(model, body))
    # Cutting long ink takes a while, and others are being served meanwhile.
    field, strokes = "strokes", body.strokes
    if body.inkml is not None:
        field, strokes = "inkml", await turns().beside(partial(_of_inkml, body.inkml))
    assert strokes is not None, "one of the two is there"
    on_a_line = body.line_height is not None or body.state is not None
    with come_by(field):
        if on_a_line:
            inks = [await _on_its_line(line, strokes)]
        else:
            inks = await turns().beside(partial(_by_lines, model, strokes))
    lines = [line, *(OnlineReader(model, _begin(model, body)) for _ in inks[1:])]
    try:
        characters = await _read_in_turn(lines, inks)
    finally:
        record.current().pay(sum(line.ran for line in lines))
    answer = {
        "id": f"read-{secrets.token_hex(12)}",
        "object": "reading",
        "created": int(time.time()),
        "model": model.name,
        "system_fingerprint": model.fingerprint,
        **line.told,
        "text": "".join(each["character"] for each in characters),
        "characters": characters,
        "usage": {"pieces": sum(map(len, inks))},
    }
    return JSONResponse(answer | ({"state": line.token()} if body.return_state else {}))


async def _read_in_turn(
    lines: Sequence[OnlineReader], inks: Sequence[Pieces]
) -> list[dict[str, Any]]:
    """The characters of all lines, as JSON. Once one is admitted, all are."""
    characters = list[dict[str, Any]]()
    for number, (line, pieces) in enumerate(zip(lines, inks, strict=True)):
        settled = await line.read(pieces, admitted=number > 0)
        ahead = await line.ahead(admitted=True)
        breaks = [_LINE_BREAK] if number else []
        characters += described([*breaks, *settled], settled=True)
        characters += described(ahead, settled=False)
    return characters


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


def _by_lines(model: ServedReader, strokes: _Strokes) -> list[Pieces]:
    """Ink of lines whose slope, size and baseline are their own."""
    lines = [line_of(ink) for ink in lines_of(upright(strokes))]
    level = [line for line in lines if line is not None]
    if not level:
        raise InvalidRequest(
            "the ink has no line in it: with a line_height it may be as small as a point"
        )
    require_short([stroke for line in level for stroke in line])
    return [cut(line, reordered=model.manifest.pieces.reordered) for line in level]
