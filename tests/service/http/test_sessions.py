"""A session of `/v1/online` goes on exactly where it stood, also when the service ends."""

import json
import logging
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from websockets.sync.client import connect

from service.http import record
from service.http.sockets import WebSocketConnection
from tests.service.serving import eventually, listening, running, settings
from tests.service.writing import InkService, Session, online

_RESTART = 1012
_OPENINGS: dict[str, dict[str, Any]] = {
    "text": {"model": "letters"},
    "ink": {"model": "scrawl", "text": "keel over", "origin": [32, 70]},
    "a hand": {"model": "scrawl", "text": "keel", "style": "upright", "line_height": 40},
}
_READ: dict[str, dict[str, Any]] = {"text": {"bytes": [73, 116]}, "ink": {"point": [40.25, 71, 0]}}


def _script(name: str) -> list[dict[str, Any]]:
    read = _READ["text" if name == "text" else "ink"]
    return [read, {"write": 3}, {"write": 1}, read, {"write": 5}, {"write": 2}]


def _again(opening: dict[str, Any], token: str) -> dict[str, Any]:
    return {n: v for n, v in opening.items() if n not in ("seed", "style")} | {"state": token}


@pytest.mark.parametrize("name", [*_OPENINGS])
def test_a_session_goes_on_from_every_message(pen: InkService, name: str) -> None:
    opening, script = _OPENINGS[name] | {"seed": 8}, _script(name)
    tokens, answers = [], []
    with online(pen, **opening) as session:
        for message in script:
            tokens.append(session.ask(state=True)["state"])
            answers.append(session.ask(**message))
    for number, token in enumerate(tokens):
        with online(pen, **_again(opening, token)) as session:
            assert [session.ask(**message) for message in script[number:]] == answers[number:]


def test_a_text_that_has_ended_stays_so(ink: InkService) -> None:
    opening = {"model": "scrawl", "seed": 4, "text": "a", "bias": 1}
    with online(ink, **opening) as session:
        assert session.ask(write=400)["ended"]
        token = session.ask(state=True)["state"]
    # What a point is read after would be some steps past what was shown.
    for message in ({"write": 1}, {"point": [0, 0, 1]}):
        with online(ink, **_again(opening, token)) as session:
            assert "has ended" in session.ask(**message)["error"]["message"]


def test_a_session_goes_on_as_a_completion_and_the_other_way_round(pen: InkService) -> None:
    with online(pen, model="letters", seed=6) as session:
        session.ask(write=8)
        token = session.ask(state=True)["state"]
        expected = bytes(session.ask(write=20)["bytes"])
    body = {"model": "letters", "max_tokens": 20, "state": token, "return_state": True}
    choice = pen.client.post("/v1/completions", json=body).json()["choices"][0]
    # What it drew may be no text, and its end the beginning of a character.
    assert choice["text"] == getincrementaldecoder("utf-8")("replace").decode(expected)
    with online(pen, model="letters", seed=6) as session:
        session.ask(write=8 + 20)
        expected = bytes(session.ask(write=9)["bytes"])
    with online(pen, model="letters", state=choice["state"]) as session:
        assert bytes(session.ask(write=9)["bytes"]) == expected


def test_the_first_point_is_as_far_as_it_is_from_where_the_line_begins(ink: InkService) -> None:
    told = list[float]()
    for x in (30, 90):
        with online(ink, model="scrawl", text="keel", seed=1, origin=[30, 90]) as session:
            told.append(session.ask(point=[x, 90, 0])["pen_up"])
    assert told[0] != told[1]


def test_the_middle_of_a_line_is_no_hand(ink: InkService) -> None:
    with online(ink, model="scrawl", text="keel") as session:
        session.ask(write=3)
        token = session.ask(state=True)["state"]
    refused = ink.post(text="a", state=token)
    assert refused.status_code == 400
    assert "within a line" in refused.json()["error"]["message"]
    refused = ink.post(text="a", style=token)
    assert refused.status_code == 400
    error = refused.json()["error"]
    assert (error["param"], error["message"].split(" of ")[0]) == (
        "style",
        "style stands within a line",
    )


def test_a_session_has_one_hand(ink: InkService) -> None:
    with ink.client.websocket_connect("/v1/online") as socket:
        session = Session(socket)
        answer = session.ask(model="scrawl", state=ink.token(), style="upright")
        assert answer["error"]["param"] == "style"
        assert session.closed() == 1008


@pytest.fixture
def first(folder_of: Callable[..., Path], name: str) -> Iterator[InkService]:
    """A service that a test may spoil, of the model that it opens a session with."""
    with running(settings(folder_of(_OPENINGS[name]["model"]))) as started:
        yield InkService(started.app, started.client)


@pytest.fixture(scope="module")
def second(inks: Path) -> Iterator[InkService]:
    """Another of the same models, which goes on."""
    with running(settings(inks)) as started:
        yield InkService(started.app, started.client)


def _answers(service: InkService, opening: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """What a session says that nothing interrupts."""
    with online(service, **opening) as session:
        return [session.ask(**message) for message in _script(name)]


@pytest.mark.parametrize("name", [*_OPENINGS])
def test_a_service_that_ends_hands_out_where_sessions_stand(
    first: InkService, second: InkService, name: str
) -> None:
    opening, script = _OPENINGS[name] | {"seed": 8}, _script(name)
    expected = _answers(second, opening, name)
    with online(first, **opening) as session:
        answers = [session.ask(**message) for message in script[:3]]
        first.client.portal.call(first.app.state.sessions.end)
        last = json.loads(session._socket.receive_text())
        assert last.keys() == {"closing", "state"}
        assert session.closed() == _RESTART
    with online(second, **_again(opening, last["state"])) as session:
        answers += [session.ask(**message) for message in script[3:]]
    assert answers == expected
    with first.client.websocket_connect("/v1/online") as socket:  # one that comes too late
        assert json.loads(socket.receive_text()).keys() == {"closing"}
        assert Session(socket).closed() == _RESTART
    assert eventually(lambda: len(first.app.state.sessions) == 0)


def test_a_client_that_answers_pings_is_asked_again_and_again_and_stays(
    letters: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one whose answer is not heard nothing more would be asked, and the socket be closed."""
    asked: list[WebSocketConnection] = []
    ask = WebSocketConnection.send_keepalive_ping

    def noted(connection: WebSocketConnection) -> None:
        asked.append(connection)
        ask(connection)

    monkeypatch.setattr(WebSocketConnection, "send_keepalive_ping", noted)
    often = partial(uvicorn.Config, ws_ping_interval=0.01)
    monkeypatch.setattr("service.server.uvicorn.Config", often)
    with (
        listening(settings(letters)) as (url, _),
        connect(f"ws{url.removeprefix('http')}/v1/online") as socket,
    ):
        socket.send(json.dumps({"model": "letters", "seed": 6}))
        assert json.loads(socket.recv())["seed"] == 6
        assert eventually(lambda: len(asked) > 3)
        socket.send(json.dumps({"write": 2}))
        assert len(json.loads(socket.recv())["bytes"]) == 2


_BREAKS = {"fault": 1008, "stop": _RESTART, "rule": 1008}


@pytest.mark.parametrize("how", [*_BREAKS])
@pytest.mark.parametrize("name", [*_OPENINGS])
def test_a_message_that_fails_leaves_the_session_where_it_stood(
    first: InkService, second: InkService, name: str, how: str
) -> None:
    opening, script = _OPENINGS[name] | {"seed": 8}, _script(name)
    expected = _answers(second, opening, name)
    with online(first, **opening) as session:
        answers = [session.ask(**message) for message in script[:3]]
        before = session.ask(state=True)["state"]
        engine = first.app.state.models[opening["model"]].engine
        if how == "stop":
            engine.tell_to_stop()
        elif how == "fault":
            engine._slots.runner.run = None  # not callable: a run raises
        failed = session.ask(**(script[3] if how != "rule" else {"write": -1}))
        assert failed.keys() == {"error", "state"}
        assert failed["state"] == before
        assert session.closed() == _BREAKS[how]
    with online(second, **_again(opening, failed["state"])) as session:
        answers += [session.ask(**message) for message in script[3:]]
    assert answers == expected


@pytest.mark.parametrize("name", [*_OPENINGS])
def test_so_does_one_that_is_cut_in_the_middle(
    first: InkService, second: InkService, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Which costs the steps that it ran."""
    opening, long = _OPENINGS[name] | {"seed": 8}, {"write": 400}
    with online(second, **opening) as session:
        session.ask(write=3)
        expected = session.ask(**long)
    with caplog.at_level(logging.INFO, record.log.name), online(first, **opening) as session:
        session.ask(write=3)
        engine = first.app.state.models[opening["model"]].engine
        run = engine._slots.runner.run

        def run_and_stop(*args: Any, **more: Any) -> Any:
            engine.tell_to_stop()
            return run(*args, **more)

        engine._slots.runner.run = run_and_stop
        failed = session.ask(**long)
        assert failed["error"]["code"] == "not_ready"
        assert session.closed() == _RESTART
    (line,) = (r.message for r in caplog.records if r.name == record.log.name)
    assert 4 < json.loads(line)["steps"] < 400
    with online(second, **_again(opening, failed["state"])) as session:
        assert session.ask(**long) == expected
