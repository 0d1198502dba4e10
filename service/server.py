"""uvicorn's server, stopped as load balancers and callers need it.

At the first SIGTERM readiness turns red while requests are still accepted, for as long as a load
balancer takes to notice. Then nothing new is accepted and what runs may finish; what has not by
then is ended with an error. A second signal ends the process at once.
"""

import asyncio
import logging
import signal
import socket
import time
from types import FrameType

import uvicorn
from fastapi import FastAPI

from service.models import Models
from service.settings import Settings

log = logging.getLogger(__name__)

# After the drain, for answers that end with an error to go out.
_LAST_WORDS_S = 3


class Server(uvicorn.Server):
    """Serves an application made by `create_app`."""

    def __init__(self, app: FastAPI, settings: Settings) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                host=settings.host,
                port=settings.port,
                log_config=None,
                log_level=settings.log_level,
                access_log=settings.log_level == "debug",
                # Compressing 256 numbers takes 36 µs, a quarter of the step that made them.
                ws_per_message_deflate=False,
                ws_max_size=settings.max_body_bytes,
                timeout_graceful_shutdown=settings.drain_timeout_s + _LAST_WORDS_S,
            )
        )
        self._models: Models = app.state.models
        self._settings = settings
        self._told_s: float | None = None

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        # Sent when a terminal closes, and by whoever expects a reload: no reason to end.
        signal.signal(signal.SIGHUP, lambda *_: log.info("SIGHUP: nothing to do"))
        super().run(sockets)

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

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        ending = asyncio.create_task(self._end_jobs())
        try:
            await super().shutdown(sockets)
        finally:
            ending.cancel()
        if self.force_exit:  # uvicorn would leave the application as it stands
            await self.lifespan.shutdown()

    async def _end_jobs(self) -> None:
        await asyncio.sleep(self._settings.drain_timeout_s)
        await asyncio.to_thread(self._models.stop)
