"""Refusals at the door: what the queue would not take is not looked at by the framework.

Under overload most requests are refused, and each that goes all the way takes interpreter time from
those that are served. Whether somebody is let in depends on who asks and for how much, so a small
body is looked at here, for the least that it may want. The engine judges that by its own rule:
nobody is refused who would have been let in. Whatever is not clear goes on to the route.
"""

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.catalogue import Models
from service.errors import Overloaded, ServiceError
from service.http import record
from service.http.errors import refuse
from service.http.waits import TokenBucket
from service.kind import ServiceKind

_MOST_BYTES = 16384  # of a body that is looked at, in a small part of a step's time
# Refusals at once: twice as many as three times what can be done brings, and a third of the
# throughput where they are as many (docs/LOG.md). None waits for longer than it asks to wait.
# Clients that ask again as soon as they are refused would take the interpreter from who is served.
_PER_S, _BURST = 1000.0, 100
_LONGEST_S = 1.0


class Door:
    """Stands inside of what knows the caller and limits the body; `kinds` have the routes."""

    def __init__(self, app: ASGIApp, models: Models, kinds: Mapping[str, ServiceKind]) -> None:
        self._app, self._models = app, models
        self._turns = TokenBucket(_PER_S, _BURST, _LONGEST_S)
        self._routes = {
            path: (kind.model, least)
            for kind in kinds.values()
            for path, least in kind.least.items()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        posted = scope["type"] == "http" and scope["method"] == "POST"
        if not posted or scope["path"] not in self._routes:
            await self._app(scope, receive, send)
            return
        message: Message | HTTPException | None
        try:
            message = await receive()
        except HTTPException as late:  # the framework makes an answer of it
            message = late
        error = self._refusal(scope["path"], message)

        async def in_turn(message: Message) -> None:
            # Whoever refuses: some requests are only understood by the route.
            if message["type"] == "http.response.start" and message["status"] == Overloaded.status:
                await asyncio.sleep(self._turns.wait_s(time.monotonic()))
            await send(message)

        if error is not None:
            await refuse(error, scope, receive, in_turn)
            return

        async def again() -> Message:
            nonlocal message
            first, message = message, None
            if isinstance(first, HTTPException):
                raise first
            return first or await receive()

        await self._app(scope, again, in_turn)

    def _refusal(self, path: str, message: Message | HTTPException) -> Overloaded | None:
        if isinstance(message, HTTPException) or message.get("more_body", False):
            return None
        body = _read(message.get("body", b""))
        kind, least = self._routes[path]
        wanted = None if body is None else least(body)
        if wanted is None:
            return None
        name, steps = wanted
        try:
            engine = self._models.pick(name, kind).engine
        except ServiceError:  # for the route to tell
            return None
        error = engine.refusal(steps)
        if error is not None:
            current = record.current()
            current.path, current.model = path, engine.name
        return error


def _read(body: bytes) -> dict[str, Any] | None:
    if len(body) > _MOST_BYTES:
        return None
    try:
        read = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None
