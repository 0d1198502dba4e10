"""A session is recorded with the code that it was closed with, whatever was being answered then."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.frames import Close, Frame, Opcode

from service.http import record
from tests.service.http.wire import Wire
from tests.service.serving import eventually, listening, settings

_HANDSHAKE = b"GET /v1/online HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
_HANDSHAKE += b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + b"A" * 22 + b"==\r\n\r\n"


def _said(**message: object) -> bytes:
    return Frame(Opcode.TEXT, json.dumps(message).encode()).serialize(mask=True)


def _close(code: int) -> bytes:
    return Frame(Opcode.CLOSE, Close(code, "enough").serialize()).serialize(mask=True)


@pytest.fixture(scope="module")
def url(artifacts: Path) -> Iterator[str]:
    with listening(settings(artifacts)) as (url, _):
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
    wire = Wire(url).send(_HANDSHAKE)
    wire.until(b"\r\n\r\n")
    with caplog.at_level(logging.INFO, logger=record.log.name):
        wire.send(last + _close(code)).rest()  # in one piece, so that they are read together
        assert eventually(lambda: len(_lines(caplog)) == 1)
    line = json.loads(_lines(caplog)[0])
    assert (line["path"], line["status"], line["error"]) == ("/v1/online", told, None)


def test_a_message_that_is_refused_as_its_client_closes_is_recorded_as_both(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    wire = Wire(url).send(_HANDSHAKE)
    wire.until(b"\r\n\r\n")
    with caplog.at_level(logging.INFO, logger=record.log.name):
        wire.send(_said(model="letters", surprise=1) + _close(1000)).rest()
        assert eventually(lambda: len(_lines(caplog)) == 1)
    line = json.loads(_lines(caplog)[0])
    assert (line["status"], line["error"]) == (1000, "invalid_request_error")


def _lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line.message for line in caplog.records if line.name == record.log.name]
