"""`/asyncapi.json`: the messages of `/v1/online`, by kind of model, as JSON Schema."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Literal

from fastapi import Response
from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema
from pydantic_core import to_json

from service.frames import Frame
from service.http.described import COMPONENTS, Answer, ErrorBody
from service.http.document import VERSION
from service.http.fields import RequestBody
from service.http.methods import Routes
from service.kind import ServiceKind
from service.kinds import KINDS

_CHANNEL = {"$ref": "#/channels/online"}
_FRAME, _NUMBERS = "Frame", "Numbers"  # of the names of binary messages
_BARE: dict[str, Any] = {
    "summary": "The answer to a binary message: the numbers of the answer as JSON, in the order "
    "they have there, as float32, little-endian.",
    "contentType": "application/octet-stream",
    "payload": {"type": "string", "format": "binary"},
}
_DESCRIPTION = """\
Follows what is written, one step at a time. The first message names a model and opens a session;
every message after it is answered before the next is read. After an error the socket is closed with
1008, after a message that is too large with 1009, after text that is not UTF-8 with 1007; with 1012
when the service stops or the model is replaced or not ready, with 1001 when no message comes for
long, with 1011 when no pong does."""


class Failed(ErrorBody):
    """What went wrong with a message; `state` is where the session stood before it, if one was
    open."""

    state: str | None = None


class Opened(Answer):
    """The answer to the first message; `seed` is of what the model writes by itself,
    `state_runtime` that of the token, if it is another and that was allowed, and `undecided` are
    bytes that the answer with the token held back; the session has read them."""

    model: str
    kind: str
    seed: int
    system_fingerprint: str
    state_runtime: str | None = None
    undecided: list[int] | None = None


class StateAsked(RequestBody):
    """A message to any model: where does the session stand?"""

    state: Literal[True]


class Standing(Answer):
    """Where the session stands, as a token to go on from."""

    state: str
    step: int


class Closing(Answer):
    """The service stops, the model is replaced, or no message came for long; `state` is where the
    session stands, if there is one."""

    closing: str
    state: str | None = None


def describe_messages(kinds: Mapping[str, ServiceKind]) -> dict[str, Any]:
    """An AsyncAPI document of what may be said to models of these kinds, and what they answer."""
    heard = [model for kind in kinds.values() for model in (kind.opening, kind.said)]
    heard.append(StateAsked)
    answers = [model for kind in kinds.values() for model in kind.answers]
    told: list[type[BaseModel]] = [Opened, *answers, Standing, Closing, Failed]
    listed: list[tuple[type[BaseModel], JsonSchemaMode]] = []
    listed += [(model, "validation") for model in heard]
    listed += [(model, "serialization") for model in told]
    # Of two models of one name either has a longer one among the schemas.
    payloads, schemas = models_json_schema(listed, ref_template=COMPONENTS)
    messages = {
        model.__name__: {"summary": model.__doc__, "payload": payloads[model, mode]}
        for model, mode in listed
    }
    frames = {kind.said.__name__ + _FRAME: kind.frame for kind in kinds.values() if kind.frame}
    messages |= {name: _frame(frame) for name, frame in frames.items()} | {_NUMBERS: _BARE}
    named = {name: {"$ref": f"#/components/messages/{name}"} for name in messages}
    hears = _of_channel([*(model.__name__ for model in heard), *frames])
    tells = _of_channel([*(model.__name__ for model in told), _NUMBERS])
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "Evenkeel online", "version": VERSION, "description": _DESCRIPTION},
        "defaultContentType": "application/json",
        "channels": {"online": {"address": "/v1/online", "messages": named}},
        "operations": {
            "hear": {"action": "receive", "channel": _CHANNEL, "messages": hears},
            "answer": {"action": "send", "channel": _CHANNEL, "messages": tells},
        },
        "components": {"messages": messages, "schemas": schemas["$defs"]},
    }


def _of_channel(names: Iterable[str]) -> list[dict[str, str]]:
    return [{"$ref": f"#/channels/online/messages/{name}"} for name in names]


def _frame(frame: Frame) -> dict[str, Any]:
    said = f"A binary message: `{frame.field}` alone, as {frame.dtype.name}, little-endian."
    return _BARE | {"summary": said}


router = Routes(include_in_schema=False)


@router.get("/asyncapi.json")
async def asyncapi() -> Response:
    """The document."""
    return Response(_of_all_kinds(), media_type="application/json")


@cache  # everybody waits while it is made
def _of_all_kinds() -> bytes:
    return to_json(describe_messages(KINDS))
