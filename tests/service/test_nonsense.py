"""Tokens that were signed with the right key, by somebody else: what no run could go on from."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from service.ink.line import InkEdge
from service.reader.model import ReaderEdge
from service.state import Edge, StateCodec
from tests.service.serving import Service
from tests.service.writing import InkService

pytestmark = pytest.mark.in_process


def _refused(service: Service | InkService, path: str, body: dict[str, Any], field: str) -> bool:
    response = service.client.post(path, json=body)
    error = response.json()["error"]
    told = (response.status_code, error["param"])
    return told == (400, field) and error["message"].endswith("is signed, but it makes no sense")


def _remade(codec: StateCodec[Any], token: str, edge: type[Edge], **changes: Any) -> str:
    """A token of another edge, whatever an edge may be."""
    moment = codec.decode(token)
    odd = edge.model_construct(**dict(moment.edge) | changes)
    return codec.encode(replace(moment, edge=odd))


@pytest.mark.parametrize("byte", [-1, 256, 2**62])
def test_a_byte_that_is_none_is_refused(scan: Service, byte: int) -> None:
    codec = scan.app.state.models["letters"].codec
    moment = codec.decode(scan.choice(max_tokens=3, return_state=True)["state"])
    state = moment.state | {"token": np.array(byte)}
    token = codec.encode(replace(moment, state=state))
    body = {"model": "letters", "max_tokens": 2, "state": token}
    assert _refused(scan, "/v1/completions", body, "state")
    with scan.client.websocket_connect("/v1/online") as socket:
        socket.send_json({"model": "letters", "state": token})
        assert "makes no sense" in socket.receive_json()["error"]["message"]
    assert scan.choice(max_tokens=3)["text"]


@pytest.mark.parametrize(
    "change",
    [{"place": (1e300, 0.0)}, {"place": (0.0, -1e300)}, {"height": 1e300}, {"advance": 1e300},
     {"reach": 1e300}],
)  # fmt: skip
def test_a_pen_that_is_nowhere_is_refused(ink: InkService, change: dict[str, Any]) -> None:
    written = ink.write(text="ab", seed=1, return_state=True)
    codec = ink.app.state.models["scrawl"].codec
    token = _remade(codec, written["state"], InkEdge, **change)
    body = {"text": "ab", "state": token, "format": "json"}
    assert _refused(ink, "/v1/handwriting", body, "state")
    with ink.client.websocket_connect("/v1/online") as socket:
        socket.send_json({"model": "scrawl", "state": token})
        assert "makes no sense" in socket.receive_json()["error"]["message"]
    assert ink.write(text="ab", seed=1)["lines"]


@pytest.mark.parametrize(
    "change",
    [{"px_per_unit": 1e300}, {"px_per_unit": 1e-300}, {"origin": (1e300, 0.0)},
     {"at": (0.0, -1e300)}, {"path": ((0.0, 0.0), (1e300, 0.0))}],
)  # fmt: skip
def test_a_line_that_is_nowhere_is_refused(ink: InkService, change: dict[str, Any]) -> None:
    strokes = [[[float(x), float(x % 7)] for x in range(40)]]
    body = {"strokes": strokes, "line_height": 20, "return_state": True}
    more = {"strokes": strokes}
    codec = ink.app.state.models["squint"].codec
    state = ink.client.post("/v1/read", json=body).json()["state"]
    token = _remade(codec, state, ReaderEdge, **change)
    assert _refused(ink, "/v1/read", more | {"state": token}, "state")
    assert ink.client.post("/v1/read", json=more | {"state": state}).status_code == 200
    assert ink.client.post("/v1/read", json=body).json()["state"] == state
