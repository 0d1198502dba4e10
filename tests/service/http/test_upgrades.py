"""Who offers another protocol is answered in this one."""

import json
import logging
from pathlib import Path

import httpx
import pytest

from tests.service.http.wire import SOCKET, Wire
from tests.service.serving import eventually, listening, settings

_OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
_OFFERS = [
    _OFFER,
    b"upgrade: TLS/1.0\r\nconnection: upgrade\r\n",
    b"Upgrade: websocket, h2c\r\nConnection: keep-alive\r\nConnection: Upgrade\r\n",
]
_ASKED = {"model": "letters", "prompt": "a", "max_tokens": 5, "seed": 1}
_BODY = json.dumps(_ASKED).encode()
_POST = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
_LENGTH = b"Content-Length: %d\r\n" % len(_BODY)
_CHUNKED = b"Transfer-Encoding: chunked\r\n"
_CHUNKS = b"%x\r\n%s\r\n0\r\nLate: y\r\n\r\n" % (len(_BODY), _BODY)
_LAST = b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


@pytest.fixture(scope="module")
def text(url: str) -> str:
    return str(httpx.post(f"{url}/v1/completions", json=_ASKED).json()["choices"][0]["text"])


def _text(answer: bytes) -> str:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), answer
    return str(json.loads(body)["choices"][0]["text"])


@pytest.mark.parametrize("offer", _OFFERS, ids=["h2c", "TLS", "several"])
@pytest.mark.parametrize(
    ("framed", "body"), [(_LENGTH, _BODY), (_CHUNKED, _CHUNKS)], ids=["length", "chunked"]
)
@pytest.mark.parametrize("pieces", ["one", "two", "bytes"])
def test_a_request_is_read_as_if_nothing_had_been_offered(
    url: str, text: str, offer: bytes, framed: bytes, body: bytes, pieces: str
) -> None:
    """In one piece or several, and what comes after it on that connection, offers or not."""
    request = _POST + offer + framed + b"\r\n"
    wire = Wire(url)
    if pieces == "one":
        wire.send(request + body + request + body + _LAST)
    elif pieces == "two":
        wire.send(request).send(body).send(request).send(body).send(_LAST)
    else:
        for byte in request + body + request + body:
            wire.send(bytes([byte]))
        wire.send(_LAST)
    first, second, last = wire.rest().split(b"HTTP/1.1 200 ")[1:]
    assert [_text(b"HTTP/1.1 200 " + answer) for answer in (first, second)] == [text] * 2
    assert last.endswith(b"ok")


def test_an_offer_without_a_body_is_no_error(url: str) -> None:
    answer = Wire(url).send(b"GET /livez HTTP/1.1\r\nHost: x\r\n" + _OFFER + b"\r\n" + _LAST).rest()
    assert answer.count(b"HTTP/1.1 200 ") == 2


def test_who_wants_the_connection_closed_too_is_obeyed(url: str) -> None:
    offer = b"Connection: close, Upgrade\r\nUpgrade: h2c\r\n"
    answer = Wire(url).send(b"GET /livez HTTP/1.1\r\nHost: x\r\n" + offer + b"\r\n").rest()
    assert b"connection: close" in answer.lower()


@pytest.mark.parametrize("offer", [b"", b"Upgrade: h2c\r\n"])
def test_what_follows_the_last_request_is_passed_over(url: str, text: str, offer: bytes) -> None:
    asked = _POST + offer + b"Connection: close, Upgrade\r\n" + _LENGTH + b"\r\n" + _BODY
    assert _text(Wire(url).send(asked + b"\r\n\r\nGET /livez HTTP/1.1\r\n\r\n").rest()) == text


def test_who_knows_no_chunks_gets_none(url: str) -> None:
    asked = json.dumps(_ASKED | {"stream": True}).encode()
    request = _POST.replace(b"/1.1", b"/1.0") + _OFFER + b"Content-Length: %d\r\n\r\n" % len(asked)
    head, _, body = Wire(url).send(request + asked).rest().partition(b"\r\n\r\n")
    assert b"chunked" not in head.lower()
    assert body.startswith(b"data: ") or body.startswith(b"id: ")


def test_a_head_that_offers_has_the_same_limit(url: str) -> None:
    long = b"GET /livez HTTP/1.1\r\nHost: x\r\n" + _OFFER + b"X: " + b"x" * 70_000
    assert Wire(url).send(long + b"\r\n\r\n").status() == 431


@pytest.mark.parametrize("offer", [b"", _OFFER])
def test_a_tunnel_is_not_opened(url: str, offer: bytes) -> None:
    answer = Wire(url).send(b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n" + offer + b"\r\n").rest()
    assert answer.startswith(b"HTTP/1.1 4")
    assert httpx.get(f"{url}/livez").status_code == 200


@pytest.mark.parametrize("streamed", [False, True])
def test_a_websocket_behind_a_request_that_is_being_answered_is_refused(
    letters: Path, streamed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """It would have the answer, and nobody would hear that its caller has left."""
    body = json.dumps(_ASKED | {"max_tokens": 60_000, "stream": streamed}).encode()
    with listening(settings(letters)) as (url, app):
        wire = Wire(url).send(_POST + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        running = app.state.metrics.registry.get_sample_value
        series = "evenkeel_requests_running", {"model": "letters"}
        assert eventually(lambda: running(*series) == 1)
        answer = wire.send(SOCKET).rest()
        assert b" 101 " not in answer
        assert streamed or answer.startswith(b"HTTP/1.1 400 ")
        assert eventually(lambda: running(*series) == 0)
    assert [line for line in caplog.records if line.levelname == "ERROR"] == []


def test_what_is_sent_with_the_head_of_a_websocket_is_no_request(
    letters: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """However much it is: nothing of it may come before the socket is open."""
    with listening(settings(letters, max_header_bytes=1024)) as (url, _):
        caplog.clear()
        wire = Wire(url).send(SOCKET + b"\x89\x80\0\0\0\0" * 1000)
        assert wire.until(b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
        wire.close()
    assert [line for line in caplog.records if line.levelno >= logging.WARNING] == []


@pytest.mark.parametrize(
    ("more", "body"),
    [(b"Content-Length: 2\r\n", b"{}"), (b"Transfer-Encoding: chunked\r\n", b"0\r\n\r\n")],
)
def test_a_websocket_that_is_asked_for_with_a_body_is_refused_for_that(
    url: str, more: bytes, body: bytes
) -> None:
    """Which is counted, as any refusal."""

    def refused() -> int:
        series = 'evenkeel_requests_rejected_total{status="400"} '
        lines = httpx.get(f"{url}/metrics").text.splitlines()
        return sum(int(float(line.removeprefix(series))) for line in lines if series in line)

    before = refused()
    answer = Wire(url).send(SOCKET[:-2] + more + b"\r\n" + body).rest()
    assert refused() == before + 1
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"this opens no WebSocket: " in answer
