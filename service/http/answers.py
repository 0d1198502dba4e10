"""How requests are answered, whatever kind of model writes: as server-sent events, or whole unless
the client leaves before the end.
"""

import asyncio
import itertools
import json
import math
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import suppress
from typing import Any

from fastapi import Request
from fastapi.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from service.engine.engine import Engine
from service.errors import ServiceError
from service.http import record
from service.http.errors import unexpected

# nginx holds back what it proxies until it has some KB, unless it is told not to.
_UNBUFFERED = {"X-Accel-Buffering": "no"}
# Proxies give up an answer of which nothing comes, often after 30 or 60 s, and a long prompt takes
# longer to read: after this, or at most twice as long, a comment says that it is being worked on.
_QUIET_S = 10.0
COMMENT = b": still at work\n\n"


class EventStream(StreamingResponse):
    """Server-sent events: contents in JSON, an error in the place of what was to come, and
    `[DONE]`. They are `numbered`, and comments come while there is nothing to tell, unless the
    engine is stuck; clients that take all that comes for data want neither.

    `leave` is called when the response ends, even if it never began.
    """

    def __init__(
        self, contents: AsyncGenerator[str], leave: Callable[[], None], engine: Engine,
        *, numbered: bool = True,
    ) -> None:  # fmt: skip
        events = _events(contents, numbered=numbered)
        super().__init__(events, headers=_UNBUFFERED, media_type="text/event-stream")
        self._leave, self._engine, self._numbered = leave, engine, numbered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        told = _Told(send)
        reassuring = asyncio.create_task(told.reassure(self._engine)) if self._numbered else None
        try:
            await super().__call__(scope, receive, told.send)
        finally:
            self._leave()
            if reassuring is not None:
                reassuring.cancel()


class _Told:
    """What a caller is told of an answer, one message after the other; and when the last was."""

    def __init__(self, send: Send) -> None:
        self._send, self._loop = send, asyncio.get_running_loop()
        self._sending = asyncio.Lock()
        self._last_s = math.inf

    async def send(self, message: Message) -> None:
        async with self._sending:
            await self._send(message)
        self._last_s = self._loop.time()

    async def reassure(self, engine: Engine) -> None:
        """Tell a caller who has heard nothing for a while, and has taken all, that there will be
        more. A chunk takes milliseconds: of an engine that is at one for as long nobody knows, and
        the caller does better to try another replica."""
        comment = {"type": "http.response.body", "body": COMMENT, "more_body": True}
        while True:
            await asyncio.sleep(_QUIET_S)
            quiet = self._loop.time() - self._last_s >= _QUIET_S and not self._sending.locked()
            if quiet and engine.stalled_s < _QUIET_S:
                await self.send(comment)


async def _events(contents: AsyncGenerator[str], *, numbered: bool = True) -> AsyncGenerator[bytes]:
    numbers = itertools.count()

    def event(content: str) -> bytes:
        number = f"id: {next(numbers)}\n" if numbered else ""
        return f"{number}data: {content}\n\n".encode()

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
    way. Raises what is wrong with a body that nobody has asked for, if that is known first."""
    working = asyncio.create_task(answer)
    watching = asyncio.create_task(_gone(request))
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        watching.result()  # or what is wrong with the body is raised
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
