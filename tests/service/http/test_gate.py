"""Who gets a place, and whose is taken, as facts about the gate alone."""

import asyncio
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from uvicorn.config import Config
from uvicorn.server import ServerState

from service.app import create_app
from service.http import gate as gates
from service.http.connections import HttpConnection
from service.http.gate import _OTHER_FILES, _RESERVE, Gate, Watched, allow_files
from service.http.sockets import WebSocketConnection
from service.server import Server
from service.settings import Settings
from tests.service.serving import settings

_PROXY, _PROXY_OF_IPV6 = "10.0.0.9", "2001:db8::9"


def _gate() -> Gate:
    """Of four places, behind a proxy that has two addresses."""
    chosen = Settings(max_connections=4, trusted_proxies=(_PROXY, _PROXY_OF_IPV6))
    return Gate(chosen, lambda error, client: None)


class _Connection:
    """One that notes when it is ended, and when it is looked at."""

    def __init__(self, ended: list[Any]) -> None:
        self.transport = SimpleNamespace(abort=lambda: ended.append(self))
        self.looks = self.unread_bytes = 0

    def look(self, now_s: float) -> None:
        self.looks += 1


def test_a_proxy_may_have_all_places_and_nobody_else_more_than_half() -> None:
    neighbour = "2001:db8::8"  # of the home of a proxy
    for host, entered in ((_PROXY, 4), (_PROXY_OF_IPV6, 4), ("10.0.0.8", 2), (neighbour, 2)):
        gate = _gate()
        connections: list[Any] = [_Connection([]) for _ in range(4)]
        assert sum(gate.enter(connection, host) for connection in connections) == entered


def test_of_those_beyond_the_limit_the_one_that_came_first_makes_room() -> None:
    ended: list[Any] = []
    gate = _gate()
    connections: list[Any] = [_Connection(ended) for _ in range(4 + _RESERVE + 2)]
    for connection in connections:
        gate.enter(connection, _PROXY)
    assert ended == connections[4:6]


def test_the_addresses_of_one_home_share_its_half() -> None:
    gate = _gate()
    hosts = ["2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:0:1::1"]
    connections: list[Any] = [_Connection([]) for _ in hosts]
    entered = [gate.enter(c, host) for c, host in zip(connections, hosts, strict=True)]
    assert entered == [True, True, False, True]


def test_who_leaves_makes_room_for_one_more_of_its_home() -> None:
    gate = _gate()
    connections: list[Any] = [_Connection([]) for _ in range(4)]
    for connection in connections[:2]:
        assert gate.enter(connection, "10.0.0.8")
    gate.leave(connections[0])
    assert [gate.enter(connection, "10.0.0.8") for connection in connections[2:]] == [True, False]


def test_who_has_left_is_forgotten() -> None:
    gate = _gate()
    connections: list[Any] = [_Connection([]) for _ in range(3)]
    for connection in connections:
        gate.enter(connection, "10.0.0.8")
    for connection in connections:
        gate.leave(connection)
        gate.leave(connection)
    assert [len(kept) for kept in (gate._taken, gate._reserve, gate._by_network)] == [0, 0, 0]


def test_those_beyond_the_limit_are_looked_at_as_all_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "_LOOK_EVERY_S", 0.0)
    gate = _gate()
    connections: list[Any] = [_Connection([]) for _ in range(5)]
    for connection in connections:
        gate.enter(connection, _PROXY)

    async def look() -> None:
        watching = asyncio.ensure_future(gate.watch())
        for _ in range(3):
            await asyncio.sleep(0)
        watching.cancel()

    asyncio.run(look())
    assert all(connection.looks for connection in connections)


def _unread(
    ended: list[bool], unsent: Callable[[], int] = lambda: 100_000, *, closing: bool = False
) -> Watched:
    """A connection of which so many bytes wait to be read."""
    connection = Watched()
    connection.gate = _gate()
    connection.transport = SimpleNamespace(  # type: ignore[assignment]
        is_closing=lambda: closing or bool(ended),
        is_reading=lambda: True,
        get_write_buffer_size=unsent,
        abort=lambda: ended.append(True),
    )
    return connection


def test_who_reads_again_has_all_the_time_again() -> None:
    ended: list[bool] = []
    connection = _unread(ended)
    late_s = connection.gate.timeout_s + 1
    connection.pause_writing()
    connection.look(0)
    connection.resume_writing()
    connection.pause_writing()
    connection.look(late_s)
    assert not ended
    connection.look(2 * late_s)
    assert ended


@pytest.mark.parametrize(("read", "looks"), [(4096, 32), (4095, 9)])
def test_who_reads_less_than_32_kib_in_its_time_is_cut(read: int, looks: int) -> None:
    """However steadily that is; it is looked at eight times as often."""
    ended, looked = list[bool](), 0
    connection = _unread(ended, lambda: 200_000 - looked * read)
    connection.pause_writing()
    while not ended and looked < 32:
        connection.look(looked / 8 * (connection.gate.timeout_s + 1))
        looked += 1
    assert looked == looks


def test_who_does_not_read_the_end_of_a_last_answer_is_cut() -> None:
    """Of a few bytes, behind which nothing has to wait."""
    ended: list[bool] = []
    connection = _unread(ended, lambda: 1, closing=True)
    connection.look(0)
    connection.look(connection.gate.timeout_s)
    assert not ended
    connection.look(connection.gate.timeout_s + 1)
    assert ended


@pytest.mark.parametrize(
    ("left", "reading", "closing", "ends"),
    [(True, False, False, True), (False, False, False, False), (True, True, False, False),
     (True, False, True, False)],
    ids=["left", "still there", "read from", "has the rest coming"],
)  # fmt: skip
def test_whose_client_has_left_is_ended_where_nothing_else_would_tell(
    left: bool, reading: bool, closing: bool, ends: bool
) -> None:
    """Who has said all may still read the rest of the last answer."""
    ours, theirs = socket.socketpair()
    ended: list[bool] = []
    connection = _unread(ended, closing=closing)
    connection.transport.is_reading = lambda: reading  # type: ignore[method-assign]
    connection.transport.get_extra_info = lambda name: ours  # type: ignore[method-assign]
    with ours, theirs:
        if left:
            theirs.shutdown(socket.SHUT_WR)
        connection.look(0)
    assert bool(ended) is ends


class _Transport:
    """The transport of a connection whose client takes all that is written."""

    def __init__(self) -> None:
        self.written, self.ended, self.closed, self.aborted = b"", False, False, False

    def is_closing(self) -> bool:
        return self.closed or self.aborted

    def is_reading(self) -> bool:
        return True

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: bytes) -> None:
        self.written += data

    def write_eof(self) -> None:
        self.ended = True

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True


def _connection() -> tuple[HttpConnection, _Transport]:
    connection, wire = (
        HttpConnection(Config(create_app), ServerState(), {}, gate=_gate()),
        _Transport(),
    )
    connection.transport = wire  # type: ignore[assignment]
    return connection, wire


def test_who_waits_for_an_answer_has_its_time_again_and_no_more() -> None:
    """The head that it has begun meanwhile has to end; and what it is told then is not reset before
    it has come."""

    async def ask() -> None:
        connection, wire = _connection()
        answering: Any = SimpleNamespace(response_complete=False, response_started=True)
        connection._answering = answering
        connection.data_received(b"G")
        late_s, now_s = connection.gate.timeout_s + 1, connection.loop.time()
        connection.look(now_s + late_s)
        answering.response_complete = True
        connection.look(now_s + late_s + connection.gate.timeout_s - 0.5)
        assert not wire.ended
        connection.look(now_s + 3 * late_s)
        assert wire.ended
        connection.look(connection.loop.time() + 0.5)
        assert not wire.aborted
        connection.look(connection.loop.time() + 1.5)
        assert wire.aborted

    asyncio.run(ask())


def test_whose_body_is_waited_for_is_not_cut_for_its_head() -> None:
    async def ask() -> None:
        connection, wire = _connection()
        connection._answering = SimpleNamespace(response_complete=False)  # type: ignore[assignment]
        connection._in_head, connection._due_s = False, 0.0
        connection.look(1.0)
        assert not wire.aborted
        connection._answering = None
        connection.look(2.0 + connection.gate.timeout_s)
        assert wire.aborted

    asyncio.run(ask())


def test_who_still_has_to_read_a_last_answer_is_told_nothing_behind_it() -> None:
    async def ask() -> None:
        connection, wire = _connection()
        connection.data_received(b"G")
        connection.shutdown()
        assert wire.closed
        connection.look(connection.loop.time() + connection.gate.timeout_s + 1)
        assert (wire.written, wire.aborted) == (b"", False)

    asyncio.run(ask())


def test_a_head_in_two_pieces_has_the_room_of_one() -> None:
    async def ask() -> None:
        connection, wire = _connection()
        most = connection.gate.max_header_bytes
        connection.data_received(b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * (most // 2))
        assert not wire.written
        connection.data_received(b"x" * most + b"\r\n\r\n")
        assert wire.written.startswith(b"HTTP/1.1 431 ")

    asyncio.run(ask())


def test_a_head_that_is_wrong_and_too_long_is_refused_once() -> None:
    """Nothing may be written behind a last answer."""

    async def ask() -> None:
        connection, wire = _connection()
        connection.data_received(b"no such method\r\n" + b"x" * connection.gate.max_header_bytes)
        assert wire.written.startswith(b"HTTP/1.1 400 ")
        assert wire.written.count(b"HTTP/1.1 ") == 1

    asyncio.run(ask())


@pytest.mark.parametrize("kind", [HttpConnection, WebSocketConnection])
def test_a_connection_that_is_reset_at_once_has_a_place_and_leaves_it(kind: Any) -> None:
    """As by a balancer that only looks whether a port is open. Nobody knows its address then."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        ours, _ = listener.accept()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()

    async def enter() -> list[int]:
        wire: Any = _Transport()
        wire.get_extra_info = {"socket": ours}.get
        connection = kind(Config(create_app), ServerState(), {}, gate=(gate := _gate()))
        connection.connection_made(wire)
        taken = [len(gate._taken)]
        connection.connection_lost(None)
        return [*taken, len(gate._taken)]

    with ours:
        assert asyncio.run(enter()) == [1, 0]


class _Files:
    """The limits of open files of a process, which may raise its own up to the hard one."""

    RLIMIT_NOFILE, RLIM_INFINITY = 7, -1

    def __init__(self, soft: int, hard: int) -> None:
        self.limits = soft, hard

    def getrlimit(self, _: int) -> tuple[int, int]:
        return self.limits

    def setrlimit(self, _: int, limits: tuple[int, int]) -> None:
        assert limits[1] == self.limits[1], "a hard limit that is lowered cannot be raised again"
        self.limits = limits


_NEEDED = 1000 + _RESERVE + _OTHER_FILES


@pytest.mark.parametrize(
    ("soft", "hard", "raised"),
    [(256, 4096, _NEEDED), (256, 512, 512), (4096, 8192, 4096), (256, -1, _NEEDED),
     (-1, -1, -1), (_NEEDED, 8192, _NEEDED)],
)  # fmt: skip
def test_as_many_files_are_allowed_as_connections_need(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, raised: int
) -> None:
    files = _Files(soft, hard)
    monkeypatch.setattr(gates, "resource", files)
    allow_files(1000)
    assert files.limits == (raised, hard)


def test_where_files_are_few_the_places_are_what_they_leave(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for soft, places in ((_NEEDED + 1, 1000), (_NEEDED - 10, 990), (-1, 1000)):
        monkeypatch.setattr(gates, "resource", _Files(soft, soft))
        assert Gate(Settings(max_connections=1000), lambda error: None)._places == places


def test_a_place_that_is_the_only_one_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    soft = _RESERVE + _OTHER_FILES + 1
    monkeypatch.setattr(gates, "resource", _Files(soft, soft))
    gate = Gate(Settings(max_connections=1000), lambda error: None)
    connections: list[Any] = [_Connection([]) for _ in range(2)]
    assert [gate.enter(connection, "10.0.0.8") for connection in connections] == [True, False]


def test_places_that_files_leave_out_are_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for soft in (_NEEDED, _NEEDED - 1):
        monkeypatch.setattr(gates, "resource", _Files(soft, soft))
        Gate(Settings(max_connections=1000), lambda error: None)
    (told,) = caplog.messages
    assert told.startswith("connections at once: 999, not the 1000 of EVENKEEL_MAX_CONNECTIONS")


@pytest.mark.parametrize("soft", [16, _RESERVE + _OTHER_FILES])
def test_a_service_for_which_there_are_no_files_does_not_start(
    monkeypatch: pytest.MonkeyPatch, soft: int
) -> None:
    monkeypatch.setattr(gates, "resource", _Files(soft, soft))
    with pytest.raises(OSError, match=f"{soft} files may be open"):
        Gate(Settings(max_connections=1000), lambda error: None)


def test_a_server_raises_the_limit_before_it_counts_its_places(
    letters: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gates, "resource", _Files(256, 4096))
    chosen = settings(letters)
    assert Server(create_app(chosen), chosen)._gate._places == 1000
