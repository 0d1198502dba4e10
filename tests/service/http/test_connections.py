"""No connection can hold the service up: sizes and times of what is sent are limited, answers have
to be read, and the probes are reachable when every place is taken."""

import asyncio
import json
import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from service.http import connections
from service.http.guard import POLICY
from service.http.sockets import WebSocketConnection
from tests.service.http.at_once import AtOnce, Outcomes
from tests.service.http.wire import LATE_S, SOCKET, Wire, code_of, wires
from tests.service.serving import eventually, listening, settings

_TIMEOUT_S, _IDLE_S = 0.6, 1.2
_GET = b"GET /livez HTTP/1.1\r\nHost: x\r\n"
_POST = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
_OPEN, _STATE = b'{"model": "letters"}', b'{"state": true}'
_ENDLESS = json.dumps({"model": "letters", "max_tokens": 10**8, "stream": True}).encode()


@pytest.fixture(scope="module")
def service(letters: Path) -> Iterator[tuple[str, FastAPI]]:
    """One with little patience."""
    chosen = settings(
        letters,
        request_timeout_s=_TIMEOUT_S,
        idle_timeout_s=_IDLE_S,
        max_header_bytes=8192,
        slots=2,
        max_tokens=10**9,
        max_request_steps=10**9,
    )
    with listening(chosen) as running:
        yield running


@pytest.fixture(scope="module")
def crowded(letters: Path) -> Iterator[str]:
    """One with few places, from which nobody is shown out for being slow."""
    with listening(settings(letters, max_connections=24)) as (url, _):
        yield url


@pytest.fixture
def url(service: tuple[str, FastAPI]) -> str:
    return service[0]


_at_once = AtOnce()


@pytest.fixture(scope="module")
def over(service: tuple[str, FastAPI]) -> Outcomes:
    outcomes = _at_once.run(service[0])
    assert eventually(lambda: _running(service[1]) == 0)
    return outcomes


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(_GET + b"X: " + b"x" * 2**20 + b"\r\n\r\n", id="a value"),
        pytest.param(_GET + b"X: x\r\n" * 2**17 + b"\r\n", id="many"),
        pytest.param(_GET + b"x" * 2**20 + b": x\r\n\r\n", id="a name"),
        pytest.param(b"GET /" + b"x" * 2**20 + b" HTTP/1.1\r\n\r\n", id="a URL"),
        pytest.param(b"\r\n" * 2**19, id="nothing"),
    ],
)
def test_a_head_of_a_megabyte_is_refused_at_its_limit(url: str, head: bytes) -> None:
    began_s = time.monotonic()
    answer = Wire(url).send(head[:9000]).rest()
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert code_of(answer) == "headers_too_large"
    assert time.monotonic() - began_s < 5
    assert Wire(url).send(head).rest()[:13] in (b"HTTP/1.1 431 ", b"")  # b"": reset while it sent


def test_a_refusal_is_not_written_into_the_answer_before_it(url: str) -> None:
    wire = Wire(url).send(_POST + b"Content-Length: %d\r\n\r\n" % len(_ENDLESS) + _ENDLESS)
    wire.until(b"data: ")
    assert b"HTTP/1.1" not in wire.send(_GET + b"X: " + b"x" * 9000).rest()


def test_who_was_refused_and_stays_is_cut_off(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its data is dropped for a moment, so that the answer is not lost; its place is not kept."""
    monkeypatch.setattr(connections, "_LINGER_S", connections._LINGER_S / 3)
    wire = Wire(url).send(_GET + b"X: " + b"x" * 9000)

    def is_gone() -> bool:
        try:
            wire.send(b"x")
        except OSError:
            return True
        return False

    assert not is_gone()
    assert eventually(is_gone)
    wire.close()


def test_a_refusal_says_that_nothing_more_comes(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long its sender's data is dropped."""
    monkeypatch.setattr("service.http.connections._LINGER_S", 3 * LATE_S)
    assert Wire(url).send(_GET + b"X: " + b"x" * 9000).status() == 431


@_at_once
def test_a_connection_that_is_used_again_has_its_time_again(url: str) -> None:
    with wires(url, 1) as (wire,):
        for again in range(4):
            time.sleep(_TIMEOUT_S / 2 if again else 0)
            wire.send(_GET + b"\r\n").until(b"ok")


def test_a_head_just_within_the_limit_is_taken(url: str) -> None:
    head = _GET + b"Connection: close\r\nX: "
    filling = b"x" * (8192 - len(head) - 4)
    assert Wire(url).send(head + filling + b"\r\n\r\n").status() == 200
    assert Wire(url).send(head + filling + b"xx\r\n\r\n").status() == 431


def test_a_body_may_be_larger_than_a_head_in_any_pieces(url: str) -> None:
    wire = Wire(url).send(_POST + b"Connection: close\r\nContent-Length: 100000\r\n\r\n")
    for _ in range(100):
        wire.send(b" " * 1000)
    assert wire.status() == 400  # all of it has been read, and is no JSON


def test_trailers_have_the_same_limit(url: str) -> None:
    chunked = _POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
    assert Wire(url).send(chunked + b"T: " + b"t" * 20_000 + b"\r\n\r\n").status() == 431


def test_a_trailer_is_no_header(url: str) -> None:
    body = b'{"model": "letters", "max_tokens": 1}'
    head = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    chunk = b"%x\r\n%b\r\n0\r\n" % (len(body), body)
    trailer = b"Content-Type: application/json\r\nOrigin: http://evil.example\r\n\r\n"
    answer = Wire(url).send(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk + trailer).rest()
    assert answer.startswith(b"HTTP/1.1 400 ")  # not 403: it came from nowhere


def test_what_is_not_http_gets_the_usual_error(url: str) -> None:
    answer = Wire(url).send(b"\x16\x03\x01 no\r\n\r\n").rest()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"invalid_request_error" in answer
    head = answer.decode().lower().split("\r\n")  # and what a browser may do with it
    assert {f"{name}: {value}".lower() for name, value in POLICY.items()} <= set(head)


def test_who_knows_no_chunks_gets_a_stream_without(url: str) -> None:
    body = b'{"model": "letters", "max_tokens": 3, "seed": 1, "stream": true}'
    head = b"Host: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    answer = Wire(url).send(b"POST /v1/completions HTTP/1.0\r\n" + head + body).rest()
    told, _, events = answer.partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in told
    assert events.startswith(b"id: 0\n")
    assert events.endswith(b"data: [DONE]\n\n")


@_at_once
def test_a_head_that_does_not_end_gets_a_408(url: str) -> None:
    silent, wire = Wire(url).send(_GET), Wire(url)
    wire.trickle(_GET + b"x" * 1000, unanswered=True)
    assert wire.status() == 408
    answer = silent.rest()
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert code_of(answer) == "request_timeout"


@_at_once
def test_a_body_that_does_not_end_gets_a_408(url: str) -> None:
    silent = Wire(url).send(_POST + b"Content-Length: 50\r\n\r\n{")
    wire = Wire(url).send(_POST + b"Content-Length: 500\r\n\r\n")
    wire.trickle(b"{" * 200, unanswered=True)
    assert wire.status() == 408
    answer = silent.rest()
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert code_of(answer) == "request_timeout"
    assert f"the request body took over {_TIMEOUT_S} s to arrive".encode() in answer


@_at_once
def test_a_body_that_trickles_in_after_its_answer_is_cut(url: str) -> None:
    wire = Wire(url).send(_POST + b"Origin: http://evil.example\r\nContent-Length: 5000\r\n\r\n{")
    began_s = time.monotonic()
    wire.trickle(b"{" * 4000)
    assert time.monotonic() - began_s < 20
    assert wire.rest().startswith(b"HTTP/1.1 403 ")


@_at_once
def test_whoever_says_nothing_is_closed_without_a_word(url: str) -> None:
    assert Wire(url).rest() == b""


@_at_once
def test_a_slow_answer_is_no_slow_request(url: str) -> None:
    stream = {"model": "letters", "max_tokens": 10**8, "stream": True}
    began_s = time.monotonic()
    with httpx.stream("POST", f"{url}/v1/completions", json=stream, timeout=30) as answer:
        for _ in answer.iter_raw():
            if time.monotonic() - began_s > 2 * _TIMEOUT_S:
                break
        else:
            pytest.fail("the stream was cut")


def _running(app: FastAPI) -> float:
    return _metric(app, "requests_running")


def _aborted(app: FastAPI) -> float:
    return _metric(app, "requests_finished_total", reason="abort")


def _metric(app: FastAPI, name: str, **labels: str) -> float:
    labels |= {"model": "letters"}
    return app.state.metrics.registry.get_sample_value(f"evenkeel_{name}", labels) or 0.0


def test_a_reader_who_does_not_read_is_cut_and_its_slot_is_free(
    service: tuple[str, FastAPI],
) -> None:
    url, app = service
    head = _POST + b"Content-Length: %d\r\n\r\n" % len(_ENDLESS)
    before = _aborted(app)
    wire = Wire(url, receive_bytes=4096).send(head + _ENDLESS)
    assert eventually(lambda: _aborted(app) == before + 1)
    assert eventually(lambda: _running(app) == 0)
    assert len(wire.rest()) < 2**22


def test_a_pipelined_request_does_not_hide_that_the_caller_has_left(
    service: tuple[str, FastAPI],
) -> None:
    url, app = service
    body = _ENDLESS.replace(b"true", b"false")
    head = _POST + b"Content-Length: %d\r\n\r\n" % len(body)
    wire = Wire(url).send(head + body + _GET + b"\r\n")
    assert eventually(lambda: _running(app) == 1)
    wire.close()
    assert eventually(lambda: _running(app) == 0)


def _turned_away(url: str) -> float:
    """How many requests it had no place for."""
    series = 'evenkeel_http_requests_total{code="overloaded",path="other",status="503"} '
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    return sum(float(line.removeprefix(series)) for line in lines if line.startswith(series))


def test_probes_are_reachable_while_200_connections_stand_half_open(crowded: str) -> None:
    before = _turned_away(crowded)
    with wires(crowded, 200) as open_still:
        for wire in open_still[:150]:
            with suppress(OSError):  # it has made room already
                wire.send(b"G")
        for probe in ("/livez", "/readyz"):
            assert httpx.get(crowded + probe, timeout=LATE_S).status_code == 200
        refused = httpx.get(f"{crowded}/v1/models", timeout=LATE_S)
        assert refused.status_code == 503
        assert (refused.headers["retry-after"], refused.headers["connection"]) == ("1", "close")
        assert refused.json()["error"]["code"] == "overloaded"
    assert eventually(lambda: httpx.get(f"{crowded}/v1/models").status_code == 200)
    assert _turned_away(crowded) > before


def test_a_full_service_opens_no_socket(crowded: str) -> None:
    with wires(crowded, 24), pytest.raises(InvalidStatus, match="503"):
        connect(crowded.replace("http", "ws") + "/v1/online")


def test_a_socket_takes_one_place(crowded: str) -> None:
    with ExitStack() as sockets:
        for _ in range(9):  # of the 12 that one address may have
            sockets.enter_context(connect(crowded.replace("http", "ws") + "/v1/online"))
        assert httpx.get(f"{crowded}/v1/models").status_code == 200


def test_a_refused_socket_is_no_error_of_the_service(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(InvalidStatus, match="403"):
        connect(url.replace("http", "ws") + "/v1/online", origin=Origin("https://evil.example"))
    assert httpx.get(f"{url}/livez").status_code == 200  # what it logs of the refusal is there
    assert [line for line in caplog.records if line.levelno >= logging.ERROR] == []


def test_one_address_has_half_of_the_places(crowded: str) -> None:
    with wires(crowded, 11):
        assert eventually(lambda: httpx.get(f"{crowded}/v1/models").status_code == 200)
        with wires(crowded, 1):
            assert eventually(lambda: httpx.get(f"{crowded}/v1/models").status_code == 503)


@_at_once
def test_an_idle_socket_is_told_and_closed(url: str) -> None:
    with connect(url.replace("http", "ws") + "/v1/online") as online:
        online.send(json.dumps({"model": "letters"}))
        online.recv()
        told = json.loads(online.recv(timeout=LATE_S))
        assert told["closing"] == f"no message came for {_IDLE_S} s"
        assert "state" in told
        with pytest.raises(ConnectionClosed) as closed:
            online.recv(timeout=LATE_S)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1001


def test_a_socket_compresses_nothing(url: str) -> None:
    """It would take longer than most steps."""
    with connect(url.replace("http", "ws") + "/v1/online", compression="deflate") as online:
        assert online.response is not None
        assert "Sec-WebSocket-Extensions" not in online.response.headers


def test_a_message_may_be_as_large_as_a_body(url: str) -> None:
    with connect(url.replace("http", "ws") + "/v1/online") as online:
        with suppress(ConnectionClosed):
            online.send(b"\0" * (2**20 + 1))
        with pytest.raises(ConnectionClosed) as closed:
            online.recv(timeout=LATE_S)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009


def test_a_socket_whose_answers_nobody_reads_is_cut(service: tuple[str, FastAPI]) -> None:
    url, app = service
    wire = Wire(url, receive_bytes=4096).send(SOCKET)
    assert eventually(lambda: len(app.state.sessions) == 1)
    says = [b"\x81" + bytes([128 + len(said)]) + bytes(4) + said for said in (_OPEN, _STATE)]
    with suppress(OSError):  # which is how it learns that it was cut
        wire.send(says[0])
        for _ in range(1000):
            wire.send(says[1] * 1000)
    assert eventually(lambda: len(app.state.sessions) == 0)
    wire.close()


@pytest.mark.parametrize(("paused", "heard"), [(False, [False, True]), (True, [False])])
def test_a_socket_is_not_read_from_while_its_answers_are_not(
    paused: bool, heard: list[bool]
) -> None:
    """Or its pings would be answered into memory; `paused` is by its application."""
    connection: Any = WebSocketConnection.__new__(WebSocketConnection)
    connection.writable, connection.read_paused = asyncio.Event(), paused
    told: list[bool] = []
    connection.transport = SimpleNamespace(
        pause_reading=lambda: told.append(False), resume_reading=lambda: told.append(True)
    )
    connection.pause_writing()
    connection.resume_writing()
    assert told == heard


@pytest.mark.parametrize("version", [b"", b"Sec-WebSocket-Version: 12\r\n"])
def test_what_is_no_handshake_gets_the_usual_error_and_is_counted(
    service: tuple[str, FastAPI], version: bytes
) -> None:
    url, app = service
    refused = {"path": "other", "status": "400", "code": "invalid_request_error"}

    def count() -> float:
        value = app.state.metrics.registry.get_sample_value("evenkeel_http_requests_total", refused)
        return value or 0

    before = count()
    head = b"GET /v1/online HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    answer = Wire(url).send(head + version + b"\r\n").rest()
    assert answer.startswith(b"HTTP/1.1 400 ")
    told = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
    assert "Sec-WebSocket" in told["message"]
    assert count() == before + 1


def test_a_socket_with_too_long_a_header_is_refused(url: str) -> None:
    head = SOCKET.removesuffix(b"\r\n")
    for extra in (b"X: " + b"x" * 8190 + b"\r\n", b"X: x\r\n" * 200):
        assert not Wire(url).send(head + extra + b"\r\n").rest().startswith(b"HTTP/1.1 101")
    assert httpx.get(f"{url}/livez").status_code == 200
