"""`/v1/online`: a WebSocket that follows what a caller does, one step at a time, batch size 1."""

import json
from typing import Any

from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from service.errors import InvalidRequest, ServiceError
from service.kinds import KINDS
from service.models import Models
from service.online import Online

router = APIRouter()

_POLICY_VIOLATION = 1008


class _Addressed(BaseModel):
    """As much of the first message as says which model reads the rest."""

    model: str


@router.websocket("/v1/online")
async def online(socket: WebSocket) -> None:
    """Follow a caller until it leaves or breaks a rule."""
    await socket.accept()
    try:
        session, facts = await _open(socket.app.state.models, await _receive(socket))
        await socket.send_text(json.dumps(facts))
        while True:
            answer = await session.answer(await _receive(socket))
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


async def _open(models: Models, message: Any) -> tuple[Online, dict[str, Any]]:
    name = _Addressed.model_validate(message, strict=True).model
    model = models[name]
    kind = KINDS[model.artifact.manifest.kind]
    session = await kind.follow(model, kind.opening.model_validate(message))
    facts = {"model": name, "kind": kind.name, "seed": session.seed}
    return session, facts | {"system_fingerprint": model.fingerprint}


async def _refuse(socket: WebSocket, error: ServiceError) -> None:
    await socket.send_text(json.dumps(error.body()))
    await socket.close(_POLICY_VIOLATION)
