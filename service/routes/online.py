"""`/v1/online`: a WebSocket that follows what a caller writes, one step at a time, batch size 1."""

import json
import secrets
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import to_json

from service import hands
from service.errors import InvalidRequest, ServiceError
from service.handwriting import encode, row_of
from service.ink_schemas import Coordinate, Finite, Place, StrokesWithText
from service.models import Models, ServedModel
from service.online import OnlineInk, OnlineText

router = APIRouter()

_POLICY_VIOLATION = 1008
_MOST_STEPS = 4096  # of one message


class Opening(BaseModel):
    """The first message: the model, and for ink the page and the hand."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: str
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    text: Annotated[str, Field(max_length=60)] = ""
    bias: Annotated[Finite, Field(ge=0, le=5)] = 0.0
    style: str | StrokesWithText | None = None
    line_height: Annotated[Finite, Field(ge=16, le=400)] = 64.0
    origin: Place | None = None


class Sent(BaseModel):
    """Any message after it: bytes, a pen point, or how many steps to write."""

    model_config = ConfigDict(extra="forbid", strict=True)

    bytes: (
        Annotated[
            list[Annotated[int, Field(ge=0, le=255)]], Field(min_length=1, max_length=_MOST_STEPS)
        ]
        | None
    ) = None
    point: Annotated[list[Coordinate], Field(min_length=3, max_length=3)] | None = None
    write: Annotated[int, Field(ge=1, le=_MOST_STEPS)] | None = None


@router.websocket("/v1/online")
async def online(socket: WebSocket) -> None:
    """Follow a caller until it leaves or breaks a rule."""
    await socket.accept()
    try:
        opening = Opening.model_validate(await _receive(socket))
        session, facts = await _open(socket.app.state.models, opening)
        await socket.send_text(json.dumps(facts))
        while True:
            sent = Sent.model_validate(await _receive(socket))
            answer = await _answer(session, sent)
            # Writes 256 numbers in a sixth of the time of json.dumps.
            await socket.send_text(to_json(answer).decode())
    except WebSocketDisconnect:
        return
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the message"
        await _refuse(socket, InvalidRequest(f"{place}: {first['msg']}", place))
    except ServiceError as error:
        await _refuse(socket, error)


async def _receive(socket: WebSocket) -> Any:
    try:
        return json.loads(await socket.receive_text())
    except (ValueError, KeyError, RecursionError) as error:  # KeyError: a binary message
        raise InvalidRequest("a message must be JSON text") from error


async def _open(models: Models, opening: Opening) -> tuple[OnlineText | OnlineInk, dict[str, Any]]:
    model: ServedModel = models[opening.model]
    manifest = model.artifact.manifest
    seed = secrets.randbits(53) if opening.seed is None else opening.seed
    facts = {"model": opening.model, "kind": manifest.kind, "seed": seed}
    facts |= {"system_fingerprint": model.fingerprint}
    if manifest.kind == "language":
        return OnlineText(model, seed), facts
    assert manifest.ink is not None
    encode(opening.text, manifest)  # by its own places, before a hand's context stands before it
    moment = await hands.hand_in(model, opening.style, seed)
    row = row_of(opening.text, replace(moment, seed=seed), manifest, opening.bias)
    px_per_unit = opening.line_height / manifest.ink.units_per_line
    origin = None if opening.origin is None else (opening.origin[0], opening.origin[1])
    return OnlineInk(model, moment, row, px_per_unit, origin), facts


async def _answer(session: OnlineText | OnlineInk, sent: Sent) -> dict[str, Any]:
    match session, sent:
        case OnlineText(), Sent(bytes=list(given), point=None, write=None):
            return {"log_probabilities": await session.read(bytes(given)), "step": session.steps}
        case OnlineText(), Sent(bytes=None, point=None, write=int(count)):
            return {"bytes": list(await session.write(count)), "step": session.steps}
        case OnlineInk(), Sent(bytes=None, point=list(place), write=None):
            x, y, up = place
            return await session.read((x, y, float(up > 0))) | {"step": session.steps}
        case OnlineInk(), Sent(bytes=None, point=None, write=int(count)):
            points, ended = await session.write(count)
            return {"points": points, "ended": ended, "step": session.steps}
    kind = "bytes" if isinstance(session, OnlineText) else "point"
    raise InvalidRequest(f"a message to this model has either {kind} or write")


async def _refuse(socket: WebSocket, error: ServiceError) -> None:
    await socket.send_text(json.dumps(error.body()))
    await socket.close(_POLICY_VIOLATION)
