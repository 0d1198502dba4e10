"""One keep-alive HTTP connection that says when each part of an answer arrived.

It does no more than a load driver needs: the server has the other half of the processor.
"""

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import cast

import httptools

_DATA = b"data:"
_DONE = b"[DONE]"


@dataclass(slots=True)
class Answer:
    """Status and body; `arrivals` are (clock seconds, length of the body by then)."""

    status: int = 0
    body: bytearray = field(default_factory=bytearray)
    arrivals: list[tuple[float, int]] = field(default_factory=list)
    ended_s: float = 0.0

    def events(self) -> list[tuple[float, str]]:
        """Of server-sent events, when each was complete and its text; not the closing `[DONE]`.

        Raises `ValueError` if there are none, if they are not closed by `[DONE]`, or for an error.
        """
        found: list[tuple[float, str]] = []
        start, closed = 0, False
        arrivals = iter(self.arrivals)
        moment_s, there = next(arrivals, (0.0, 0))
        while (end := self.body.find(b"\n\n", start)) >= 0:
            while there < end + 2:
                moment_s, there = next(arrivals)
            data = bytes(self.body[start:end]).removeprefix(_DATA).strip()
            start = end + 2
            if data == _DONE:
                closed = True
            elif text := _text(json.loads(data)):
                found.append((moment_s, text))
        if not (closed and found):
            raise ValueError("the stream broke off or was empty")
        return found


class Connection(asyncio.Protocol):
    """Requests one after the other. Raises `OSError` if the server hangs up."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Answer] | None = None
        self._answer = Answer()
        self._parser = httptools.HttpResponseParser(self)
        self._now_s = 0.0

    @classmethod
    async def open(cls, port: int) -> "Connection":
        """Connect to a port of this machine."""
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(cls, "127.0.0.1", port)
        return connection

    @property
    def usable(self) -> bool:
        """Whether another request may be sent."""
        return self._transport is not None and not self._transport.is_closing()

    async def post(self, path: str, body: bytes) -> Answer:
        """Send a JSON body and wait for the whole answer."""
        if self._transport is None or not self.usable:
            raise ConnectionResetError("the server closed the connection")
        self._answer = Answer()
        self._parser = httptools.HttpResponseParser(self)
        self._waiter = asyncio.get_running_loop().create_future()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self._transport.write(head.encode() + body)
        return await self._waiter

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.close()

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # of a class of its own under uvloop

    def data_received(self, data: bytes) -> None:
        self._now_s = time.perf_counter()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(ConnectionResetError(f"not HTTP: {error}"))

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(ConnectionResetError(f"the server closed the connection: {error}"))

    # What httptools calls.

    def on_body(self, data: bytes) -> None:
        self._answer.body += data
        self._answer.arrivals.append((self._now_s, len(self._answer.body)))

    def on_message_complete(self) -> None:
        self._answer.status = self._parser.get_status_code()
        self._answer.ended_s = self._now_s
        if not self._parser.should_keep_alive():
            self.close()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(self._answer)

    def _fail(self, error: OSError) -> None:
        self.close()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)


def _text(event: dict[str, object]) -> str:
    """The text of an event of this service or a peer. Raises `ValueError` for an error event."""
    match event:
        case {"choices": [{"text": str(text)}]} | {"text": str(text)}:
            return text
        case {"choices": []}:
            return ""
    raise ValueError(f"the stream holds {json.dumps(event)[:200]}")
