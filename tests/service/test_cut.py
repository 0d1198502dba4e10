"""What one process was at when it ended another goes on with, byte for byte, point for point."""

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.service.processes import Process, Stream, started
from tests.service.serving import ask, contents, eventually

_TEXT = {"model": "letters", "prompt": "Zoë", "n": 2, "seed": 7, "stop": ["never said"]}
_INK = {"model": "scrawl", "text": "a word in a line of many\n" * 30, "seed": 7, "width": 300}
_MORE = 60  # bytes that are written elsewhere
_SOCKETS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"model": "letters", "seed": 2}, {"bytes": [73, 116]}),
    ({"model": "scrawl", "seed": 2, "text": "keel over"}, {"point": [40.5, 7, 0]}),
]


@pytest.fixture(scope="module")
def other(inks: Path) -> Iterator[Process]:
    """A replica of the service that is ended."""
    with started(inks) as service:
        yield service


def _events(service: Process, path: str, **body: Any) -> list[dict[str, Any]]:
    answer = httpx.post(service.url + path, json=body | {"stream": True}, timeout=60)
    assert answer.status_code == 200, answer.text
    return contents(answer.text)


def _resume(event: dict[str, Any]) -> dict[str, Any] | None:
    found: dict[str, Any] | None = (event.get("choices") or [event])[0].get("resume")
    return found


def _check_text(events: list[dict[str, Any]], asked: int, other: Process) -> None:
    """Each choice up to its last token, gone on with elsewhere, is that of an answer never cut."""
    for index in range(2):
        mine = [e for e in events if (e.get("choices") or [e])[0]["index"] == index]
        while (resume := _resume(mine[-1])) is None:
            mine.pop()
        so_far = "".join(e["choices"][0]["text"] for e in mine if "choices" in e)
        written = asked - resume["max_tokens"]
        body = _TEXT | resume | {"max_tokens": _MORE}
        rest = _events(other, "/v1/completions", **body)
        text = so_far + "".join(e["choices"][0]["text"] for e in rest)
        whole = other.post(**_TEXT, max_tokens=written + _MORE).json()["choices"][index]
        assert text == whole["text"]


def _check_ink(events: list[dict[str, Any]], other: Process) -> None:
    """The lines before the last token, and elsewhere those from there on, are those of a page."""
    resume = [found for event in events if (found := _resume(event))][-1]
    first = resume["first_line"]
    before = [e for e in events if e.get("line", first) < first]
    rest = _events(other, "/v1/handwriting", **_INK | resume)
    whole = _events(other, "/v1/handwriting", **_INK)
    assert _lines(before + rest) == _lines(whole)


def _lines(events: list[dict[str, Any]]) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for event in events:
        if "points" in event:
            found.setdefault(event["line"], []).extend(event["points"])
    return found


def _has_tokens(stream: Stream, count: int) -> bool:
    return sum('"resume"' in event for event in list(stream.events)) >= count


@pytest.mark.long
def test_after_kill_9_streams_go_on_elsewhere(inks: Path, other: Process) -> None:
    asked = 10_000_000
    with started(inks) as service:
        text = Stream(service, **_TEXT, max_tokens=asked, resume=True)
        ink = Stream(service, "/v1/handwriting", **_INK, resume=True)
        assert eventually(lambda: _has_tokens(text, 6) and _has_tokens(ink, 3))
        service.tell(signal.SIGKILL)
        written, drawn = text.end(), ink.end()
    assert "[DONE]" not in written + drawn
    _check_text([json.loads(event) for event in written], asked, other)
    _check_ink([json.loads(event) for event in drawn], other)


def test_what_a_service_ends_it_hands_out_with_tokens(inks: Path, other: Process) -> None:
    asked = 10_000_000
    with started(inks, drain_timeout_s=0) as service, ExitStack() as stack:
        sockets = [stack.enter_context(_opened(service, opening)) for opening, _ in _SOCKETS]
        for socket, (_, message) in zip(sockets, _SOCKETS, strict=True):
            ask(socket, message)
        text = Stream(service, **_TEXT, max_tokens=asked)  # nobody asked for tokens
        ink = Stream(service, "/v1/handwriting", **_INK)
        service.tell(signal.SIGTERM)
        states = [_state_of_the_end(socket) for socket in sockets]
        *written, done = text.end()
        *drawn, done_too = ink.end()
        assert service.ended() == 0
    assert done == done_too == "[DONE]"
    events = [json.loads(event) for event in written]
    assert [(e["error"]["code"], e["index"]) for e in events[-2:]] == [
        ("not_ready", i) for i in (0, 1)
    ]
    _check_text(events, asked, other)
    events = [json.loads(event) for event in drawn]
    assert events[-1].keys() == {"error", "resume"}
    _check_ink(events, other)
    for state, (opening, message) in zip(states, _SOCKETS, strict=True):
        _check_session(state, opening, message, other)


@contextmanager
def _opened(service: Process, opening: dict[str, Any]) -> Iterator[ClientConnection]:
    with connect(f"{service.url.replace('http', 'ws')}/v1/online") as socket:
        facts = ask(socket, opening)
        assert facts["model"] == opening["model"]
        yield socket


def _state_of_the_end(socket: ClientConnection) -> str:
    last = json.loads(socket.recv(timeout=20))
    with pytest.raises(ConnectionClosed) as closed:
        socket.recv(timeout=20)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1012
    state: str = last["state"]
    return state


def _check_session(
    state: str, opening: dict[str, Any], message: dict[str, Any], other: Process
) -> None:
    """Going on gives what a session gives that has never been interrupted."""
    again = {n: v for n, v in opening.items() if n != "seed"} | {"state": state}
    with _opened(other, opening) as whole, _opened(other, again) as rest:
        ask(whole, message)
        for following in ({"write": 7}, message, {"write": 5}):
            assert ask(rest, following) == ask(whole, following)
