"""Every error as an OpenAI error body: one handler for each way an error can arise."""

import builtins
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

from service.errors import (
    BodyTooLarge,
    InvalidRequest,
    NoSuchRoute,
    NotReady,
    RequestTimeout,
    ServiceError,
    rule_of,
    shown,
)
from service.http import record

log = logging.getLogger(__name__)

# Characters that are told of a field and of what it is: either may be a megabyte long.
_LONGEST = 80


def handle_errors(app: FastAPI) -> None:
    """Let the application answer all of them."""
    app.add_exception_handler(ServiceError, _service_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _unexpected_error)


async def refuse(error: ServiceError, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with an error from outside of the application."""
    await answer_to(error)(scope, receive, send)


async def _service_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ServiceError)
    return answer_to(error)


def answer_to(error: ServiceError) -> JSONResponse:
    """The answer that tells of an error, which the record of the request then knows."""
    record.current().fail(error)
    headers = dict(error.headers)
    if error.retry_after_s is not None:
        headers["Retry-After"] = str(error.retry_after_s)
    return JSONResponse(error.body(), error.status, headers)


async def _validation_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    errors = [e | {"loc": e["loc"][1:]} for e in error.errors()]  # the first is the body's own name
    if not _is_json(request):
        told = InvalidRequest("the body is not JSON: set content-type: application/json")
    elif errors[0]["type"] == "json_invalid":
        what = errors[0]["ctx"]["error"].removesuffix(" at")  # as some of Python's end
        why = f"is not JSON: {what} at character {errors[0]['loc'][0]}"
        told = InvalidRequest(f"the request body {why}")
    elif errors[0]["type"] == "missing" and not errors[0]["loc"]:
        told = InvalidRequest("the request body is empty; it must be a JSON object")
    else:
        told = broken_rule(errors, "the request body")
    _let_go(error)
    return answer_to(told)


def _let_go(error: Exception) -> None:
    """Of where it was raised. The framework's function there has it as a variable, and the body as
    another: they would keep each other until a full collection, which a flood comes before."""
    error.__traceback__ = error.__cause__ = error.__context__ = None


def broken_rule(errors: Sequence[Mapping[str, Any]], whole: str) -> InvalidRequest:
    """The first broken rule among pydantic's errors, with the name of its field; `whole` is what
    the fields are of."""
    # Of the branches of a union the one whose types fit says most, or fit for longest.
    rivals = [e for e in errors if e["loc"][:1] == errors[0]["loc"][:1]]
    first = max(rivals, key=lambda e: (not e["type"].endswith("_type"), len(e["loc"])))
    # The branches of a union say nothing to a caller; what comes first is a field, even `bytes`,
    # and so is the last of an unknown one, whatever its name.
    inner = list(first["loc"][1:])
    unknown = [inner.pop()] if inner and first["type"] == "extra_forbidden" else []
    path = [*first["loc"][:1], *filter(_names_a_field, inner), *unknown]
    field = ".".join(path)[:_LONGEST] or None
    given = _told(first["input"])
    match first["type"]:
        case "extra_forbidden":
            message = f"unknown field: {field}"
        case "string_too_long":
            length, most = len(first["input"]), first["ctx"]["max_length"]
            message = f"{field} has {length:,} characters; at most {most:,} are taken"
        case "literal_error":
            message = f"{field} is {given}; this service only takes {first['ctx']['expected']}"
        case "missing":
            message = f"{field} is missing"
        case "value_error":  # without a field, it is a rule about several
            about = f"{field} is {given}: " if field else ""
            message = f"{about}{rule_of(first)}"
        case _ if field is None:
            message = f"{whole} is {given}; it must be a JSON object"
        case _:
            message = f"{field} is {given}: {first['msg']}"
    if len(rivals) > 1 and len(path) == 1 and any(e["type"] in _OBJECTS for e in rivals):
        message += ", or an object"  # the branch that would have been one is not told by its name
    return InvalidRequest(message, path[0][:_LONGEST] if field else _first_named(message, first))


def _told(value: object) -> str:
    """The beginning of a value as Python writes it: all of it may be a megabyte."""
    told = ""
    for part in _parts(value):
        told += part
        if len(told) > _LONGEST:
            return f"{told[: _LONGEST - 3]}..."
    return told


def _parts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield repr(value if len(value) <= _LONGEST else value[: _LONGEST + 1])
        case list():
            for number, inner in enumerate(value):
                yield ", " if number else "["
                yield from _parts(inner)
            yield "]" if value else "[]"
        case dict():
            for number, (key, inner) in enumerate(value.items()):
                yield ", " if number else "{"
                yield from _parts(key)
                yield ": "
                yield from _parts(inner)
            yield "}" if value else "{}"
        case _:
            yield repr(value)


# What a branch that wants an object says of what is none: by itself, and in a request's body.
_OBJECTS = ("model_type", "model_attributes_type")


def _first_named(message: str, problem: Mapping[str, Any]) -> str | None:
    """Of a rule about several fields the one it begins with, if the caller has given it."""
    word, given = message.partition(" ")[0], problem["input"]
    return word if isinstance(given, Mapping) and word in given else None


def _names_a_field(part: int | str) -> bool:
    """Or else a place in a list, or a branch of a union, which has the name of a type: `str`,
    `list[int]`, `PageSize`."""
    if not (isinstance(part, str) and part.isidentifier() and part.islower()):
        return False
    return not isinstance(getattr(builtins, part, None), type)


def _is_json(request: Request) -> bool:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


async def _http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    kinds = {kind.status: kind for kind in (NoSuchRoute, BodyTooLarge, RequestTimeout, NotReady)}
    told = str(error.detail)
    allowed = ""
    if error.status_code == HTTPStatus.NOT_FOUND:
        told = f"there is nothing at {shown(request.url.path)}; /docs lists what there is"
    elif error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = ", ".join(_allowed(request, error))
        told = f"method is {request.method}; {shown(request.url.path)} takes {allowed}"
    wrapped = kinds.get(error.status_code, InvalidRequest)(told)
    if why := _why_unreadable(error.__cause__):
        wrapped = InvalidRequest(f"the request body {why}")
    wrapped.status = error.status_code
    answer = answer_to(wrapped)
    if allowed:
        answer.headers["Allow"] = allowed
    _let_go(error)
    return answer


def _why_unreadable(cause: BaseException | None) -> str | None:
    """What the framework met while it made JSON of a body, and does not tell."""
    match cause:
        case UnicodeDecodeError():
            return f"is not JSON in UTF-8: {cause.reason} at byte {cause.start}"
        case RecursionError():
            return "is nested too deeply"
        case ValueError():
            return f"has a whole number of over {sys.get_int_max_str_digits()} digits"
    return None


def _allowed(request: Request, error: HTTPException) -> list[str]:
    """The methods of every route of this path; the error knows those of the first."""
    methods = set((error.headers or {}).get("Allow", "GET, HEAD").split(", "))
    for route in request.app.state.routes:
        match, _ = route.matches(request.scope)
        if match is not Match.NONE:
            methods |= getattr(route, "methods", None) or set()
    return sorted(methods)


async def _unexpected_error(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse(unexpected(error).body(), 500)


def unexpected(error: Exception) -> ServiceError:
    """What to tell of an error that nobody thought of; the log has the rest."""
    log.error("unexpected error in %s", record.current().id, exc_info=error)
    return ServiceError("internal error; the log has the details")
