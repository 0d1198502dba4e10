"""The FastAPI application: models in its lifespan, the routes of every kind, and the page."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import FileResponse, Response
from fastapi.staticfiles import StaticFiles

from service.http import online, status
from service.http.described import ANYWHERE, DescribedApp
from service.http.errors import handle_errors
from service.http.guard import Guard, hosts_of
from service.http.limits import BodyLimit
from service.kinds import KINDS
from service.metrics import Metrics
from service.models import Models
from service.settings import Settings

_WEB = Path(__file__).with_name("web")


def create_app(settings: Settings) -> FastAPI:
    """The service, its models loaded. Raises `ArtifactError` for one that cannot be served."""
    metrics = Metrics()
    # Creating a session holds the interpreter, so it is done before anything is served.
    models = Models(settings, metrics, KINDS)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        models.start()
        yield
        models.stop()

    # The interactive pages of FastAPI load scripts from elsewhere; the schema itself stays.
    app = DescribedApp(
        title="Evenkeel", lifespan=lifespan, docs_url=None, redoc_url=None, responses=ANYWHERE
    )
    app.state.settings = settings
    app.state.metrics = metrics
    app.state.models = models
    routers = [status.router, online.router, *(r for k in KINDS.values() for r in k.routers)]
    for router in routers:
        app.include_router(router)
    app.state.routes = [route for router in routers for route in router.routes]
    app.mount("/static", _Fresh(directory=_WEB), name="static")
    app.add_api_route("/", _page, methods=["GET", "HEAD"], include_in_schema=False)
    handle_errors(app)
    app.add_middleware(BodyLimit, max_body_bytes=settings.max_body_bytes)
    if settings.allowed_origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=settings.allowed_origins, allow_headers=["*"]
        )
    hosts = hosts_of(settings.host, settings.allowed_hosts)
    app.add_middleware(Guard, hosts=hosts, origins=frozenset(settings.allowed_origins))
    return app


_ASK_AGAIN = {"Cache-Control": "no-cache"}  # an old script must not meet a new page


class _Fresh(StaticFiles):
    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers.update(_ASK_AGAIN)
        return response


async def _page() -> FileResponse:
    return FileResponse(_WEB / "index.html", headers=_ASK_AGAIN)
