"""How requests are answered, whatever kind of model writes: pieces, server-sent events, clients
that leave, and counting.
"""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import suppress
from typing import Any, Generic, TypeVar

from fastapi import Request
from fastapi.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from service.engine.engine import Engine
from service.engine.jobs import Generation, Piece
from service.errors import ServiceError
from service.metrics import Metrics

CLIENT_CLOSED_REQUEST = 499  # nobody reads it; nginx's number for the log
P = TypeVar("P", bound=Piece)


class Exchange(Generic[P]):
    """The jobs of a request, and their pieces on the way from the engine's thread to the loop."""

    def __init__(self) -> None:
        self.jobs: list[Generation[P]] = []
        self._loop = asyncio.get_running_loop()
        self._pieces: asyncio.Queue[tuple[int, P]] = asyncio.Queue()

    def sender(self) -> Callable[[P], None]:
        """What the next job to be added sends its pieces with."""
        number = len(self.jobs)

        def send(piece: P) -> None:
            self._loop.call_soon_threadsafe(self._pieces.put_nowait, (number, piece))

        return send

    def submit(self, engine: Engine) -> None:
        """Queue all jobs that have something to run. Raises what `Engine.submit` raises."""
        engine.submit([job for job in self.jobs if not job.finished_at_once])
        for job in self.jobs:
            if job.finished_at_once:
                job.finish(job.state if job.wants_state else None)

    async def pieces(self) -> AsyncGenerator[tuple[int, P]]:
        """Every piece with the number of its job, until all have ended or nobody wants more.

        Raises the error of one; the others are then given up.
        """
        left = len(self.jobs)
        try:
            while left:
                number, piece = await self._pieces.get()
                if piece.error is not None:
                    raise piece.error
                yield number, piece
                left -= piece.last
        finally:
            self.cancel()

    def cancel(self) -> None:
        """Give the slots back within a chunk; nothing happens to what has ended."""
        for job in self.jobs:
            job.cancelled = True


class EventStream(StreamingResponse):
    """Server-sent events: frames, an error in the place of what was to come, and `[DONE]`.

    `leave` is called when the response ends, even if it never began.
    """

    def __init__(self, frames: AsyncGenerator[bytes], leave: Callable[[], None]) -> None:
        super().__init__(_events(frames), media_type="text/event-stream")
        self._leave = leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._leave()


def event(content: dict[str, Any]) -> bytes:
    """One server-sent event."""
    return f"data: {json.dumps(content)}\n\n".encode()


async def _events(frames: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    try:
        async for frame in frames:
            yield frame
    except ServiceError as error:
        yield event(error.body())
    finally:
        await frames.aclose()
    yield b"data: [DONE]\n\n"


async def unless_gone(
    request: Request, answer: Coroutine[Any, Any, Response], leave: Callable[[], None]
) -> Response:
    """A whole answer, given up when its client closes the connection; `leave` is called either
    way."""
    working = asyncio.create_task(answer)
    watching = asyncio.create_task(_gone(request))
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        return Response(status_code=CLIENT_CLOSED_REQUEST)
    finally:
        leave()
        for task in (working, watching):
            task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await working


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def count(metrics: Metrics, model: str, job: Generation[Any], reason: str | None) -> None:
    """A job that has ended, in the metrics of its model."""
    now = time.perf_counter()
    metrics.finished.labels(model, reason).inc()
    metrics.tokens_in.labels(model).inc(job.asked)
    metrics.tokens_out.labels(model).inc(job.written)
    metrics.total_s.labels(model).observe(now - job.arrived_s)
    if job.first_run_s is not None:
        metrics.queue_s.labels(model).observe(job.first_run_s - job.arrived_s)
    if job.first_output_s is not None:
        metrics.first_byte_s.labels(model).observe(job.first_output_s - job.arrived_s)
        if job.written > 1:
            mean_s = (now - job.first_output_s) / (job.written - 1)
            metrics.inter_token_s.labels(model).observe(mean_s)
