"""What `/openapi.json` says: how routes fail, declared once, and what they answer besides JSON."""

from collections import defaultdict
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict

from service.errors import (
    BodyTooLarge,
    EngineFault,
    Forbidden,
    NotReady,
    Overloaded,
    ServiceError,
)

Responses = dict[int | str, dict[str, Any]]
TEXT: dict[str, Any] = {"schema": {"type": "string"}}
BINARY: dict[str, Any] = {}
EVENTS: dict[str, Any] = {
    "itemSchema": {
        "type": "object",
        "properties": {"data": {"type": "string", "description": "JSON; of the last one [DONE]"}},
        "required": ["data"],
    }
}
_COMPONENTS = "#/components/schemas/{model}"


class Answer(BaseModel):
    """What a body is said to be: these fields and no other."""

    model_config = ConfigDict(extra="forbid")


class AnswerHead(Answer):
    """What the answer to any request for a model's work begins with."""

    id: str
    object: str
    created: int
    model: str
    system_fingerprint: str
    seed: int


class ErrorFacts(Answer):
    """What went wrong; `param` is the field of the request that is to blame."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(Answer):
    """The body of every error: that of OpenAI's API."""

    error: ErrorFacts


def fails(*errors: type[ServiceError]) -> Responses:
    """The responses of a route that may end in these errors."""
    by_status: dict[int, list[type[ServiceError]]] = defaultdict(list)
    for error in errors:
        by_status[error.status].append(error)
    return {status: _failure(status, kinds) for status, kinds in by_status.items()}


def _failure(status: int, kinds: list[type[ServiceError]]) -> dict[str, Any]:
    codes = [kind.code for kind in kinds if kind.code]
    said = f": {' or '.join(codes)}" if codes else ""
    schema = {"$ref": _COMPONENTS.format(model=ErrorBody.__name__)}
    failure = {
        "description": HTTPStatus(status).phrase + said,
        "content": {"application/json": {"schema": schema}},
    }
    if any(kind.retry_after_s for kind in kinds):
        failure["headers"] = RETRY_AFTER
    return failure


RETRY_AFTER: dict[str, Any] = {
    "Retry-After": {
        "description": "seconds",
        "required": True,
        "schema": {"type": "integer", "minimum": 1},
    }
}
# Of any route, and of one that has work for a model.
ANYWHERE = fails(Forbidden, BodyTooLarge, ServiceError)
BUSY = (Overloaded, NotReady, EngineFault)


class DescribedApp(FastAPI):
    """An application whose document has the errors of this service in the place of FastAPI's."""

    def openapi(self) -> dict[str, Any]:
        document = super().openapi()
        schemas = document["components"]["schemas"]
        for theirs in ("HTTPValidationError", "ValidationError"):
            schemas.pop(theirs, None)
        ours = ErrorBody.model_json_schema(ref_template=_COMPONENTS)
        schemas |= ours.pop("$defs") | {ErrorBody.__name__: ours}
        for path in document["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)
        return document
