"""One connection does not take the event loop from all others, nor memory without end: of what is
cheap to send and dear to read, only so much is taken."""

import asyncio
import socket
import time
from contextlib import suppress
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from uvicorn.config import Config
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from service.http import sockets
from service.http.connections import HttpConnection
from service.http.sockets import WebSocketConnection
from tests.service.http.wire import LATE_S, SOCKET, Wire
from tests.service.serving import listening, settings

_PROBE = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
_LAST = b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
_CHUNKED = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
_CHUNKED += b"Transfer-Encoding: chunked\r\n\r\n"
_CHUNK = b"1\r\n \r\n"
# As a client has them, with a mask of nothing.
_PING, _PONG = b"\x89\x80" + bytes(4), b"\x8a\x80" + bytes(4)
_QUESTION = b"\x81\x8f" + bytes(4) + b'{"state": true}'
_MESSAGE = b"\x81\x81" + bytes(4) + b"1"
_FIRST, _PART = b"\x01\x80" + bytes(4), b"\x00\x80" + bytes(4)


def _online(url: str) -> ClientConnection:
    return connect(url.replace("http", "ws") + "/v1/online")


def test_sixteen_requests_may_wait_behind_another(url: str) -> None:
    assert Wire(url).send(_PROBE * 16 + _LAST).rest().count(b"HTTP/1.1 200 ") == 17


def test_more_are_refused(url: str) -> None:
    """Each takes a KB, and uvicorn reads on after every answer."""
    answer = Wire(url).send(_PROBE * 1000).rest()
    assert b"over 16 requests wait behind another" in answer
    assert answer.count(b"HTTP/1.1 ") == 1


def test_of_what_is_wrong_behind_too_many_the_first_is_told(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer = Wire(url).send(_PROBE * 100 + b"no HTTP\r\n\r\n").rest()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert Wire(url).send(_LAST).status() == 200
    assert [line for line in caplog.records if line.levelname == "ERROR"] == []


def test_a_body_in_chunks_of_a_byte_is_refused(url: str) -> None:
    """However large the one before it was."""
    body = b'{"model": "letters", "max_tokens": 1}' + b" " * 64_000
    wire = Wire(url).send(_CHUNKED + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
    wire.until(b"finish_reason")
    answer = wire.send(_CHUNKED + _CHUNK * 3000).rest()
    assert b"HTTP/1.1 400 " in answer
    assert b"in chunks of a few bytes" in answer
    assert answer.count(b"HTTP/1.1 ") == 1


def test_what_comes_in_such_chunks_after_its_answer_is_not_read(url: str) -> None:
    wire = Wire(url).send(_CHUNKED.replace(b"/v1/completions", b"/nowhere"))
    wire.until(b"unknown_url")
    with suppress(OSError):
        wire.send(_CHUNK * 3000)
    assert wire.rest() == b""


def test_a_thousand_small_chunks_are_taken_and_any_number_of_others(url: str) -> None:
    body = b'{"model": "letters", "max_tokens": 1}'
    small = [body, *[b" "] * 900]
    for parts in (small, [*small, *[b" " * 32] * 20_000]):
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
        wire = Wire(url).send(_CHUNKED + chunks + b"0\r\n\r\n")
        wire.until(b"finish_reason")
        wire.send(_CHUNKED + chunks + b"0\r\n\r\n")  # as many of each request
        wire.until(b"finish_reason")
        wire.close()


def test_whose_body_is_refused_is_given_up_at_once() -> None:
    """Not when the connection ends: whoever floods may keep it for a while."""

    async def flood() -> None:
        loop, given_up = asyncio.get_running_loop(), asyncio.Event()

        async def reads(scope: Any, receive: Any, send: Any) -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            given_up.set()

        done = loop.create_future()
        gate: Any = SimpleNamespace(
            enter=lambda *_: True, leave=done.set_result, timeout_s=LATE_S, max_header_bytes=8192
        )
        protocol = partial(HttpConnection, Config(reads), ServerState(), {}, gate=gate)
        server = await loop.create_server(protocol, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(_CHUNKED + _CHUNK * 3000)
        await reader.readuntil(b"in chunks of a few bytes")
        await asyncio.wait_for(given_up.wait(), LATE_S)
        writer.close()
        server.close()
        await done

    asyncio.run(flood())


def test_trailers_leave_the_next_head_its_room(url: str) -> None:
    long = b"X-Long: " + b"a" * 20_000 + b"\r\n"  # two of them are over the limit
    wire = Wire(url).send(_CHUNKED + _CHUNK)
    assert Wire(url).send(_LAST).status() == 200  # by now the chunk has been read
    wire.send(b"0\r\n" + long + b"\r\n").until(b"}}")
    wire.send(_LAST[:-2] + long + b"\r\n")
    assert b"HTTP/1.1 200 " in wire.rest()


def test_how_a_body_is_framed_does_not_count_for_its_head(url: str) -> None:
    head = _CHUNKED.replace(b"/v1/completions", b"/nowhere")[:-2] + b"Connection: close\r\nX: "
    head += b"x" * (32 * 1024 - 1 - len(head) - 4) + b"\r\n\r\n"  # as long as one may be
    assert Wire(url).send(head + b"2\r\n{}\r\n0\r\n\r\n").status() == 404


@pytest.mark.parametrize(
    "flood",
    [_PING * 20_000, _PONG * 20_000, _FIRST + _PART * 20_000, (_PING + _PONG) * 10_000],
    ids=["pings", "pongs", "parts of a message", "both"],
)
def test_a_flood_of_frames_that_end_no_message_ends_the_session(url: str, flood: bytes) -> None:
    with _online(url) as online:
        with suppress(OSError):
            online.socket.sendall(flood)
        with pytest.raises(ConnectionClosed) as closed:
            online.recv(timeout=LATE_S)
    # Of what it has sent in vain, the system may tell before what was said.
    assert closed.value.rcvd is None or closed.value.rcvd.code == 1008


def test_two_thousand_such_frames_are_answered_at_once_and_few_beyond(url: str) -> None:
    began_s, answered, hundred = time.monotonic(), 0, 100 * b"\x8a\x00"
    wire = Wire(url).send(SOCKET)
    wire.until(b"\r\n\r\n")
    while answered < 20_000 and wire.send(_PING * 100).some(len(hundred)) == hundred:
        answered += 100
    wire.close()
    assert 2000 <= answered <= 2000 + 500 * (time.monotonic() - began_s) + 100  # the last ones


def test_of_many_messages_few_are_taken_apart_before_they_are_heard(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, waiting = WebSocketConnection.send_receive_event_to_app, list[int]()

    def noted(connection: WebSocketConnection) -> None:
        whole(connection)
        waiting.append(connection.queue.qsize())

    monkeypatch.setattr(WebSocketConnection, "send_receive_event_to_app", noted)
    with _online(url) as online:
        online.send('{"model": "letters"}')
        online.recv(timeout=LATE_S)
        online.close_timeout = 0.1  # all of them are answered before it is heard that we leave
        with suppress(OSError):
            online.socket.sendall(_QUESTION * 2000)
        for _ in range(200):
            assert "state" in str(online.recv(timeout=LATE_S))
    assert len(waiting) > 200
    assert max(waiting) < 100


def test_who_goes_on_after_the_end_is_cut_off(url: str) -> None:
    """Or all of it would be taken apart, for nobody, until the wait for their own end is over."""
    wire = Wire(url).send(SOCKET)
    wire.until(b"101")
    began_s = time.monotonic()
    with suppress(OSError):
        for _ in range(200):
            wire.send(_MESSAGE * 1000)
    wire.rest()
    assert time.monotonic() - began_s < LATE_S / 2


@pytest.mark.parametrize(("more", "status"), [(98, 200), (99, 431)])
def test_a_head_has_a_hundred_headers(url: str, more: int, status: int) -> None:
    head = _LAST.removesuffix(b"\r\n") + b"a:b\r\n" * more + b"\r\n"
    assert Wire(url).send(head).status() == status


@pytest.mark.parametrize(("fields", "status"), [(100, 200), (101, 431)])
def test_a_query_has_a_hundred_fields(url: str, fields: int, status: int) -> None:
    """The framework takes it apart for every route, 16,000 of them in 11 ms."""
    assert (
        Wire(url).send(_LAST.replace(b"/livez", b"/livez?" + b"&" * (fields - 1))).status()
        == status
    )


def test_a_head_that_was_refused_opens_no_socket(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    head = SOCKET.removesuffix(b"\r\n") + b"a:b\r\n" * 100 + b"\r\n"
    answer = Wire(url).send(head + _QUESTION).rest()
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert [line for line in caplog.records if line.levelname == "ERROR"] == []


def test_what_follows_a_head_that_was_refused_is_not_read(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    head = _PROBE.removesuffix(b"\r\n") + b"a:b\r\n" * 200 + b"Content-Length: 2\r\n\r\n{}"
    answer = Wire(url).send(head + _LAST).rest()
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert Wire(url).send(_LAST).status() == 200  # and has it begun to run, it has failed by now
    assert [line for line in caplog.records if line.levelname == "ERROR"] == []


def test_a_flood_before_a_socket_is_open_ends_it(url: str) -> None:
    wire = Wire(url)
    with suppress(OSError):
        wire.send(SOCKET + _PING * 200_000)
    assert len(wire.rest()) < 100_000  # or every one would have its pong


def test_a_session_takes_a_place(letters: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody has more than half of them, which is one here; who has none opens no socket either."""
    models = b"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    with listening(settings(letters, max_connections=2)) as (url, _), _online(url) as online:
        online.send('{"model": "letters"}')
        assert "letters" in online.recv()
        assert Wire(url).send(SOCKET).status() == 503
        assert Wire(url).send(models).status() == 503
    assert [line for line in caplog.records if line.levelname == "ERROR"] == []


def test_who_reads_its_answers_again_is_heard_again() -> None:
    told = list[str]()
    session = object.__new__(WebSocketConnection)
    session.writable = asyncio.Event()
    session.transport = SimpleNamespace(  # type: ignore[assignment]
        pause_reading=lambda: told.append("pause"), resume_reading=lambda: told.append("resume")
    )
    for paused in (False, True):  # as one that has messages to be heard
        session.read_paused = paused
        session.pause_writing()
        session.resume_writing()
    assert told == ["pause", "resume", "pause"]


class _TakenIn(WebSocketsSansIOProtocol):
    """Counts the bytes that uvicorn's own protocol has taken in."""

    taken = 0

    def data_received(self, data: bytes) -> None:
        self.taken += len(data)
        super().data_received(data)


class _Counted(WebSocketConnection, _TakenIn):
    """Counts what has arrived as well, and notes how much is left of it each time, and what has
    been taken in by each round of the loop."""

    arrived = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.left, self.rounds = list[int](), list[int]()
        self._note()

    def _note(self) -> None:
        self.rounds.append(self.taken)
        if not self.transport.is_closing():
            self.loop.call_soon(self._note)

    def data_received(self, data: bytes) -> None:
        self.arrived += len(data)
        super().data_received(data)
        self.left.append(self.arrived - self.taken)


def test_a_socket_that_sends_much_takes_turns_with_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine so slow that a turn is over within a KB: in a round of the loop little is taken
    in, and what is left is not added to before it has been."""
    message, messages = b"\x82\xfe" + (8192).to_bytes(2, "big") + bytes(4 + 8192), 200

    async def flood() -> _Counted:
        connections, heard = list[_Counted](), asyncio.Event()

        async def hear(scope: Any, receive: Any, send: Any) -> None:
            await receive()
            await send({"type": "websocket.accept"})
            for _ in range(messages):
                await receive()
            heard.set()
            await receive()

        def connect() -> _Counted:
            connections.append(_Counted(config, ServerState(), {}, gate=gate))
            return connections[-1]

        gate: Any = SimpleNamespace(enter=lambda *_: True, leave=lambda _: gone.set())
        config, gone = Config(hear, ws_per_message_deflate=False), asyncio.Event()
        server = await asyncio.get_running_loop().create_server(connect, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(SOCKET)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(message * messages)
        async with asyncio.timeout(LATE_S):
            await heard.wait()
        writer.close()
        server.close()
        await gone.wait()
        return connections[0]

    clock = count()
    slow = SimpleNamespace(monotonic=lambda: next(clock) * 0.0015)
    monkeypatch.setattr(sockets, "time", slow)
    flooded = asyncio.run(flood())
    assert max(after - before for before, after in pairwise(flooded.rounds)) <= 4096
    assert max(flooded.left) <= 2 * 256 * 1024
    assert flooded.taken == flooded.arrived


def test_a_message_may_come_in_a_thousand_parts(url: str) -> None:
    with _online(url) as online:
        online.send(["{", *[" " * 1000] * 1000, '"model": "letters"}'])
        assert '"model": "letters"' in str(online.recv(timeout=LATE_S))


def test_however_fast_somebody_sends_little_is_read_at_once() -> None:
    """The system makes more room for who sends fast, and all of that is read in one round."""

    async def read_all(scope: Any, receive: Any, send: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    async def rooms() -> list[int]:
        loop, made, found = asyncio.get_running_loop(), list[HttpConnection](), list[int]()
        done = loop.create_future()
        gate: Any = SimpleNamespace(
            enter=lambda *_: True, leave=done.set_result, timeout_s=LATE_S, max_header_bytes=8192
        )

        def connection() -> HttpConnection:
            made.append(HttpConnection(Config(read_all), ServerState(), {}, gate=gate))
            return made[-1]

        server = await loop.create_server(connection, "127.0.0.1", 0)
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(64):
            writer.write(b"40000\r\n" + bytes(0x40000) + b"\r\n")
            await writer.drain()
            raw = made[0].transport.get_extra_info("socket")
            found.append(raw.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF))
        if name := getattr(socket, "TCP_NOTSENT_LOWAT", None):  # nor are megabytes kept unsent
            assert raw.getsockopt(socket.IPPROTO_TCP, name) == 128 * 1024
        writer.close()
        server.close()
        await done
        await asyncio.sleep(0)  # for what reads to end
        return found

    assert max(asyncio.run(rooms())) <= 256 * 1024
