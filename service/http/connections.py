"""What a connection may send: a head of limited size in limited time.

uvicorn reads whatever is sent and waits for as long as it takes. Its protocols are the place to
bound that: nothing has been parsed, kept or run yet.
"""

import asyncio
import math
import socket
from functools import partial
from typing import Any

from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn._types import ASGI3Application, ASGISendEvent
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.exceptions import InvalidHandshake, SecurityError
from websockets.frames import CloseCode, Frame
from websockets.http11 import Request

from service.errors import HeadTooLarge, InvalidRequest, Overloaded, RequestTimeout, ServiceError
from service.http.door import Turns
from service.http.errors import answer_to
from service.http.gate import Gate, Watched
from service.http.guard import POLICY, PROBES
from service.http.record import REFUSED
from service.http.upgrades import RequestParser

# A refused sender's data is read and dropped so long: a reset would destroy the answer.
_LINGER_S = 1.0
_UNSENT_BYTES = 128 * 1024
# Of what has come, so much is read in one round of the event loop, be it all heads or chunks of a
# byte; the loop's own way is megabytes, for which everybody else would wait.
_UNREAD_BYTES = 64 * 1024
_MOST_WAITING = 100  # requests behind one that is being answered; each is a KB or more
# Frames of a WebSocket that end no message, pings and parts: at once, and in the long run. One of
# six bytes takes as long as hundreds of a body. A message of any size fits in parts of 1 KB.
_MOST_FRAMES, _FRAMES_PER_S = 2000, 500
_PIECE_BYTES = 4096  # of them, until it is seen how many they are
_NO_TEXT = "\N{REPLACEMENT CHARACTER}".encode()
ON_LOST = "on_lost"  # of a WebSocket's state: called when its connection is


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
        self._in_head = True
        self._head_bytes = 0  # since the last byte of a body, so of trailers too
        self._due_s = math.inf
        self._over = False  # refused, or a WebSocket by now
        self._probes_only = False
        self._answering: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        raw = transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _UNREAD_BYTES)
        # The system would keep megabytes for somebody who does not read before we hear of it.
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
            # Reading goes on after every answer, however many still wait.
            if len(self.pipeline) > _MOST_WAITING:
                self._refuse(InvalidRequest(f"over {_MOST_WAITING} requests wait behind another"))

    def handle_websocket_upgrade(self) -> None:
        if self._probes_only:
            self._refuse(_full())
            return
        if self._unanswered() is not None:  # whose answer would go into the socket
            self._refuse(InvalidRequest("a WebSocket is opened after the last answer has come"))
            return
        self._over = True
        self.gate.leave(self)
        super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:
        self._refuse(InvalidRequest(msg))

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # a trailer must not become a header
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self.parser.is_offer():
            return  # the head comes again, without it
        self._in_head, self._head_bytes = False, 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self.parser.is_offer():
            return
        self._in_head, self._head_bytes, self._due_s = True, 0, math.inf
        super().on_message_complete()

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
        super()._start_asgi_task(cycle, app)

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
        self.transport.write(_written(error))
        self.transport.write_eof()
        self._due_s = self.loop.time() + _LINGER_S


class WebSocketConnection(Watched, WebSocketsSansIOProtocol):
    """A WebSocket whose answers have to be read."""

    def __init__(self, *args: Any, gate: Gate, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.gate = gate
        self.conn.debug = False  # it would log every header, keys among them
        self._frames_left = Turns(_FRAMES_PER_S, _MOST_FRAMES, math.inf)
        self._flooded = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.gate.enter(self, self.client[0] if self.client else "")

    def data_received(self, data: bytes) -> None:
        for begin in range(0, len(data), _PIECE_BYTES):
            super().data_received(data[begin : begin + _PIECE_BYTES])
            if self._flooded:
                self._end_flood()
            if self.transport.is_closing():
                return
        # Of a head that the library cannot read there is no event, and uvicorn has no answer.
        if self.conn.handshake_exc is not None:
            self._refuse(_why_no_socket(self.conn.handshake_exc))

    def handle_cont(self, event: Frame) -> None:
        super().handle_cont(event)
        self._count_frame()

    def handle_ping(self) -> None:
        super().handle_ping()
        self._count_frame()

    def handle_pong(self, event: Frame) -> None:
        super().handle_pong(event)
        self._count_frame()

    def handle_connect(self, event: Request) -> None:
        try:
            self.conn.process_request(event)
        except InvalidHandshake as error:  # which the library would tell in its own way
            self.handshake_complete = self.close_sent = True
            self._refuse(InvalidRequest(f"this opens no WebSocket: {error}"))
        else:
            super().handle_connect(event)

    def shutdown(self) -> None:
        # A session closes its socket by itself, once it has said where it stands.
        if not self.handshake_complete or self.close_sent:
            super().shutdown()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        # A session that answers does not listen meanwhile.
        if (leave := getattr(self, "scope", {}).get("state", {}).get(ON_LOST)) is not None:
            leave()

    async def send(self, message: ASGISendEvent) -> None:
        await super().send(message)
        # After a refusal that was told whole uvicorn would log that there was no handshake.
        self.handshake_complete = self.handshake_complete or self.close_sent

    def send_receive_event_to_app(self) -> None:
        if self.curr_msg_data_type == "text":
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:  # uvicorn would log a traceback; this is no JSON either
                self.frames = [_NO_TEXT]
        super().send_receive_event_to_app()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.transport.pause_reading()  # or pings would be answered into memory

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.read_paused:
            self.transport.resume_reading()

    def _count_frame(self) -> None:
        self._flooded = self._flooded or self._frames_left.wait_s(self.loop.time()) > 0

    def _end_flood(self) -> None:
        if self.close_sent or not self.handshake_complete:
            self.transport.abort()
            return
        self.conn.fail(CloseCode.POLICY_VIOLATION, "too many frames that end no message")
        self.handle_parser_exception()

    def _refuse(self, error: ServiceError) -> None:
        self.gate.refused(error, self.client)
        self.transport.write(_written(error))
        self.transport.close()


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


async def _only_probes(
    gate: Gate, app: ASGIApp, scope: Scope, receive: Receive, send: Send
) -> None:
    if scope["path"] in PROBES:
        await app(scope, receive, send)
        return
    error = _full()
    gate.refused(error, scope["client"])
    await _last_answer(error)(scope, receive, send)


def _why_no_socket(problem: Exception) -> ServiceError:
    if isinstance(problem, SecurityError):  # by limits of the library's own
        return HeadTooLarge("a header is too long, or there are many")
    return InvalidRequest(f"this opens no WebSocket: {problem.__cause__ or problem}")


def _full() -> ServiceError:
    return Overloaded("too many connections")


def _last_answer(error: ServiceError) -> JSONResponse:
    answer = answer_to(error)
    answer.headers.update({"Connection": "close"} | POLICY)
    return answer


def _written(error: ServiceError) -> bytes:
    answer = _last_answer(error)
    head = [b"%s: %s" % header for header in answer.raw_headers]
    return STATUS_LINE[error.status] + b"\r\n".join([*head, b"", bytes(answer.body)])
