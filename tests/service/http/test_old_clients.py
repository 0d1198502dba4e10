"""Clients of HTTP/1.0 that know no interim answers, and clients that close their side early."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.responses import FileResponse

from service.http import connections
from tests.service.http.wire import Wire
from tests.service.serving import eventually, listening, settings


@pytest.fixture(scope="module")
def service(letters: Path) -> Iterator[tuple[str, FastAPI]]:
    with listening(settings(letters)) as running:
        yield running


def _asked(version: str, steps: int, expects: str = "") -> bytes:
    body = json.dumps({"model": "letters", "max_tokens": steps})
    lines = [f"POST /v1/completions HTTP/{version}", "Host: x", "Content-Type: application/json"]
    lines += [f"Content-Length: {len(body)}", *([f"Expect: {expects}"] if expects else [])]
    return "\r\n".join([*lines, "Connection: close", "", body]).encode()


@pytest.mark.parametrize(
    ("version", "first"), [("1.0", b"HTTP/1.1 200 "), ("1.1", b"HTTP/1.1 100 ")]
)
def test_who_knows_one_answer_gets_one(
    service: tuple[str, FastAPI], version: str, first: bytes
) -> None:
    """Whatever it expects (RFC 9110 §10.1.1)."""
    url, _ = service
    head, _, body = _asked(version, 1, "100-Continue").partition(b"\r\n\r\n")
    wire = Wire(url).send(head + b"\r\n\r\n" + body[:1])
    if version == "1.1":
        wire.until(first)
        assert wire.send(body[1:]).status() == 200
    else:
        assert wire.send(body[1:]).rest().startswith(first)


def test_who_closes_its_side_has_left(service: tuple[str, FastAPI]) -> None:
    """The end of what a client sends is all that is heard of one that is gone."""
    url, app = service
    series = "evenkeel_requests_finished_total", {"model": "letters", "reason": "abort"}

    def gone() -> float:
        return app.state.metrics.registry.get_sample_value(*series) or 0.0

    before = gone()
    assert Wire(url).send(_asked("1.1", 60_000)).end().rest() == b""
    assert eventually(lambda: gone() == before + 1)


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize(
    ("path", "size", "answer"),
    [("/v1/completions", 3 << 20, b" 413 "), ("/livez", 1 << 20, b" 405 ")],
)
def test_who_sends_all_before_it_hears_is_heard_out(
    service: tuple[str, FastAPI], version: str, path: str, size: int, answer: bytes
) -> None:
    """One that wants a single answer would be reset before it reads that."""
    url, _ = service
    lines = [f"POST {path} HTTP/{version}", "Host: x", "Connection: close"]
    wire = Wire(url, send_bytes=65536)  # or the system would take all of it in one step
    wire.send("\r\n".join([*lines, f"Content-Length: {size}", "", ""]).encode())
    heard = wire.until(b"}}")  # the end of what is told
    assert answer in heard.partition(b"\r\n")[0]
    assert wire.send(b" " * size).rest() == b""


def test_who_still_sends_has_all_of_an_answer_in_parts(
    service: tuple[str, FastAPI], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_LINGER_S", connections._LINGER_S / 10)
    url, _ = service
    whole = Path("service/web/lab/growth.png").read_bytes()
    assert len(whole) > FileResponse.chunk_size
    head = b"GET /static/lab/growth.png HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    answer = Wire(url).send(head + b"Content-Length: 9\r\n\r\n").rest()
    assert answer.partition(b"\r\n\r\n")[2] == whole


def test_who_never_sends_the_rest_is_let_go(
    service: tuple[str, FastAPI],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Which is no error of the service."""
    monkeypatch.setattr(connections, "_LINGER_S", connections._LINGER_S / 10)
    url, _ = service
    head = b"POST /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 9\r\n\r\n"
    assert Wire(url).send(head).status() == 405
    assert [line for line in caplog.records if line.levelname == "ERROR"] == []


@pytest.mark.parametrize(("version", "status"), [("1.0", 403), ("1.1", 404)])
def test_who_asks_by_an_old_version_is_no_administrator(
    service: tuple[str, FastAPI], version: str, status: int
) -> None:
    """It may be anybody, behind an nginx of this machine that says nothing of itself."""
    url, _ = service
    head = f"POST /v1/models/none/unload HTTP/{version}\r\nHost: x\r\nConnection: close\r\n\r\n"
    assert Wire(url).send(head.encode()).status() == status
