"""Clauses of HTTP and of WebSockets that proxies and strict clients hold a server to, each as its
standard has it.
"""

import logging
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest

from tests.service.http.wire import SOCKET, Wire, wires
from tests.service.serving import listening, settings

_NO_TEXT = b"\x81\x81\0\0\0\0\xff"  # a text message of a byte that is no UTF-8


@pytest.fixture(scope="module")
def named(letters: Path) -> Iterator[str]:
    """Where a service listens that answers to one name."""
    with listening(settings(letters, allowed_hosts=("keel.example",))) as (url, _):
        yield url


def _asked(url: str, line: str, *headers: str) -> tuple[int, bytes]:
    """The status of an answer, and its body."""
    head = [line, *headers, "Connection: close", "", ""]
    answer = Wire(url).send("\r\n".join(head).encode()).rest()
    return int(answer.split(b" ", 2)[1]), answer.partition(b"\r\n\r\n")[2]


def _opens(url: str, head: bytes) -> bool:
    """Whether this opens a WebSocket."""
    with wires(url, 1) as (wire,):
        return wire.send(head).until(b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        ("http://keel.example/v1/models", "evil.example", 200),
        ("HTTP://Keel.Example:80/v1/models?x=1", "evil.example", 200),
        ("http://evil.example/v1/models", "keel.example", 403),
        ("http://some@keel.example/v1/models", "keel.example", 400),
        ("http://keel.example", "keel.example", 200),
        ("http://keel.example?x=1", "keel.example", 200),
    ],
)
def test_a_target_that_names_its_host_is_for_that_host(
    named: str, target: str, host: str, status: int
) -> None:
    """Whatever its header says (RFC 9112 §3.2.2)."""
    told, body = _asked(named, f"GET {target} HTTP/1.1", f"Host: {host}")
    assert told == status
    if "/v1" not in target:  # nothing behind the name is the root
        assert b"<title>Evenkeel" in body


def test_an_old_request_may_name_its_host_by_its_target_alone(named: str) -> None:
    """HTTP/1.0 has no other way to."""
    for host, status in (("keel.example", 200), ("evil.example", 403)):
        assert _asked(named, f"GET http://{host}/v1/models HTTP/1.0")[0] == status
    assert _asked(named, "GET http://keel.example/v1/models HTTP/1.1")[0] == 400


def test_a_websocket_is_opened_by_a_target_that_names_its_host(named: str) -> None:
    assert _opens(named, SOCKET.replace(b"GET /", b"GET http://keel.example/"))


@pytest.mark.parametrize("path", ["/v1/models", "/"])
def test_a_request_says_which_host_it_is_for(url: str, path: str) -> None:
    """But for one of HTTP/1.0, which knows no such header (RFC 9112 §3.2)."""
    assert _asked(url, f"GET {path} HTTP/1.1")[0] == 400
    assert _asked(url, f"GET {path} HTTP/1.0")[0] == 200


@pytest.mark.parametrize("order", [("Upgrade", "keep-alive"), ("keep-alive", "Upgrade")])
def test_lines_of_one_name_are_one_list(url: str, order: tuple[str, str]) -> None:
    """Whichever comes last (RFC 9110 §5.3)."""
    lines = "\r\n".join(f"Connection: {option}" for option in order)
    assert _opens(url, SOCKET.replace(b"Connection: Upgrade", lines.encode()))


def test_white_space_around_a_value_is_no_part_of_it(named: str) -> None:
    """Behind it neither (RFC 9110 §5.5)."""
    assert _asked(named, "GET /v1/models HTTP/1.1", "Host:\tkeel.example \t")[0] == 200
    spaced = SOCKET.replace(b"Host: x", b"Host: keel.example ").replace(
        b"socket\r\n", b"socket \r\n"
    )
    assert _opens(named, spaced)


@pytest.mark.parametrize("version", ["", "Sec-WebSocket-Version: 8\r\n"])
def test_who_speaks_another_version_of_websockets_is_told_this_one(url: str, version: str) -> None:
    """RFC 6455 §4.2.2 and §4.4."""
    head = SOCKET.replace(b"Sec-WebSocket-Version: 13\r\n", version.encode())
    answer = Wire(url).send(head).rest().lower()
    assert answer.startswith(b"http/1.1 400 ")
    assert b"\r\nsec-websocket-version: 13\r\n" in answer


def test_a_text_message_that_is_no_text_breaks_the_protocol(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whose code is 1007 (RFC 6455 §8.1)."""
    wire = Wire(url).send(SOCKET)
    wire.until(b"\r\n\r\n")
    assert b"\x03\xeftext must be UTF-8" in wire.send(_NO_TEXT).rest()
    assert [line for line in caplog.records if line.levelno >= logging.ERROR] == []


@pytest.mark.parametrize(
    "head", [b"NO\r\n\r\n", SOCKET.replace(b"Version: 13", b"Version: 8")], ids=["HTTP", "socket"]
)
def test_a_refusal_has_a_date_as_any_answer_has(url: str, head: bytes) -> None:
    """RFC 9110 §6.6.1."""
    lines = Wire(url).send(head).rest().decode().split("\r\n")
    (date,) = [line[6:] for line in lines if line.lower().startswith("date: ")]
    assert parsedate_to_datetime(date).utcoffset() is not None
    assert date.endswith(" GMT")
