"""What a WebSocket may send, and what it gets: messages in frames that end, answers that are read.

Like connections.py, this bounds what uvicorn's protocol leaves open.
"""

import asyncio
import math
import time
from typing import Any

from uvicorn._types import ASGIReceiveEvent, ASGISendEvent
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidHandshake, InvalidHeader, SecurityError
from websockets.frames import CloseCode, Frame
from websockets.http11 import Request

from service.errors import HeadTooLarge, InvalidRequest, ServiceError, shortened
from service.http.connections import written
from service.http.gate import Gate, Watched
from service.http.waits import TokenBucket

# Frames of a WebSocket that end no message, pings and parts: at once, and in the long run. One of
# six bytes takes as long as hundreds of a body. A message of any size fits in parts of 1 KB.
_MOST_FRAMES, _FRAMES_PER_S = 2000, 500
_PIECE_BYTES = 1024  # read before a look whether a message has come, be they frames of six bytes
_TURN_S = 0.002
_VERSION = "Sec-WebSocket-Version"
_LONGEST = 200  # characters that are told of what opens no socket
ON_LOST = "on_lost"  # of a WebSocket's state: called when its connection is


class WebSocketConnection(Watched, WebSocketsSansIOProtocol):
    """A WebSocket whose answers have to be read."""

    def __init__(self, *args: Any, gate: Gate, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.gate = gate
        self.conn.debug = False  # it would log every header, keys among them
        self._frames_left = TokenBucket(_FRAMES_PER_S, _MOST_FRAMES, math.inf)
        self._flooded = False
        self._unread = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.gate.enter(self, self.client[0] if self.client else "")

    def data_received(self, data: bytes) -> None:
        self._unread += data
        self._read_on()

    async def receive(self) -> ASGIReceiveEvent:
        message: ASGIReceiveEvent = await self.queue.get()
        self._read_on()
        return message

    def _read_on(self) -> None:
        """As far as there is nothing to hear, and others have their turn. While something is, or is
        left to read, uvicorn takes nothing in."""
        until_s = time.monotonic() + _TURN_S  # that of the loop stands still meanwhile
        while self._unread and self._all_heard() and not self.transport.is_closing():
            if time.monotonic() > until_s:
                self.loop.call_soon(self._read_on)
                break
            piece, self._unread = self._unread[:_PIECE_BYTES], self._unread[_PIECE_BYTES:]
            super().data_received(piece)
            if self._flooded:
                self._fail(CloseCode.POLICY_VIOLATION, "too many frames that end no message")
        if self.transport.is_closing():
            self._unread = b""
        # Of a head that the library cannot read there is no event, and uvicorn has no answer.
        elif self.conn.handshake_exc is not None:
            self._refuse(_why_no_socket(self.conn.handshake_exc))
        elif self.read_paused and not self._unread and self._all_heard():
            self.read_paused = False
            self.transport.resume_reading()

    def _all_heard(self) -> bool:
        if self.handshake_initiated and not self.handshake_complete:
            return False  # no frame counts, and none is answered, before the socket is open
        # Once it is closed nobody hears anything but the end, which is in the queue.
        return self.queue.empty() or self.close_sent

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
            self._refuse(_no_socket(error))
        else:
            super().handle_connect(event)

    def shutdown(self) -> None:
        # A session closes its socket by itself, once it has said where it stands: one that is about
        # to begin as well.
        if not self.handshake_initiated or self.close_sent:
            super().shutdown()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        # A session that answers does not listen meanwhile.
        if (leave := getattr(self, "scope", {}).get("state", {}).get(ON_LOST)) is not None:
            leave()

    async def send(self, message: ASGISendEvent) -> None:
        await self.writable.wait()
        if self.close_sent:  # for what was read meanwhile; uvicorn would blame the application
            raise ClientDisconnected
        await super().send(message)
        # After a refusal that was told whole uvicorn would log that there was no handshake.
        self.handshake_complete = self.handshake_complete or self.close_sent
        if message["type"] == "websocket.accept":
            self._read_on()

    def send_receive_event_to_app(self) -> None:
        if self.close_sent:
            self._count_frame()  # nobody hears it
        elif self.curr_msg_data_type == "text":
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:  # uvicorn would log a traceback
                self._fail(CloseCode.INVALID_DATA, "text must be UTF-8")
                return
        super().send_receive_event_to_app()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.transport.pause_reading()  # or pings would be answered into memory

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.read_paused:
            self.transport.resume_reading()

    def _fail(self, code: CloseCode, why: str) -> None:
        self.conn.fail(code, why)
        self.handle_parser_exception()

    def _count_frame(self) -> None:
        self._flooded = self._frames_left.wait_s(self.loop.time()) > 0

    def _refuse(self, error: ServiceError) -> None:
        self.gate.refused(error, self.client)
        self.transport.write(written(error))
        self.transport.close()


def _why_no_socket(problem: Exception) -> ServiceError:
    if isinstance(problem, SecurityError):  # by limits of the library's own
        return HeadTooLarge("a header is too long, or there are many")
    return _no_socket(problem.__cause__ or problem)


def _no_socket(problem: BaseException) -> InvalidRequest:
    """In the library's words, which repeat a header of any length."""
    error = InvalidRequest(f"this opens no WebSocket: {shortened(str(problem), _LONGEST)}")
    if isinstance(problem, InvalidHeader) and problem.name == _VERSION:
        error.headers = ((_VERSION, "13"),)  # RFC 6455 §4.4
    return error
