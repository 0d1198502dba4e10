"""A session is recorded with the code that it was closed with, whatever was being answered then."""

import asyncio
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.frames import Close, Frame, Opcode
from websockets.http11 import Request

from service.http import record
from service.http.sockets import WebSocketConnection
from tests.service.http.wire import SOCKET, Wire
from tests.service.serving import eventually, listening, settings

_PINGS = Frame(Opcode.PING, b"").serialize(mask=True) * 200  # of more than is read at once
_BROKEN = Frame(Opcode.PING, b"").serialize(mask=False)  # as clients have none


def _said(**message: object) -> bytes:
    return Frame(Opcode.TEXT, json.dumps(message).encode()).serialize(mask=True)


def _close(code: int) -> bytes:
    return Frame(Opcode.CLOSE, Close(code, "enough").serialize()).serialize(mask=True)


@pytest.fixture(scope="module")
def url(letters: Path) -> Iterator[str]:
    with listening(settings(letters)) as (url, _):
        yield url


@pytest.mark.parametrize(("code", "told"), [(1000, 1000), (1001, 1001), (4321, 3000)])
@pytest.mark.parametrize(
    "last",
    [b"", _said(model="letters"), _said(model="letters") + _said(state=True)],
    ids=["nothing", "an opening", "a message"],
)
def test_who_closes_as_it_is_answered_has_closed_it(
    url: str, caplog: pytest.LogCaptureFixture, last: bytes, code: int, told: int
) -> None:
    wire = Wire(url).send(SOCKET)
    wire.until(b"\r\n\r\n")
    with caplog.at_level(logging.INFO, logger=record.log.name):
        wire.send(last + _close(code)).rest()  # in one piece, so that they are read together
        assert eventually(lambda: len(_lines(caplog)) == 1)
    line = json.loads(_lines(caplog)[0])
    assert (line["path"], line["status"], line["error"]) == ("/v1/online", told, None)


def test_a_message_that_is_refused_as_its_client_closes_is_recorded_as_both(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    wire = Wire(url).send(SOCKET)
    wire.until(b"\r\n\r\n")
    with caplog.at_level(logging.INFO, logger=record.log.name):
        wire.send(_said(model="letters", surprise=1) + _close(1000)).rest()
        assert eventually(lambda: len(_lines(caplog)) == 1)
    line = json.loads(_lines(caplog)[0])
    assert (line["status"], line["error"]) == (1000, "invalid_request_error")


@pytest.mark.parametrize(("named", "told"), [("letters", "letters"), ("any words", "")])
def test_a_session_is_of_a_model_that_there_is(
    url: str, caplog: pytest.LogCaptureFixture, named: str, told: str
) -> None:
    wire = Wire(url).send(SOCKET)
    wire.until(b"\r\n\r\n")
    with caplog.at_level(logging.INFO, logger=record.log.name):
        wire.send(_said(model=named) + _close(1000)).rest()
        assert eventually(lambda: len(_lines(caplog)) == 1)
    assert json.loads(_lines(caplog)[0])["model"] == told


@pytest.mark.parametrize("last", [{}, {"state": True}, {"surprise": 1}], ids=str)
def test_what_breaks_the_protocol_behind_a_message_ends_its_session_in_words(
    url: str, caplog: pytest.LogCaptureFixture, last: dict[str, Any]
) -> None:
    """It is read as soon as the message is heard, and the answer would go into a closed socket."""
    wire = Wire(url).send(SOCKET)
    wire.until(b"\r\n\r\n")
    said = _said(model="letters") + (_said(**last) if last else b"")
    with caplog.at_level(logging.INFO, logger=record.log.name):
        wire.send(said + _PINGS + _BROKEN).rest()
        assert eventually(lambda: len(_lines(caplog)) == 1)
    assert json.loads(_lines(caplog)[0])["status"] == 1002
    assert _errors(caplog) == []


@pytest.mark.parametrize(
    ("early", "code"), [(_BROKEN, 1002), (_close(1000), 1000)], ids=["broken", "closed"]
)
def test_nothing_is_read_before_the_socket_is_open(
    url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch,
    early: bytes, code: int,
) -> None:  # fmt: skip
    """The library would not know how to close it, and the connection was never ended."""
    opens = WebSocketConnection.handle_connect

    def at_once(self: WebSocketConnection, event: Request) -> None:
        self.loop.call_soon(self.data_received, early)
        opens(self, event)

    monkeypatch.setattr(WebSocketConnection, "handle_connect", at_once)
    with caplog.at_level(logging.INFO, logger=record.log.name):
        answer = Wire(url).send(SOCKET).rest()
        assert eventually(lambda: len(_lines(caplog)) == 1)
    assert answer.startswith(b"HTTP/1.1 101 ")
    assert json.loads(_lines(caplog)[0])["status"] == code
    assert _errors(caplog) == []


def test_who_answers_no_ping_while_it_is_answered_is_lost(
    url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = WebSocketConnection.send

    async def too_late(self: WebSocketConnection, message: Any) -> None:
        if message["type"] == "websocket.send":
            self.keepalive_timeout()
        await send(self, message)

    monkeypatch.setattr(WebSocketConnection, "send", too_late)
    wire = Wire(url).send(SOCKET)
    wire.until(b"\r\n\r\n")
    with caplog.at_level(logging.INFO, logger=record.log.name):
        wire.send(_said(model="letters")).rest()
        assert eventually(lambda: len(_lines(caplog)) == 1)
    assert json.loads(_lines(caplog)[0])["status"] == 1006
    assert _errors(caplog) == []


def _errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line.getMessage() for line in caplog.records if line.levelno >= logging.ERROR]


def _lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line.message for line in caplog.records if line.name == record.log.name]


@pytest.mark.parametrize(
    ("said", "status", "complete"),
    [
        ({"code": 1005, "reason": ""}, 1005, True),  # closed without a code, as a page may
        ({"code": 1005}, 1006, False),
        ({"code": 1006}, 1006, False),
    ],
)
def test_a_socket_that_is_closed_without_a_code_is_not_lost(
    said: dict[str, Any], status: int, complete: bool
) -> None:
    async def receive() -> Any:
        return {"type": "websocket.disconnect"} | said

    session = record.Record("it")
    asyncio.run(record._watched(receive, session)())
    assert (session.status, session.complete) == (status, complete)
