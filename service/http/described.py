"""What routes answer with, declared once: errors, events, and kinds of content besides JSON."""

from collections import defaultdict
from http import HTTPStatus
from typing import Any, Union

from pydantic import BaseModel, ConfigDict, TypeAdapter

from service.errors import (
    BodyTooLarge,
    CodedBody,
    DeadlineExceeded,
    EngineFault,
    Forbidden,
    HeadTooLarge,
    InvalidRequest,
    NoSuchRoute,
    NotLoaded,
    NotReady,
    Overloaded,
    RequestTimeout,
    ServiceError,
    StateMismatch,
    TooManyRequests,
    Unauthorized,
    UnknownModel,
    UnknownStyle,
)

Responses = dict[int | str, dict[str, Any]]
TEXT: dict[str, Any] = {"schema": {"type": "string"}}
BINARY: dict[str, Any] = {}
COMPONENTS = "#/components/schemas/{model}"


class Answer(BaseModel):
    """What a body is said to be: these fields and no other."""

    model_config = ConfigDict(extra="forbid")


class AnswerHead(Answer):
    """What the answer to any request that a model writes for begins with; `state_runtime` is that
    of the token it goes on from, if it is another and that was allowed."""

    id: str
    object: str
    created: int
    model: str
    system_fingerprint: str
    seed: int
    state_runtime: str | None = None


class ErrorFacts(Answer):
    """What went wrong; `param` is the field of the request that is to blame."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(Answer):
    """The body of every error: that of OpenAI's API."""

    error: ErrorFacts


class ErrorEvent(ErrorBody):
    """The error that ends a stream, or its choice `index`; `resume` is what to change in the
    request to go on."""

    index: int | None = None
    resume: dict[str, Any] | None = None


# What each error may say, with the field of the request that is to blame.
_SAID: dict[type[ServiceError], tuple[str, str | None]] = {
    ServiceError: ("internal error; the log has the details", None),
    InvalidRequest: (
        "temperature is 9.0: Input should be less than or equal to 2",
        "temperature",
    ),
    Unauthorized: ("this service wants an API key: Authorization: Bearer KEY", None),
    Forbidden: (
        "'https://elsewhere.example' is another origin; EVENKEEL_ALLOWED_ORIGINS names some",
        None,
    ),
    UnknownModel: (
        "model is 'gpt-2'; this service has: handwriting, shakespeare",
        "model",
    ),
    UnknownStyle: ("style is 'zoe'; this service has: ada, ben", "style"),
    NoSuchRoute: ("these models have no chat; POST /v1/completions continues a prompt", None),
    RequestTimeout: ("the request took over 20.0 s to arrive", None),
    StateMismatch: ("state is of another model: shakespeare-int8 (8c6e3f0a1b2d)", "state"),
    NotLoaded: ("letters cannot be served as it is now: letters/step.onnx is missing", None),
    BodyTooLarge: ("the request body is over 1048576 bytes", None),
    CodedBody: ("the request body is in content-encoding gzip; this service reads none", None),
    HeadTooLarge: ("URL, headers or trailers are over 32768 bytes", None),
    TooManyRequests: ("this key has used up its 1000000 bytes a minute", None),
    EngineFault: ("the run of the model failed: RuntimeError", None),
    Overloaded: ("the queue is full (256 requests may wait)", None),
    NotReady: ("the model has not been attested, or the service is stopping", None),
    DeadlineExceeded: ("it could not be finished within its deadline", None),
}


_EXAMPLES = "#/components/examples/"


def error_examples() -> dict[str, Any]:
    """A body of every error, by its code."""
    return {_name(kind): {"value": kind(*said).body()} for kind, said in _SAID.items()}


def _name(kind: type[ServiceError]) -> str:
    return kind.code or kind.type


def fails(*errors: type[ServiceError]) -> Responses:
    """The responses of a route that may end in these errors."""
    by_status: dict[int, list[type[ServiceError]]] = defaultdict(list)
    for error in errors:
        by_status[error.status].append(error)
    return {status: _failure(status, kinds) for status, kinds in by_status.items()}


def _failure(status: int, kinds: list[type[ServiceError]]) -> dict[str, Any]:
    codes = [kind.code for kind in kinds if kind.code]
    said = f": {' or '.join(codes)}" if codes else ""
    content = {
        "schema": {"$ref": COMPONENTS.format(model=ErrorBody.__name__)},
        "examples": {_name(kind): {"$ref": _EXAMPLES + _name(kind)} for kind in kinds},
    }
    too_large = status == BodyTooLarge.status  # which Python had other words for until 3.13
    failure = {
        "description": ("Content Too Large" if too_large else HTTPStatus(status).phrase) + said,
        "content": {"application/json": content},
    }
    if any(kind.retry_after_s for kind in kinds):
        failure["headers"] = RETRY_AFTER
    for name, value in (header for kind in kinds for header in kind.headers):
        if name != "Connection":  # which is of this hop, not of the answer
            always = {"required": True, "schema": {"const": value}, "example": value}
            failure["headers"] = {name: always}
    return failure


RETRY_AFTER: dict[str, Any] = {
    "Retry-After": {
        "description": "seconds",
        "required": True,
        "schema": {"type": "integer", "minimum": 1},
        "example": 1,
    }
}
OF_STREAMS: dict[str, Any] = {
    "X-Accel-Buffering": {
        "description": "of a stream: a proxy is to pass on what it has",
        "schema": {"const": "no"},
        "example": "no",
    }
}
# Of any route, and of one that has work for a model.
ANYWHERE = fails(
    Unauthorized,
    Forbidden,
    RequestTimeout,
    BodyTooLarge,
    CodedBody,
    TooManyRequests,
    HeadTooLarge,
    ServiceError,
    Overloaded,
)
BUSY = (Overloaded, NotReady, EngineFault, DeadlineExceeded)


def events(*kinds: type[Answer]) -> dict[str, Any]:
    """The content of a stream of server-sent events: each of one of these kinds or an error, and
    `[DONE]` as the last; numbered, unless that is not wanted."""
    said: TypeAdapter[Any] = TypeAdapter(Union[(*kinds, ErrorEvent)])  # type: ignore[arg-type]
    content = said.json_schema(mode="serialization", ref_template=COMPONENTS)
    data = {
        "type": "string",
        "description": "JSON; of the last one [DONE]",
        "anyOf": [
            {"const": "[DONE]"},
            {"contentMediaType": "application/json", "contentSchema": content},
        ],
    }
    counted = "counts from 0; left out where event_ids is false"
    number = {"type": "string", "pattern": "^[0-9]+$", "description": counted}
    properties = {"id": number, "data": data}
    return {"itemSchema": {"type": "object", "properties": properties, "required": ["data"]}}
