"""What a connection may send: a head of limited size in limited time.

uvicorn reads whatever is sent and waits for as long as it takes. Its protocols are the place to
bound that: nothing has been parsed, kept or run yet.
"""

import asyncio
import math
import socket
from contextlib import suppress
from email.utils import formatdate
from functools import partial
from typing import Any

from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn._types import ASGI3Application, ASGIReceiveEvent, ASGISendEvent
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.server import ServerState

from service.errors import HeadTooLarge, InvalidRequest, Overloaded, RequestTimeout, ServiceError
from service.http.errors import answer_to
from service.http.gate import Gate, Watched
from service.http.guard import POLICY, PROBES
from service.http.record import REFUSED
from service.http.targets import own_form
from service.http.upgrades import RequestParser, upgrade_of

# A refused sender's data is read and dropped so long: a reset would destroy the answer.
_LINGER_S = 1.0
_UNSENT_BYTES = 128 * 1024
# A body that an answer need not wait for is waited for if it is no larger: it is on its way.
_AWAITED_BYTES = 64 * 1024
# Of what has come, so much is read in one round of the event loop, be it all heads or chunks of a
# byte; the loop's own way is megabytes, for which everybody else would wait.
_UNREAD_BYTES = 64 * 1024
# Chunks of a body: so many of any size, then only as many as have so many bytes each. One of a byte
# takes as long to read as a thousand bytes.
_FREE_CHUNKS, _LEAST_CHUNK_BYTES = 1000, 16
_SPACE = b" \t"  # around values (RFC 9110 §5.5)
_OF_BODIES = (b"content-length", b"transfer-encoding")
_MOST_HEADERS = 100  # each is looked at by whatever looks for one
_MOST_FIELDS = 100  # of a query, which the framework takes apart for every route
_MOST_WAITING = 16  # requests behind one that is being answered; each is a KB or more


class HttpConnection(Watched, HttpToolsProtocol):
    """Refuses heads and trailers over the limit, and whoever takes too long to send them.

    A request is due from its first byte to its last, the first one from the connection's opening.
    How long a body takes is looked after by `BodyLimit` while the application waits for it.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        gate: Gate,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.parser: RequestParser = RequestParser(self)  # type: ignore[assignment]
        self.gate = gate
        self._in_head, self._head_bytes = True, 0  # since the last of a body, so of trailers too
        self._chunks, self._body_bytes = 0, 0  # of the request that arrives
        self._due_s = math.inf
        self._over = False  # refused, or a WebSocket by now
        self._probes_only = False
        self._ends = False  # with the body of the request that has been answered
        self._answering: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        raw = transport.get_extra_info("socket")
        with suppress(OSError):  # a system without either only buffers more
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _UNREAD_BYTES)
            # It would keep megabytes for somebody who does not read before we hear of it.
            if (name := getattr(socket, "TCP_NOTSENT_LOWAT", None)) is not None:
                raw.setsockopt(socket.IPPROTO_TCP, name, _UNSENT_BYTES)
        self._due_s = self.loop.time() + self.gate.timeout_s
        self._probes_only = not self.gate.enter(self, self.client[0] if self.client else "")
        if self._probes_only:
            self.app = partial(_only_probes, self.gate, self.app)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        # Of pipelined requests uvicorn tells the last one alone.
        self._give_up_answer()

    def data_received(self, data: bytes) -> None:
        if self._due_s == math.inf:
            self._due_s = self.loop.time() + self.gate.timeout_s
        while data and not self._over:
            room = self.gate.max_header_bytes - self._head_bytes
            piece, data = data[:room], data[room:]
            self._head_bytes += len(piece)
            super().data_received(piece)
            if self._head_bytes >= self.gate.max_header_bytes and not self._over:
                most = self.gate.max_header_bytes
                self._refuse(HeadTooLarge(f"URL, headers or trailers are over {most} bytes"))
            if self._chunks - _FREE_CHUNKS > self._body_bytes // _LEAST_CHUNK_BYTES:
                if self._unanswered() is None:  # it was answered before it had come
                    self.transport.abort()
                    return
                self._refuse(InvalidRequest("the body comes in chunks of a few bytes"))
            # Reading goes on after every answer, however many still wait.
            if len(self.pipeline) > _MOST_WAITING:
                self._refuse(InvalidRequest(f"over {_MOST_WAITING} requests wait behind another"))

    def handle_websocket_upgrade(self) -> None:
        if self._over:  # its head was refused
            return
        if self._probes_only:
            self._refuse(_full())
            return
        if self._unanswered() is not None:  # whose answer would go into the socket
            self._refuse(InvalidRequest("a WebSocket must wait for the answers asked for before"))
            return
        self._over = True
        self.gate.leave(self)
        super().handle_websocket_upgrade()
        if self.flow.write_paused:  # which is told once
            self.transport.get_protocol().pause_writing()

    def send_400_response(self, msg: str) -> None:
        self._refuse(InvalidRequest(msg))

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # a trailer must not become a header
            super().on_header(name, value.rstrip(_SPACE))  # before it there is none left

    def on_headers_complete(self) -> None:
        if self._over or self.parser.is_offer():
            return  # the head of an offer comes again, without it
        if len(self.headers) > _MOST_HEADERS:
            self._refuse(HeadTooLarge(f"over {_MOST_HEADERS} headers"))
            return
        if self.url.count(b"&") >= _MOST_FIELDS:
            self._refuse(HeadTooLarge(f"over {_MOST_FIELDS} fields in the query"))
            return
        old = self.parser.get_http_version() == "1.0"
        self.url = own_form(self.url, self.headers, old=old)
        self._in_head, self._head_bytes = False, 0
        self._chunks, self._body_bytes = 0, 0
        # HTTP/1.0 has one answer to a request, and would take `100 Continue` for it.
        self.expect_100_continue &= not old
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if self._over:
            return
        self._head_bytes = 0
        self._chunks += 1
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._over or self.parser.is_offer():
            return
        self._in_head, self._head_bytes, self._due_s = True, 0, math.inf
        super().on_message_complete()
        if self._ends:
            self._over = True
            if (cycle := self._unanswered()) is None:
                self.transport.close()
            else:
                cycle.keep_alive = False

    def look(self, now_s: float) -> None:
        super().look(now_s)
        if now_s <= self._due_s or self.transport.is_closing():
            return
        answering = self._unanswered() is not None
        if self._over or not (self._in_head or answering):
            self.transport.abort()
        elif answering:
            self._due_s = now_s + self.gate.timeout_s  # the wait is ours
        elif self._head_bytes:
            self._refuse(RequestTimeout(f"the request took over {self.gate.timeout_s} s to arrive"))
        else:
            self.transport.close()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._answering = cycle
        if cycle.scope["http_version"] == "1.0":
            app = partial(_without_chunks, cycle, app)
        if not cycle.keep_alive:
            app = partial(_heard_out, cycle, app)
        elif any(name in _OF_BODIES for name, _ in cycle.scope["headers"]):
            app = partial(self._told_with_body, cycle, app)
        if self.flow.write_paused:
            app = partial(_once_read, cycle, app)
        super()._start_asgi_task(cycle, app)

    async def _told_with_body(
        self,
        cycle: RequestResponseCycle,
        app: ASGI3Application,
        scope: Any,
        receive: Any,
        send: Any,
    ) -> None:
        """An answer before the end of its request's body says that the connection ends: it would be
        for the client, or a proxy that has it for others too, to send that before it asks again."""
        asked = False

        async def read() -> ASGIReceiveEvent:
            nonlocal asked
            asked = True
            event: ASGIReceiveEvent = await receive()
            return event

        async def told(message: ASGISendEvent) -> None:
            if message["type"] != "http.response.start" or not cycle.more_body:
                await send(message)
                return
            if not asked and await _comes(cycle, receive):
                await send(message)
                return
            headers = [*message.get("headers", ()), (b"connection", b"close")]
            await send({**message, "headers": headers})
            # uvicorn would close it at the end of the answer, and so reset who still sends.
            self._ends = cycle.keep_alive = True

        await app(scope, read, told)

    def _get_upgrade(self) -> bytes | None:
        return upgrade_of(self.headers)  # uvicorn hears the last line of each name

    def _unanswered(self) -> RequestResponseCycle | None:
        """The request whose answer is not complete, if there is one."""
        cycle = self._answering
        return None if cycle is None or cycle.response_complete else cycle

    def _give_up_answer(self) -> None:
        if (cycle := self._unanswered()) is not None:
            cycle.disconnected = True
            cycle.message_event.set()

    def _refuse(self, error: ServiceError) -> None:
        """Answer in the application's place, and hear no more."""
        self._over = True
        self.pipeline.clear()
        cycle = self._unanswered()
        if cycle is None or self._in_head or cycle.response_started:
            self.gate.refused(error, self.client)
        else:  # what is wrong is its own body
            cycle.scope["state"][REFUSED] = error
        if cycle is not None and cycle.response_started:
            self.transport.abort()
            return
        self._give_up_answer()
        self.transport.write(written(error))
        self.transport.write_eof()
        self._due_s = self.loop.time() + _LINGER_S


async def _once_read(
    cycle: RequestResponseCycle, app: ASGI3Application, scope: Any, receive: Any, send: Any
) -> None:
    """Answer when what was answered before has been read: both would lie here else."""
    await cycle.flow.drain()
    if not cycle.disconnected:
        await app(scope, receive, send)


async def _comes(cycle: RequestResponseCycle, receive: Any) -> bool:
    """Whether a body that nobody has asked for is about to be there, as where it is sent behind its
    head."""
    declared = dict(cycle.scope["headers"]).get(b"content-length")
    if cycle.waiting_for_100_continue or declared is None or int(declared) > _AWAITED_BYTES:
        return False
    await _hear(cycle, receive)
    return not cycle.more_body


async def _hear(cycle: RequestResponseCycle, receive: Any) -> None:
    """Take in the rest of a body, for a while."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_S):
            while cycle.more_body and (await receive())["type"] == "http.request":
                pass


async def _without_chunks(
    cycle: RequestResponseCycle, app: ASGI3Application, scope: Any, receive: Any, send: Any
) -> None:
    """HTTP/1.0 has no chunks: what has no length ends with its connection."""

    async def unframed(message: ASGISendEvent) -> None:
        if message["type"] == "http.response.start":
            cycle.chunked_encoding = False
        elif message["type"] == "http.response.body":
            cycle.expected_content_length = len(message.get("body", b""))
        await send(message)

    await app(scope, receive, unframed)


async def _heard_out(
    cycle: RequestResponseCycle, app: ASGI3Application, scope: Any, receive: Any, send: Any
) -> None:
    """Whoever asks for one answer has it before the body has come, as where that is too large, and
    then sends the rest: the connection ends when that is there."""

    async def last(message: ASGISendEvent) -> None:
        ends = message["type"] == "http.response.body" and not message.get("more_body")
        if ends and cycle.more_body:
            await send({**message, "more_body": True})
            await _hear(cycle, receive)
            message = {"type": "http.response.body", "body": b"", "more_body": False}
        await send(message)

    await app(scope, receive, last)


async def _only_probes(
    gate: Gate, app: ASGIApp, scope: Scope, receive: Receive, send: Send
) -> None:
    if scope["path"] in PROBES:
        await app(scope, receive, send)
        return
    error = _full()
    gate.refused(error, scope["client"])
    await _last_answer(error)(scope, receive, send)


def _full() -> ServiceError:
    return Overloaded("too many connections")


def _last_answer(error: ServiceError) -> JSONResponse:
    answer = answer_to(error)
    answer.headers.update({"Connection": "close"} | POLICY)
    return answer


def written(error: ServiceError) -> bytes:
    """An answer where there is no application to give it: the last of its connection."""
    answer = _last_answer(error)
    answer.headers["Date"] = formatdate(usegmt=True)
    head = [b"%s: %s" % header for header in answer.raw_headers]
    return STATUS_LINE[error.status] + b"\r\n".join([*head, b"", bytes(answer.body)])
