"""How requests are answered, whatever kind of model writes: as server-sent events, or whole unless
the client leaves before the end.
"""

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import suppress
from typing import Any

from fastapi import Request
from fastapi.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from service.errors import ServiceError
from service.http import record
from service.http.errors import unexpected

# nginx holds back what it proxies until it has some KB, unless it is told not to.
_UNBUFFERED = {"X-Accel-Buffering": "no"}


class EventStream(StreamingResponse):
    """Server-sent events, numbered: contents in JSON, an error in the place of what was to come,
    and `[DONE]`.

    `leave` is called when the response ends, even if it never began.
    """

    def __init__(self, contents: AsyncGenerator[str], leave: Callable[[], None]) -> None:
        super().__init__(_events(contents), headers=_UNBUFFERED, media_type="text/event-stream")
        self._leave = leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._leave()


async def _events(contents: AsyncGenerator[str]) -> AsyncGenerator[bytes]:
    numbers = itertools.count()

    def event(content: str) -> bytes:
        return f"id: {next(numbers)}\ndata: {content}\n\n".encode()

    try:
        async for content in contents:
            yield event(content)
    except Exception as error:  # the status is out: only an event can tell
        told = error if isinstance(error, ServiceError) else unexpected(error)
        record.current().fail(told)
        yield event(json.dumps(told.body()))
    finally:
        await contents.aclose()
    yield event("[DONE]")


async def unless_gone(
    request: Request,
    answer: Coroutine[Any, Any, Response],
    leave: Callable[[], None] = lambda: None,
) -> Response:
    """A whole answer, given up when its client closes the connection; `leave` is called either
    way."""
    working = asyncio.create_task(answer)
    watching = asyncio.create_task(_gone(request))
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        return Response(status_code=record.CLIENT_CLOSED_REQUEST)
    finally:
        leave()
        for task in (working, watching):
            task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await working


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
