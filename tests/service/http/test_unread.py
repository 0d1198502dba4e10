"""Answers that nobody reads take a part of the memory, however many ask for them."""

import asyncio
import json
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI

from service.http import gate as gates
from service.http.connections import _once_read
from service.http.gate import Gate
from service.settings import Settings
from tests.service.http.wire import LATE_S, SOCKET, Wire, wires
from tests.service.serving import eventually, listening, settings

_MIB = 2**20
_ONE, _ANOTHER, _OF_A_HOME = "10.0.0.8", "10.0.0.9", ("2001:db8::1", "2001:db8::2")
_BYTES = 400_000  # of a text that is asked about, four times as many of the answer


class _Connection:
    """One on which so much waits to be read."""

    def __init__(self, unread_bytes: int) -> None:
        self.unread_bytes, self.ended = unread_bytes, False
        self.transport = SimpleNamespace(abort=self._end)

    def look(self, now_s: float) -> None:
        """It is not due."""

    def _end(self) -> None:
        self.ended = True
        self.unread_bytes = 0


@pytest.mark.parametrize(
    ("unread", "ended"),
    [
        ([(_ONE, 64), (_ANOTHER, 64)], []),
        ([(_ONE, 64), (_ANOTHER, 65)], [1]),
        ([(_ONE, 50), (_ONE, 60), (_ANOTHER, 40)], [1]),
        ([(_OF_A_HOME[0], 40), (_OF_A_HOME[1], 50), (_ANOTHER, 60)], [1]),
        ([(_ONE, 90), (_ONE, 80), (_ANOTHER, 70)], [0, 1]),
    ],
    ids=str,
)
def test_of_answers_that_nobody_reads_128_mib_are_kept(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    unread: list[tuple[str, int]],
    ended: list[int],
) -> None:
    """Whoever has most of them is cut off first, and nobody for what others do not read."""
    monkeypatch.setattr(gates, "_LOOK_EVERY_S", 0.0)
    gate = Gate(Settings(max_connections=8), lambda error, client: None)
    connections: list[Any] = [_Connection(size * _MIB) for _, size in unread]
    for connection, (host, _) in zip(connections, unread, strict=True):
        assert gate.enter(connection, host)

    async def look() -> None:
        watching = asyncio.ensure_future(gate.watch())
        for _ in range(4):
            await asyncio.sleep(0)
        watching.cancel()

    with caplog.at_level(logging.WARNING):
        asyncio.run(look())
    assert [number for number, each in enumerate(connections) if each.ended] == ended
    assert len(caplog.messages) == bool(ended)


def test_at_the_end_of_a_service_only_those_are_cut_off_who_have_not_read() -> None:
    """Last words to others are on their way."""
    gate = Gate(Settings(max_connections=8), lambda error, client: None)
    connections: list[Any] = [_Connection(size) for size in (0, 1)]
    for connection in connections:
        assert gate.enter(connection, _ONE)
    gate.end()
    assert [connection.ended for connection in connections] == [False, True]


@pytest.mark.parametrize("gone", [False, True])
def test_nothing_is_done_for_who_has_gone_before_reading(gone: bool) -> None:
    asked = []

    async def app(*_: Any) -> None:
        asked.append("something")

    async def drain() -> None:
        """What was answered before has been read, or never will be."""

    cycle: Any = SimpleNamespace(flow=SimpleNamespace(drain=drain), disconnected=gone)
    asyncio.run(_once_read(cycle, app, {}, None, None))
    assert len(asked) == (not gone)


@pytest.fixture
def heard(letters: Path) -> Iterator[tuple[str, FastAPI]]:
    """A service that is listened to by sockets."""
    with listening(settings(letters)) as started:
        yield started


def _asks(path: str, **body: Any) -> bytes:
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


def test_who_does_not_read_is_cut_off_for_the_others(
    monkeypatch: pytest.MonkeyPatch, heard: tuple[str, FastAPI]
) -> None:
    monkeypatch.setattr(gates, "_MOST_UNREAD_BYTES", 9 * _BYTES)  # two answers, not three
    given_up = threading.Event()
    monkeypatch.setattr(gates.log, "warning", lambda *told: given_up.set())
    unread = [Wire(heard[0], receive_bytes=4096) for _ in range(3)]
    for wire in unread:
        wire.send(_asks("/tokenize", prompt="z" * _BYTES))
    assert given_up.wait(LATE_S)
    answers = [wire.some(4 * _BYTES) for wire in unread]
    for wire in unread:
        wire.close()
    assert sorted(len(answer) < 4 * _BYTES for answer in answers) == [False, False, True]


def test_who_asks_again_without_reading_is_answered_when_it_has_read(
    heard: tuple[str, FastAPI],
) -> None:
    """Else every answer would lie here beside those before it."""
    url, app = heard
    counted = app.state.metrics.registry.get_sample_value
    wire = Wire(url, receive_bytes=4096).send(_asks("/tokenize", prompt="z" * _BYTES))
    wire.until(b"HTTP/1.1 200")
    before = counted("evenkeel_steps_total", {"model": "letters"})
    wire.send(_asks("/v1/completions", prompt="a", max_tokens=3, seed=1))
    with wires(url, 1) as (other,):
        for _ in range(10):
            assert other.send(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n").until(b"ok")
    assert counted("evenkeel_steps_total", {"model": "letters"}) == before
    assert b'"completion_tokens":3' in wire.until(b'"total_tokens"')
    wire.close()


def test_a_socket_opens_when_what_was_answered_before_has_been_read(
    heard: tuple[str, FastAPI],
) -> None:
    wire = Wire(heard[0], receive_bytes=4096).send(_asks("/tokenize", prompt="z" * _BYTES))
    wire.until(b"HTTP/1.1 200")
    wire.send(SOCKET)
    assert wire.until(b"HTTP/1.1 101").count(b"HTTP/1.1 ") == 1
    wire.close()


def test_who_opens_a_socket_without_reading_what_was_answered_before_is_cut(
    letters: Path,
) -> None:
    """It had a socket for ever, whose answers lay beside those before them."""
    with listening(settings(letters, request_timeout_s=0.6)) as (url, app):
        wire = Wire(url, receive_bytes=4096).send(_asks("/tokenize", prompt="z" * _BYTES))
        wire.until(b"HTTP/1.1 200")
        wire.send(SOCKET)
        assert eventually(lambda: len(app.state.sessions) == 1)
        assert eventually(lambda: len(app.state.sessions) == 0)
        wire.close()
