"""State tokens, strokes and WebSocket frames of any kind: nothing comes of them but what the
documents declare, and no line of the log says that something failed.

`EVENKEEL_FUZZ_INPUTS=40000` says how many of each; `make fuzz` makes so many.
"""

import base64
import io
import json
import logging
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from jsonschema import Draft7Validator
from starlette.testclient import TestClient

from service.http.messages import describe_messages
from service.kinds import KINDS
from tests.service.serving import Service, listening, settings
from tests.service.writing import InkService

_INPUTS = int(os.environ.get("EVENKEEL_FUZZ_INPUTS", "40"))
_MOST_FRAMES = 8
_SILENCE_S = 0.1
# Of protocol, not JSON, data, policy and size; 1000 answers a close. Not 1011, a failure of ours.
_CLOSES = {1000, 1001, 1002, 1003, 1007, 1008, 1009}
_UPGRADE = (
    "GET /v1/online HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
_fuzz = hypothesis.settings(
    max_examples=_INPUTS,
    deadline=None,
    derandomize=_INPUTS < 1000,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
_numbers = st.one_of(st.integers(), st.floats(), st.sampled_from([0, -0.0, 1e308, 10**40, 2**63]))
_anything = st.recursive(
    st.none() | st.booleans() | _numbers | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["strokes", "text", "bytes", "point", "write", "model", "state"]), inner
        )
    ),
    max_leaves=12,
)
_places = st.lists(st.floats(-1e6, 1e6, width=32) | _numbers, min_size=1, max_size=3)
_strokes = st.lists(st.lists(_places, max_size=12), max_size=4) | _anything


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    told = [line.getMessage() for line in caplog.records if line.levelno >= logging.ERROR]
    assert told == []


@pytest.fixture(scope="module")
def tokens(ink: InkService) -> dict[str, str]:
    """A good one of each route that takes any."""
    completion = Service(ink.app, ink.client).choice(max_tokens=3, return_state=True)
    return {"/v1/completions": completion["state"], "/v1/handwriting": ink.token()}


@cache
def _document(client: TestClient) -> dict[str, Any]:
    return client.get("/openapi.json").json()


def _post(client: TestClient, path: str, body: Any) -> None:
    """The answer is declared for this route, and so is its body if it is an error."""
    content = json.dumps(body)
    response = client.post(path, content=content, headers={"Content-Type": "application/json"})
    document = _document(client)
    declared = document["paths"][path]["post"]["responses"]
    assert response.status_code != 500, body
    answer = declared[str(response.status_code)]
    if response.status_code != 200:
        (media,) = answer["content"].values()
        schema = {"allOf": [media["schema"]], "components": document["components"]}
        Draft7Validator(schema).validate(response.json())


@st.composite
def _spoiled(draw: st.DrawFn, good: str) -> str:
    """A token with a part taken out, put in, exchanged or repeated, or written anew."""
    begin = draw(st.integers(0, len(good)))
    end = draw(st.integers(begin, min(len(good), begin + 40)))
    middle = draw(
        st.text(max_size=9)
        | st.binary(max_size=40).map(lambda raw: base64.urlsafe_b64encode(raw).decode())
        | st.just(good[begin:end] * 2)
    )
    return good[:begin] + middle + good[end:]


@_fuzz
@hypothesis.given(st.data())
def test_any_state_token(ink: InkService, tokens: dict[str, str], data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(tokens)))
    token = data.draw(_spoiled(tokens[path]) | st.text(max_size=200))
    bodies: dict[str, list[dict[str, Any]]] = {
        "/v1/completions": [{"model": "letters", "state": token, "max_tokens": 1}],
        "/v1/handwriting": [{"text": "a", "state": token}, {"text": "a", "style": token}],
    }
    _post(ink.client, path, data.draw(st.sampled_from(bodies[path])))


@_fuzz
@hypothesis.given(_strokes, st.sampled_from(["a", "an even keel", ""]) | st.text(max_size=9))
def test_any_strokes(ink: InkService, strokes: Any, text: str) -> None:
    hand = {"strokes": strokes, "text": text}
    _post(ink.client, "/v1/styles", hand)
    _post(ink.client, "/v1/handwriting", {"text": "a", "style": hand})


def _frame(opcode: int, payload: bytes, *, last: bool = True) -> bytes:
    """As clients send them, masked with zeros."""
    size = len(payload)
    length = bytes([0x80 | size]) if size < 126 else b"\xfe" + struct.pack(">H", size)
    return bytes([last << 7 | opcode]) + length + bytes(4) + payload


def _said(message: Any) -> bytes:
    return _frame(1, json.dumps(message).encode())


_openings = st.sampled_from([
    {"model": "letters", "seed": 1},
    {"model": "scrawl", "seed": 1, "text": "keel"},
])  # fmt: skip
_messages = st.one_of(
    st.fixed_dictionaries({"bytes": st.lists(st.integers(0, 255), max_size=5)}),
    st.fixed_dictionaries({"point": st.lists(st.floats(-9, 9), min_size=3, max_size=3)}),
    st.fixed_dictionaries({"write": st.integers(-1, 20)}),
    st.just({"state": True}),
    st.fixed_dictionaries({"model": st.sampled_from(["letters", "scrawl"])} , optional={
        "state": _anything, "style": st.fixed_dictionaries({"strokes": _strokes}) | _anything,
        "text": st.text(max_size=9), "bias": _numbers, "origin": _places, "temperature": _numbers,
    }),
    _anything,
)  # fmt: skip
_frames = st.one_of(
    _messages.map(_said),
    st.builds(_frame, st.integers(0, 15), st.binary(max_size=200), last=st.booleans()),
    st.builds(_frame, st.just(1), st.binary(max_size=40)),
    st.binary(max_size=40),
)


@pytest.fixture(scope="module")
def wire(inks: Path) -> Iterator[str]:
    with listening(settings(inks, runner="scan", max_connections=1000)) as (url, _):
        yield urlsplit(url).netloc


@pytest.fixture(scope="module")
def answers() -> Draft7Validator:
    document = describe_messages(KINDS)
    names = [m["$ref"].rpartition("/")[2] for m in document["operations"]["answer"]["messages"]]
    kinds = [document["components"]["messages"][name]["payload"] for name in names]
    return Draft7Validator({"anyOf": kinds, "components": document["components"]})


@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # of frames, which may be large
@_fuzz
@hypothesis.given(
    st.none() | _openings, st.lists(_frames, min_size=1, max_size=_MOST_FRAMES), st.booleans()
)
def test_any_frames(
    wire: str, answers: Draft7Validator, opening: Any, frames: list[bytes], waits: bool
) -> None:
    first = [] if opening is None else [_said(opening)]
    for opcode, payload in _exchange(wire, [*first, *frames, _frame(8, b"\x03\xe8")], waits):
        if opcode == 1:
            answers.validate(json.loads(payload))
        elif opcode == 2:
            assert np.isfinite(np.frombuffer(payload, "<f4")).all()
        elif opcode == 8:
            code = int.from_bytes(payload[:2] or b"\x03\xe8", "big")
            assert code in _CLOSES or 3000 <= code < 5000  # a client's own
        else:
            assert opcode == 10  # a ping was answered


def test_bytes_that_open_no_session_are_refused(wire: str) -> None:
    (_, told), (_, closed) = _exchange(wire, [_frame(2, b"{}")], waits=True)
    assert json.loads(told)["error"]["type"] == "invalid_request_error"
    assert closed[:2] == struct.pack(">H", 1008)


def _exchange(wire: str, frames: list[bytes], waits: bool) -> list[tuple[int, bytes]]:
    """What comes back until the connection ends; who does not wait closes its side at once."""
    host, _, port = wire.partition(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(_UPGRADE.format(host=wire).encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += connection.recv(1)
        assert head.startswith(b"HTTP/1.1 101 ")
        with suppress(ConnectionError):
            connection.sendall(b"".join(frames))
            if not waits:
                _say_no_more(connection)
        return list(_parsed(io.BytesIO(_rest(connection))))


def _say_no_more(connection: socket.socket) -> None:
    with suppress(OSError):  # the other side was faster
        connection.shutdown(socket.SHUT_WR)


def _rest(connection: socket.socket) -> bytes:
    received = b""
    connection.settimeout(_SILENCE_S)
    with suppress(ConnectionError):
        while True:
            try:
                more = connection.recv(65536)
            except TimeoutError:  # half a frame: the rest of it will not come
                assert connection.gettimeout() == _SILENCE_S
                connection.settimeout(20)
                _say_no_more(connection)
                continue
            if not more:
                break
            received += more
    return received


def _parsed(stream: io.BytesIO) -> Iterator[tuple[int, bytes]]:
    while len(head := stream.read(2)) == 2:
        size = head[1] & 127
        if size > 125:
            size = int.from_bytes(stream.read(2 if size == 126 else 8), "big")
        if len(payload := stream.read(size)) == size:  # else a reset was faster
            yield head[0] & 15, payload
