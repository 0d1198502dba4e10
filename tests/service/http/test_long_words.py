"""What an error tells of a request is short, however long that is."""

import json
from typing import Any

import pytest
from starlette.responses import Response

from service.http.guard import Guard
from tests.service.http.wire import Wire
from tests.service.serving import told_by
from tests.service.writing import InkService

_MOST = 500  # characters of an error's body
_JSON = {"content-type": "application/json"}
_LONG = 10**4200  # of fewer digits than Python takes
_TEXT, _INK = "/v1/completions", "/v1/handwriting"
_ONLINE = b"GET /v1/online HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
_ONLINE += b"Sec-WebSocket-Version: 13\r\n"


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        (_TEXT, {"max_tokens": _LONG}, "max_tokens is 1000"),
        (_TEXT, {"max_tokens": _LONG, "logprobs": 5}, "max_tokens is 1000"),
        (_TEXT, {"prompt": [1, _LONG]}, "1000000000000000000000000000000000000... is no token"),
        (_TEXT, {"prompt": [[1], [-_LONG]]}, "... is no token"),
        (_TEXT, {"n": _LONG}, "n is 1000"),
        (_INK, {"text": "a", "first_line": _LONG}, "first_line is 1000"),
    ],
)
def test_a_number_of_thousands_of_digits_is_told_by_the_first(
    ink: InkService, path: str, body: dict[str, Any], told: str
) -> None:
    model = {"model": "letters"} if path == _TEXT else {}
    answer = ink.client.post(path, content=json.dumps(model | body), headers=_JSON)
    assert answer.status_code == 400
    assert told in answer.json()["error"]["message"]
    assert len(answer.text) < _MOST


@pytest.mark.parametrize(
    ("name", "letter", "status"),
    [(b"host", b"e", 403), (b"host", b"\xe9", 400), (b"origin", b"\xe9", 403)],
)
def test_a_host_and_an_origin_are_told_by_their_beginning(
    name: bytes, letter: bytes, status: int
) -> None:
    guard = Guard(Response(), frozenset({"localhost"}), frozenset())
    headers = {b"host": b"localhost", b"origin": b"http://other"}
    headers[name] = b"keel.example" + letter * 30_000
    scope = {"type": "http", "method": "POST", "path": "/", "headers": [*headers.items()]}
    start, body = told_by(guard, scope)
    assert start["status"] == status
    assert b"'keel.example" in body["body"]
    assert len(body["body"]) < _MOST


@pytest.mark.parametrize(
    "line", [b"Sec-WebSocket-Key: ", b"Sec-WebSocket-Protocol: ,=", b"Sec-WebSocket-Extensions: "]
)
def test_a_header_that_opens_no_socket_is_told_by_its_beginning(url: str, line: bytes) -> None:
    answer = Wire(url).send(_ONLINE + line + b"?" * 8000 + b"\r\n\r\n").rest()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"this opens no WebSocket" in answer
    assert len(answer.partition(b"\r\n\r\n")[2]) < _MOST
