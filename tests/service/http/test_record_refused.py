"""The line of the log, and the count, of what the routes never saw whole: who sent it, and how it
ended.
"""

import asyncio
import json
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from service.http import record
from service.http.keys import new_key
from service.metrics import Metrics
from tests.service.http.wire import Wire
from tests.service.serving import eventually, listening, settings

_POST = b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"

Lines = Callable[[], list[dict[str, Any]]]


def _listened(caplog: pytest.LogCaptureFixture) -> Lines:
    """What gives the lines of requests from now on."""
    caplog.set_level(logging.INFO, record.log.name)
    caplog.clear()
    return lambda: [json.loads(r.message) for r in caplog.records if r.name == record.log.name]


def _endings(lines: Lines) -> list[tuple[str, int, str]]:
    return [(line["path"], line["status"], line["error"]) for line in lines()]


def test_who_is_refused_without_a_key_is_an_address(
    letters: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines = _listened(caplog)
    new_key(tmp_path / "keys.toml", "plain")
    chosen = settings(letters, keys=tmp_path / "keys.toml")
    with listening(chosen) as (url, _):
        httpx.get(url + "/v1/models")
        httpx.get(url + "/v1/models", headers={"Authorization": "Bearer guessed"})
        httpx.post(url + "/v1/models", headers={"Origin": "http://evil.example"})
        Wire(url).send(b"FOO / HTTP/1.1\r\n\r\n").rest()
        assert eventually(lambda: len(lines()) == 4)
    assert [line["status"] for line in lines()] == [401, 401, 403, 400]
    assert {line["caller"] for line in lines()} == {"address:127.0.0.1"}


def test_a_client_that_leaves_before_its_body_is_whole_has_no_answer(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    lines = _listened(caplog)
    wire = Wire(url).send(_POST + b"Content-Length: 9\r\n\r\n{")
    wire.close()
    assert eventually(lambda: _endings(lines) == [("/v1/completions", 499, "abort")]), lines()


@pytest.mark.parametrize(
    "body", [b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}no", b"Transfer-Encoding: none\r\n\r\n{}"]
)
def test_a_request_whose_body_is_no_http_is_told_once(
    url: str, caplog: pytest.LogCaptureFixture, body: bytes
) -> None:
    lines = _listened(caplog)
    assert Wire(url).send(_POST + body).status() == 400
    refused = ("/v1/completions", 400, "invalid_request_error")
    assert eventually(lambda: _endings(lines) == [refused]), lines()


def test_what_is_no_http_behind_a_request_is_a_line_of_its_own(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    lines = _listened(caplog)
    assert Wire(url).send(_POST + b"Content-Length: 2\r\n\r\n{}no HTTP\r\n\r\n").status() == 400
    assert eventually(lambda: len(lines()) == 2), lines()
    assert ("other", 400, "invalid_request_error") in _endings(lines)


def test_who_sends_on_what_was_answered_before_is_not_refused_as_well(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    lines = _listened(caplog)
    wire = Wire(url).send(_POST.replace(b"/v1/completions", b"/nowhere"))
    wire.send(b"Transfer-Encoding: chunked\r\n\r\n").until(b"unknown_url")
    with suppress(OSError):
        wire.send(b"1\r\n \r\n" * 3000)  # more such chunks than are taken
    wire.rest()
    assert httpx.get(f"{url}/v1/models").status_code == 200
    assert eventually(lambda: len(lines()) >= 2)
    assert [line["status"] for line in lines()] == [404, 200]


def test_what_comes_behind_an_answer_does_not_change_what_was_answered(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Which is told before the body has come, to whoever asks for nothing more."""
    lines = _listened(caplog)
    head = _POST.replace(b"/v1/completions", b"/nowhere") + b"Connection: close\r\n"
    wire = Wire(url).send(head + b"Transfer-Encoding: chunked\r\n\r\n")
    wire.until(b"unknown_url")
    with suppress(OSError):
        wire.send(b"1\r\n \r\n" * 3000)
    assert b"HTTP/1.1" not in wire.rest()
    assert eventually(lambda: len(lines()) == 2), lines()
    assert ("other", 404, "unknown_url") in _endings(lines)


def test_where_all_stands_below_a_path_a_request_is_of_its_route() -> None:
    """As behind Ray Serve or a proxy."""
    scope = {"route": SimpleNamespace(path="/v1/models"), "root_path": "/below"}
    assert record._path(scope) == "/v1/models"


def test_an_answer_to_who_has_left_is_none() -> None:
    async def send(message: Any) -> None: ...

    asked = record.Record("it")
    asked.fail(record.ABORT)
    asyncio.run(record._named(send, asked)({"type": "http.response.start", "status": 200}))
    assert asked.status == 0


@pytest.mark.parametrize(("path", "told"), [("/readyz", 0), ("/v1/models", 1)])
def test_a_probe_that_is_answered_no_is_counted_and_refuses_nobody(path: str, told: int) -> None:
    metrics, seen = Metrics(), list[record.Record]()
    nobody: Any = None
    recorder = record.Recorder(nobody, metrics, seen.append)
    recorder._tell(record.Record("it", path=path, status=503))
    assert len(seen) == told
    assert metrics.rejected.labels(503)._value.get() == told
    assert metrics.ended.labels(path, 503, "")._value.get() == 1
