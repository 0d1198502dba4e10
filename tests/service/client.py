"""Starlette's client of an application in this process, with fewer visits to the thread of it."""

import asyncio
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

from fastapi import FastAPI
from starlette.testclient import TestClient, httpx
from starlette.types import Message

_CALLER = ("testclient", 50000)


class Client(TestClient):
    """Its own way goes to the application's thread and back for each piece of an answer, and half a
    dozen times besides, which takes as long as most answers; one that is taken whole needs it once.
    An error of the application is an answer as well.
    """

    def __init__(self, app: FastAPI) -> None:
        super().__init__(app, raise_server_exceptions=False, client=_CALLER)
        self._by_pieces, self._transport = self._transport, _Whole(self)

    def send(self, request: httpx.Request, *, stream: bool = False, **options: Any) -> Any:
        """The answer, to be read by pieces if it is a `stream`."""
        whole = not stream and request.url.scheme == "http"
        request.extensions = {**request.extensions, "whole": whole}
        return super().send(request, stream=stream, **options)

    def answer(self, request: httpx.Request) -> httpx.Response:
        """The application's, whole if nobody wants it by pieces."""
        if not request.extensions["whole"]:
            return self._by_pieces.handle_request(request)
        with self._portal_factory() as portal:
            told: list[Message] = portal.call(self._ask, request, request.read())
        if not told:
            return httpx.Response(500, request=request)
        start, *pieces = told
        body = b"".join(piece.get("body", b"") for piece in pieces)
        return httpx.Response(
            start["status"],
            headers=start["headers"],
            content=b"" if request.method == "HEAD" else body,
            request=request,
        )

    async def _ask(self, request: httpx.Request, body: bytes) -> list[Message]:
        """All that the application sends."""
        url = request.url
        left, over, told = [body], asyncio.Event(), list[Message]()

        async def receive() -> Message:
            if left:
                return {"type": "http.request", "body": left.pop(), "more_body": False}
            await over.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            told.append(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                over.set()

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method,
            "scheme": url.scheme,
            "path": unquote(url.path),
            "raw_path": url.raw_path.partition(b"?")[0],
            "root_path": "",
            "query_string": url.query,
            "headers": [(name.lower(), value) for name, value in request.headers.raw],
            "client": _CALLER,
            "server": [url.host, url.port or 80],
            "state": self.app_state.copy(),
        }
        with suppress(Exception):  # which has been told as an answer
            await self.app(scope, receive, send)
        return told


class _Whole(httpx.BaseTransport):
    """Asks the client's application."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self._client.answer(request)

    def close(self) -> None:
        self._client._by_pieces.close()
