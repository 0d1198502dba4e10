"""Binary messages of `/v1/online` say what JSON says, and are answered with the same numbers."""

import struct
from typing import Any

import numpy as np
import pytest
from starlette.testclient import WebSocketTestSession

from service.frames import packed
from tests.kinds.waves.service import WAVES
from tests.service.writing import InkService, Session, online

_TEXT = {"model": "letters", "seed": 4}
_INK = {"model": "scrawl", "seed": 4, "text": "keel", "origin": [32, 70]}


def _socket(session: Session) -> WebSocketTestSession:
    return session._socket


def _ask(session: Session, frame: bytes) -> np.ndarray:
    _socket(session).send_bytes(frame)
    return np.frombuffer(_socket(session).receive_bytes(), "<f4")


def test_bytes_are_answered_with_what_json_has_in_single_precision(pen: InkService) -> None:
    with online(pen, **_TEXT) as one, online(pen, **_TEXT) as other:
        for sent in (b"I", b"t rained", "ë".encode()):
            expected = one.ask(bytes=list(sent))
            found = _ask(other, sent)
            assert found.shape == (257,)
            assert np.abs(found[:256] - expected["log_probabilities"]).max() < 2e-6
            assert found[256] == expected["step"]
        # Either may be said at any time.
        assert one.ask(write=9) == other.ask(write=9)
        assert _ask(one, b"a").tolist() == _ask(other, b"a").tolist()


def test_a_point_is_answered_with_the_numbers_of_its_mixture(pen: InkService) -> None:
    with online(pen, **_INK) as one, online(pen, **_INK) as other:
        for point in ((40.25, 71, 0), (41.5, 69.75, 1)):
            expected = one.ask(point=list(point))
            numbers = [expected["pen_up"]]
            for part in expected["mixture"]:
                numbers += [part["weight"], *part["mean"], *part["sigma"], part["rho"]]
            numbers += [expected["character"], expected["step"]]
            found = _ask(other, struct.pack("<3f", *point))
            assert found.tolist() == np.array(numbers, np.float32).tolist()
        assert one.ask(write=2) == other.ask(write=2)


@pytest.mark.parametrize(
    ("opening", "frame", "reason"),
    [
        (_TEXT, b"", "bytes"),
        (_TEXT, bytes(4097), "bytes"),
        (_INK, b"", "point"),
        (_INK, bytes(11), "11 bytes; point are float32, 4 bytes each"),
        (_INK, bytes(8), "point"),
        (_INK, bytes(16), "point"),
        (_INK, struct.pack("<3f", float("nan"), 0, 0), "point"),
        (_INK, struct.pack("<3f", 0, float("inf"), 0), "point"),
    ],
)
def test_a_broken_rule_is_told_in_json(
    ink: InkService, opening: dict[str, Any], frame: bytes, reason: str
) -> None:
    with online(ink, **opening) as session:
        _socket(session).send_bytes(frame)
        assert reason in _socket(session).receive_json()["error"]["message"]
        assert session.closed() == 1008


def test_no_session_is_opened_by_one(ink: InkService) -> None:
    with ink.client.websocket_connect("/v1/online") as socket:
        socket.send_bytes(b'{"model": "scrawl"}')
        told = socket.receive_json()["error"]["message"]
    assert told == "the first message must be JSON text: it names a model"


def test_numbers_stand_in_the_order_of_the_json() -> None:
    answer = {"a": np.array([1.5, 2]), "b": [{"c": 3, "d": [4.0, 5]}], "e": True, "f": 6}
    assert np.frombuffer(packed(answer), "<f4").tolist() == [1.5, 2, 3, 4, 5, 1, 6]


def test_a_kind_need_not_have_any() -> None:
    assert WAVES.frame is None


def test_they_are_described(ink: InkService) -> None:
    document = ink.client.get("/asyncapi.json").json()
    messages, heard = document["components"]["messages"], document["operations"]["hear"]["messages"]
    said = {"TextSaidFrame": "`bytes` alone, as uint8", "InkSaidFrame": "`point` alone, as float32"}
    for name, summary in said.items():
        assert summary in messages[name]["summary"]
        assert messages[name]["contentType"] == "application/octet-stream"
        assert {"$ref": f"#/channels/online/messages/{name}"} in heard
    assert "Numbers" in str(document["operations"]["answer"]["messages"])
