"""Answers that come before the body they are an answer to: who has the connection next must not be
taken for the rest of it."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.http import connections
from tests.service.http.wire import LATE_S, Wire
from tests.service.serving import listening, settings

_LARGE = 3 << 20
_NEXT = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
_LAST = b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
_GROWTH = Path("service/web/lab/growth.png")


@pytest.fixture(scope="module")
def url(letters: Path) -> Iterator[str]:
    with listening(settings(letters)) as (running, _):
        yield running


def _head(path: str, *lines: str, method: str = "POST") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: x", *lines, "", ""]).encode()


@pytest.mark.parametrize(
    ("path", "lines", "answer"),
    [
        ("/v1/completions", (f"Content-Length: {_LARGE}",), b" 413 "),
        ("/nowhere", ("Content-Length: 100000",), b" 404 "),
        ("/livez", ("Content-Length: 9", "Expect: 100-continue"), b" 405 "),
        ("/nowhere", ("Transfer-Encoding: chunked",), b" 404 "),
    ],
)
def test_an_answer_before_its_body_says_that_the_connection_ends(
    url: str, path: str, lines: tuple[str, ...], answer: bytes
) -> None:
    """A proxy that does not send the rest would send another caller's request there (HAProxy 2.6),
    or take the answer for none (Apache httpd 2.4, of who expects `100 Continue`)."""
    wire = Wire(url).send(_head(path, *lines))
    heard = wire.until(b"}}")
    wire.close()
    assert answer in heard.partition(b"\r\n")[0]
    assert b"\r\nconnection: close\r\n" in heard.lower()


def test_what_comes_behind_such_a_body_is_not_answered(url: str) -> None:
    """The body is heard out, so nobody who still sends it is reset."""
    wire = Wire(url, send_bytes=65536)  # or the system would take all of it in one step
    wire.send(_head("/v1/completions", f"Content-Length: {_LARGE}")).until(b"}}")
    assert wire.send(b" " * _LARGE + _NEXT).rest() == b""


def test_a_body_of_any_usual_size_may_come_behind_its_head(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As most clients send it: they keep their connection, refused or not."""
    awaited = threading.Event()
    hear = connections._hear

    async def heard_of(cycle: Any, receive: Any) -> None:
        awaited.set()
        await hear(cycle, receive)

    monkeypatch.setattr(connections, "_hear", heard_of)
    wire = Wire(url).send(_head("/nowhere", "Content-Length: 60000"))
    assert awaited.wait(LATE_S)  # the refusal is there before the body
    heard = wire.send(b" " * 60_000).until(b"}}")
    assert b"connection" not in heard.lower()
    assert wire.send(_LAST).status() == 200


def test_who_never_sends_a_small_body_is_told_all_the_same(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_LINGER_S", connections._LINGER_S / 10)
    wire = Wire(url).send(_head("/nowhere", "Content-Length: 9") + b"{")
    heard = wire.until(b"}}")
    wire.close()
    assert b"\r\nconnection: close\r\n" in heard.lower()


def test_an_answer_is_whole_though_the_body_ends_before_it(url: str) -> None:
    size = 2 * connections._AWAITED_BYTES
    wire = Wire(url, receive_bytes=4096)  # so that the answer takes longer
    wire.send(_head("/static/lab/growth.png", f"Content-Length: {size}", method="GET"))
    heard = wire.until(b"\r\n\r\n")
    heard += wire.send(b" " * size).rest()
    assert heard.partition(b"\r\n\r\n")[2] == _GROWTH.read_bytes()
