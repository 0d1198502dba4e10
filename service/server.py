"""uvicorn's server, stopped as load balancers and callers need it.

At the first SIGTERM readiness turns red while requests are still accepted, for as long as a load
balancer takes to notice. Then nothing new is accepted and what runs may finish; what has not by
then is ended with an error. A second signal ends the process at once.
"""

import asyncio
import logging
import socket
import time
from contextlib import suppress
from functools import partial
from types import FrameType

import uvicorn
from fastapi import FastAPI

from service.catalogue import Models
from service.http.aside import Aside
from service.http.connections import HttpConnection
from service.http.gate import Gate, allow_files
from service.http.limits import Bodies
from service.http.online import Sessions
from service.http.sockets import WebSocketConnection
from service.settings import Settings
from service.workers import Workers

log = logging.getLogger(__name__)

# Rounds of the event loop before the listening sockets are closed: to accept a connection that is
# there already, and to read from it, takes four.
_ROUNDS = 8
# After the drain, for answers that end with an error to go out, and to be read: who still waits for
# a reader then would be cancelled by uvicorn, and logged as an error.
_LAST_WORDS_S, _READ_WITHIN_S = 3, 2.5


class Server(uvicorn.Server):
    """Serves an application made by `create_app`."""

    def __init__(self, app: FastAPI, settings: Settings) -> None:
        for name in ("uvicorn.access", "uvicorn.error"):
            logging.getLogger(name).addFilter(_without_query)
        allow_files(settings.max_connections)
        self._gate = Gate(settings, app.state.recorder.refused)
        super().__init__(
            uvicorn.Config(
                app,
                host=settings.host,
                port=settings.port,
                log_config=None,
                log_level=settings.log_level,
                access_log=settings.log_level == "debug",
                http=partial(HttpConnection, gate=self._gate),  # type: ignore[arg-type]
                ws=partial(WebSocketConnection, gate=self._gate),  # type: ignore[arg-type]
                proxy_headers=bool(settings.trusted_proxies),
                forwarded_allow_ips=list(settings.trusted_proxies),
                # Compressing 256 numbers takes 36 µs, a quarter of the step that made them.
                ws_per_message_deflate=False,
                ws_max_size=settings.max_body_bytes,
                timeout_graceful_shutdown=settings.drain_timeout_s + _LAST_WORDS_S,
            )
        )
        self._models: Models = app.state.models
        self._sessions: Sessions = app.state.sessions
        self._aside: Aside = app.state.aside
        self._bodies: Bodies = app.state.bodies
        self._settings = settings
        self._told_s: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._told_s is not None:
            self.should_exit = self.force_exit = True
            return
        self._told_s = time.monotonic()
        self._models.stopping = True

    async def on_tick(self, counter: int) -> bool:
        delay_s = self._settings.shutdown_delay_s
        if self._told_s is not None and time.monotonic() - self._told_s >= delay_s:
            self.should_exit = True
        return await super().on_tick(counter)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_default_executor(Workers(thread_name_prefix="beside"))
        with suppress(RuntimeError):  # where the system has none: whoever wants one is told
            await asyncio.to_thread(int)
        await super().startup(sockets)
        self._watching = asyncio.create_task(self._gate.watch())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._sessions.end()
        self._bodies.end()
        ending = asyncio.create_task(self._end_jobs())
        for _ in range(_ROUNDS):  # what has been sent by now is heard, however busy it was here
            await asyncio.sleep(0)
        try:
            await super().shutdown(sockets)
        finally:
            ending.cancel()
            self._watching.cancel()
        if self.force_exit:  # uvicorn would leave the application, and who waits, as they stand
            await self.lifespan.shutdown()
            if tasks := self.server_state.tasks:
                await asyncio.wait(tasks, timeout=_LAST_WORDS_S)

    async def _end_jobs(self) -> None:
        await asyncio.sleep(self._settings.drain_timeout_s)
        self._aside.end()
        asyncio.get_running_loop().call_later(_READ_WITHIN_S, self._gate.end)
        for engine in self._models.tell_to_stop():
            await asyncio.to_thread(engine.stop)


def _without_query(line: logging.LogRecord) -> bool:
    """Somebody may have put a secret there."""
    if isinstance(line.args, tuple):
        line.args = tuple(a.partition("?")[0] if isinstance(a, str) else a for a in line.args)
    return True
