"""The FastAPI application: models in its lifespan, routes, one handler for all errors."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import BodyTooLarge, InvalidRequest, ServiceError
from service.metrics import Metrics
from service.models import Models
from service.routes import completions, handwriting, online, status, styles
from service.settings import Settings

log = logging.getLogger(__name__)
_WEB = Path(__file__).with_name("web")


def create_app(settings: Settings) -> FastAPI:
    """The service, its models loaded. Raises `ArtifactError` for one that cannot be served."""
    metrics = Metrics()
    # Creating a session holds the interpreter, so it is done before anything is served.
    models = Models(settings, metrics)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        models.start()
        yield
        models.stop()

    # The interactive pages of FastAPI load scripts from elsewhere; the schema itself stays.
    app = FastAPI(title="Evenkeel", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.settings = settings
    app.state.metrics = metrics
    app.state.models = models
    app.include_router(status.router)
    app.include_router(completions.router)
    app.include_router(handwriting.router)
    app.include_router(styles.router)
    app.include_router(online.router)
    app.mount("/static", _Fresh(directory=_WEB), name="static")
    app.add_api_route("/", _page, include_in_schema=False)
    app.add_exception_handler(ServiceError, _service_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _unexpected_error)
    app.add_middleware(_BodyLimit, max_body_bytes=settings.max_body_bytes)
    return app


_ASK_AGAIN = {"Cache-Control": "no-cache"}  # an old script must not meet a new page


class _Fresh(StaticFiles):
    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers.update(_ASK_AGAIN)
        return response


async def _page() -> FileResponse:
    return FileResponse(_WEB / "index.html", headers=_ASK_AGAIN)


class _BodyLimit:
    """Refuses a body over the limit, by its declared length or while it arrives."""

    def __init__(self, app: ASGIApp, max_body_bytes: int) -> None:
        self._app = app
        self._limit = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > self._limit:
            error = BodyTooLarge(self._message())
            await JSONResponse(error.body(), error.status)(scope, receive, send)
            return
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._limit:
                raise HTTPException(BodyTooLarge.status, self._message())
            return message

        await self._app(scope, counted, send)

    def _message(self) -> str:
        return f"the request body is over {self._limit} bytes"


async def _service_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ServiceError)
    request.app.state.metrics.rejected.labels(error.status).inc()
    headers = {}
    if error.retry_after_s is not None:
        headers["Retry-After"] = str(error.retry_after_s)
    return JSONResponse(error.body(), error.status, headers)


async def _validation_error(request: Request, error: Exception) -> JSONResponse:
    """The first broken rule, with the name of its field."""
    assert isinstance(error, RequestValidationError)
    errors = error.errors()
    # Of the branches of a union the one whose types fit says most.
    first = next((e for e in errors if not e["type"].endswith("_type")), errors[0])
    # The body's own name and the branches of a union say nothing to a caller.
    field = next((str(part) for part in first["loc"][1:] if isinstance(part, str)), None)
    given = repr(first["input"])
    given = given if len(given) <= 80 else f"{given[:77]}..."
    match first["type"]:
        case "missing" if field is None:
            message = "the request body is empty; it must be a JSON object"
        case "json_invalid":
            field, message = None, f"the request body is not JSON: {first['ctx']['error']}"
        case "extra_forbidden":
            message = f"unknown field: {'.'.join(map(str, first['loc'][1:]))[:80]}"
        case "literal_error":
            message = f"{field} is {given}; this service only takes {first['ctx']['expected']}"
        case "missing":
            message = f"{field} is missing"
        case "value_error" if field is None:  # a rule about several fields
            message = str(first["ctx"]["error"])
        case _ if field is None:
            message = f"the request body is {given}; it must be a JSON object"
        case _:
            message = f"{field} is {given}: {first['msg']}"
    return await _service_error(request, InvalidRequest(message, field))


async def _http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    kind = BodyTooLarge if error.status_code == BodyTooLarge.status else InvalidRequest
    wrapped = kind(str(error.detail))
    wrapped.status = error.status_code
    return await _service_error(request, wrapped)


async def _unexpected_error(request: Request, error: Exception) -> JSONResponse:
    log.error("unexpected error at %s", request.url.path, exc_info=error)
    return JSONResponse(ServiceError("internal error; the log has the details").body(), 500)
