"""A session that breaks a rule is told which, and ends."""

from typing import Any

import pytest
from starlette.testclient import WebSocketDenialResponse

from tests.service.writing import InkService, Session, online

_LANGUAGE, _INK = {"model": "letters"}, {"model": "scrawl"}
_LINE = [[[x, x % 7] for x in range(200)]]


@pytest.mark.parametrize(
    ("opening", "message", "reason"),
    [
        ({"model": "gpt"}, None, "this service has: letters, scrawl"),
        ({}, None, "model"),
        ({"model": 5}, None, "model"),
        (_INK | {"surprise": 1}, None, "surprise"),
        (_INK | {"text": "n漢"}, None, "'漢'"),
        (_INK | {"text": "x" * 61}, None, "text has 61 characters; at most 60 are taken"),
        (_INK | {"text": "a\ud800"}, None, "character 1 is half of a surrogate pair"),
        (_INK | {"text": "…" * 20 + "a"}, None, "text has 61 characters, ellipses"),
        (_INK | {"style": {"text": "…" * 60, "strokes": _LINE}}, None, "style.text has 180"),
        (_INK | {"bias": 6}, None, "bias"),
        (_INK | {"bias": float("nan")}, None, "bias"),
        (_INK | {"line_height": 3}, None, "line_height"),
        (_INK | {"origin": [1]}, None, "origin"),
        (_INK | {"origin": [1e300, 0]}, None, "origin"),
        (_INK | {"style": "nobody"}, None, "upright, hasty"),
        (_INK | {"style": {"text": "a", "strokes": [[[0, 0], [1, "x"]]]}}, None, "style.strokes"),
        (_INK | {"seed": 2**63}, None, "seed"),
        (_LANGUAGE, {"bytes": []}, "bytes"),
        (_LANGUAGE, {"bytes": [256]}, "bytes"),
        (_LANGUAGE, {"bytes": [65] * 4097}, "bytes"),
        (_LANGUAGE, {"bytes": "A"}, "bytes"),
        (_LANGUAGE, {"point": [1, 2, 0]}, "unknown field: point"),
        (_LANGUAGE, {}, "either bytes or write"),
        (_LANGUAGE, {"bytes": [65], "write": 1}, "either bytes or write"),
        (_LANGUAGE, {"write": 0}, "write"),
        (_LANGUAGE, {"write": 4097}, "write"),
        (_LANGUAGE, {"write": True}, "write"),
        (_LANGUAGE, {"state": 1}, 'state is asked for by {"state": true}'),
        (_INK, {"state": False}, 'state is asked for by {"state": true}'),
        (_INK, {"state": True, "write": 3}, 'state is asked for by {"state": true}'),
        (_INK, {"bytes": [65]}, "unknown field: bytes"),
        (_INK, {}, "either point or write"),
        (_INK, {"point": [1, 2, 0], "write": 1}, "either point or write"),
        (_INK, {"point": [1, 2]}, "point"),
        (_INK, {"point": [1, 2, 0, 0]}, "point"),
        (_INK, {"point": [float("nan"), 2, 0]}, "point"),
        (_INK, {"point": [float("inf"), 2, 0]}, "point"),
        (_INK, {"point": [1e300, 2, 0]}, "point"),
        (_INK, {"point": [1_000_001, 2, 0]}, "point"),
        (_INK, {"point": [1, -1_000_001, 0]}, "point"),
        (_INK, {"pont": [1, 2, 0]}, "pont"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_a_broken_rule_is_named_and_ends_the_session(
    ink: InkService, opening: dict[str, Any], message: dict[str, Any] | None, reason: str
) -> None:
    with online(ink, **(opening if message is not None else {})) as session:
        answer = session.ask(**(opening if message is None else message))
        # Where it stood before, once it is open.
        assert answer.keys() == ({"error"} if message is None else {"error", "state"})
        assert answer["error"].keys() == {"message", "type", "param", "code"}
        assert answer["error"]["type"] == "invalid_request_error"
        assert reason in answer["error"]["message"]
        assert session.closed() == 1008


@pytest.mark.parametrize("opening", [_LANGUAGE, _INK, _INK | {"surprise": 1}])
def test_a_model_that_is_not_ready_opens_no_session(
    ink: InkService, monkeypatch: pytest.MonkeyPatch, opening: dict[str, Any]
) -> None:
    monkeypatch.setattr(ink.app.state.models[opening["model"]].engine, "ready", False)
    with online(ink) as session:
        assert session.ask(**opening)["error"]["code"] == "not_ready"
        assert session.closed() == 1012


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "5", '"a"', "null", "[" * 100_000, '{"model": ' + "9" * 5000 + "}"]
)
def test_a_message_that_is_no_object_ends_the_session(ink: InkService, text: str) -> None:
    with online(ink) as session:
        assert session.ask_raw(text)["error"]["message"]
        assert session.closed() == 1008
    with online(ink, model="letters") as session:
        answer = session.ask_raw(text)
        assert answer["error"]["message"]
        assert answer["state"]
        assert session.closed() == 1008


def test_a_binary_message_ends_the_session(ink: InkService) -> None:
    with ink.client.websocket_connect("/v1/online") as socket:
        socket.send_bytes(b'{"model": "letters"}')
        assert "JSON" in socket.receive_json()["error"]["message"]
        assert Session(socket).closed() == 1008


def test_a_session_is_of_one_line_and_a_break_in_its_text_a_space(ink: InkService) -> None:
    texts = ("keel over", "keel\nover", "keel\r\nover", "keel\u2028over")
    answers = []
    for text in texts:
        with online(ink, model="scrawl", text=text, seed=3) as session:
            answers.append(session.ask(write=40)["points"])
    assert answers == [answers[0]] * len(texts)


@pytest.mark.parametrize("path", ["/v1/elsewhere", "/static/page.js", "/docs/ui/page.js"])
def test_who_asks_elsewhere_for_a_socket_is_told_where_there_is_one(
    ink: InkService, path: str
) -> None:
    with pytest.raises(WebSocketDenialResponse) as denied, ink.client.websocket_connect(path):
        pass
    assert denied.value.status_code == 404
    assert "there is one at /v1/online" in denied.value.json()["error"]["message"]


def test_who_asks_for_no_socket_is_told_that_it_is_one(ink: InkService) -> None:
    answer = ink.client.get("/v1/online")
    assert answer.status_code == 404
    assert "/v1/online is a WebSocket" in answer.json()["error"]["message"]
