"""The FastAPI application: models in its lifespan, routes of every kind, and what guards them."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
import numpy.ma  # noqa: F401  # which numpy would load for the first median that is asked for
from fastapi import FastAPI
from starlette.routing import WebSocketRoute
from starlette.types import ASGIApp

from service.catalogue import Models
from service.gauges import ModelGauges
from service.http import admin, document, messages, online, status
from service.http.aside import Aside
from service.http.callers import Callers
from service.http.door import Door
from service.http.errors import handle_errors
from service.http.guard import Friends, Guard, hosts_of, is_loopback
from service.http.keys import Keys
from service.http.limits import Bodies, BodyLimit
from service.http.page import add_page
from service.http.record import Recorder
from service.kinds import KINDS
from service.memory import keep_large_apart, settle
from service.metrics import Metrics
from service.settings import Settings
from service.watch import Watch

# An engine's thread that comes back from a run waits no longer for the interpreter than this, nor
# does the event loop for an engine; Python's own 5 ms are a quarter of a chunk.
_SWITCH_S = 0.0005


def create_app(settings: Settings) -> FastAPI:
    """The service, its models loaded. Raises `ArtifactError` where none can be served, or not one
    that is required, and `BadKeys` for a file of keys that cannot be used."""
    metrics = Metrics()
    # Creating a session holds the interpreter, so it is done before anything is served.
    models = Models(settings, metrics, KINDS)
    watch = Watch(models, settings.watch_s)
    keys = Keys(settings.keys) if settings.keys else None
    traces = None
    if settings.traces:
        from service.traces import Traces  # whose packages are an option

        traces = Traces()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        models.start()
        await anyio.sleep(0)  # loads what streams are made of, which the first would wait for
        with suppress(RuntimeError):  # where the system has no thread: whoever wants one is told
            await aside.do(int)
        to_do = [watch.run(), models.compare(), *([] if keys is None else [keys.follow()])]
        working = [asyncio.create_task(work) for work in to_do]
        yield
        for task in working:
            task.cancel()
        aside.end()
        models.stop()
        if traces is not None:
            await asyncio.to_thread(traces.close)

    app = document.DescribedApp(lifespan=lifespan)
    app.state.settings = settings
    app.state.metrics = metrics
    app.state.models = models
    metrics.registry.register(ModelGauges(models, app.version))
    app.state.watch = watch
    app.state.keys = keys
    aside = app.state.aside = Aside()
    app.state.bodies = Bodies()
    sessions = app.state.sessions = online.Sessions(settings.idle_timeout_s)
    models.on_leaving = sessions.leave
    _add_routes(app)
    handle_errors(app)
    also = None if traces is None else traces.add
    app.state.recorder = Recorder(_guarded(app, settings), metrics, also)
    app.middleware_stack = app.state.recorder
    return app


def create_alone(settings: Settings) -> FastAPI:
    """The service where nothing else runs in its process: what holds for all of that is set too.
    Raises as `create_app` does."""
    sys.setswitchinterval(_SWITCH_S)
    keep_large_apart()
    app = create_app(settings)
    app.state.models.on_settled = settle
    return app


def _add_routes(app: FastAPI) -> None:
    about = [status.router, admin.router, document.router, messages.router]
    # In this order a path is looked for.
    routers = [*(r for k in KINDS.values() for r in k.routers), online.router, *about]
    own = list(app.router.routes)  # the framework's: that of the API's document
    for router in routers:
        app.include_router(router)
    app.state.routes = [*own, *(route for router in routers for route in router.routes)]
    app.router.routes.append(WebSocketRoute("/{path:path}", online.elsewhere))
    add_page(app, app.state.settings.site)
    app.mount("/docs/ui", document.scripts())


def _guarded(app: FastAPI, settings: Settings) -> ASGIApp:
    """The routes, with what stands before them; the last is asked first."""
    app.add_middleware(Door, models=app.state.models, kinds=KINDS)
    app.add_middleware(
        BodyLimit,
        max_body_bytes=settings.max_body_bytes,
        timeout_s=settings.request_timeout_s,
        bodies=app.state.bodies,
    )
    keys, local = app.state.keys, is_loopback(settings.host)
    app.add_middleware(Callers, keys=keys, local=local, deadline_s=settings.deadline_s)
    # The rest is around the answer to unexpected errors too, which the framework puts outside of
    # all that is added to it.
    inside = app.build_middleware_stack()
    if settings.allowed_origins:
        inside = Friends(
            inside,
            allow_origins=settings.allowed_origins,
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=["*"],
        )
    hosts = hosts_of(settings.host, settings.allowed_hosts)
    return Guard(inside, hosts, frozenset(settings.allowed_origins))
