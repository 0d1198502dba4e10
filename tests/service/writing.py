"""A service to write ink with, whole or online: the usual questions to it, and moments it has never
been in."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from starlette.testclient import WebSocketTestSession
from starlette.websockets import WebSocketDisconnect

from service.ink.line import InkEdge
from service.ink.model import InkModel
from service.state import Moment
from tests.service.serving import Service, contents

Strokes = list[list[list[float]]]


def strokes_of(events: list[dict[str, Any]]) -> list[Strokes]:
    """The strokes of every line, put together from the points of a stream."""
    head, *points = events
    lines: list[Strokes] = [[] for _ in head["lines"]]
    for event in points:
        for x, y, up in event.get("points", []):
            strokes = lines[event["line"]]
            if not strokes or strokes[-1] == []:
                strokes[-1:] = [[]]
            strokes[-1].append([x, y])
            if up:
                strokes.append([])
    return [[stroke for stroke in strokes if stroke] for strokes in lines]


class InkService(Service):
    """A service whose handwriting model is `scrawl`."""

    def post(self, **body: Any) -> Any:
        """The response to a handwriting request."""
        return self.client.post("/v1/handwriting", json=body)

    def write(self, **body: Any) -> dict[str, Any]:
        """The body of a JSON answer that must be a success."""
        response = self.post(**{"format": "json"} | body)
        assert response.status_code == 200, response.text
        return response.json()

    def lines(self, **body: Any) -> list[dict[str, Any]]:
        """The lines of a JSON answer."""
        return self.write(**body)["lines"]

    def strokes(self, **body: Any) -> list[Strokes]:
        """The strokes of every line, in px."""
        return [line["strokes"] for line in self.lines(**body)]

    def events(self, **body: Any) -> list[dict[str, Any]]:
        """The events of a streamed request, `[DONE]` checked and left out."""
        response = self.post(**body, stream=True)
        assert response.status_code == 200, response.text
        assert response.headers["content-type"].startswith("text/event-stream")
        return contents(response.text)

    def streamed_strokes(self, **body: Any) -> list[Strokes]:
        """The strokes of every line of a stream."""
        return strokes_of(self.events(**body))

    @property
    def model(self) -> InkModel:
        """The model `scrawl`."""
        return self.app.state.models["scrawl"]

    def token(self, **changes: Any) -> str:
        """A signed token of the model's first moment, with something about it changed; a name of
        the state sets all of that tensor to a value."""
        state = self.model.artifact.initial_state()
        for name in changes.keys() & state.keys():
            state[name] = np.full_like(state[name], changes.pop(name))
        return self.model.codec.encode(replace(Moment(state, 0, 0, 0, InkEdge()), **changes))


class Session:
    """An open socket: what is said to it and what it answers."""

    def __init__(self, socket: WebSocketTestSession) -> None:
        self._socket = socket

    def ask(self, **message: Any) -> dict[str, Any]:
        """The answer to a message."""
        return self.ask_raw(json.dumps(message))

    def ask_raw(self, text: str) -> dict[str, Any]:
        """The answer to a text; a number JSON has no word for is a failure."""
        self._socket.send_text(text)
        return json.loads(self._socket.receive_text(), parse_constant=pytest.fail)

    def closed(self) -> int:
        """The code it is closed with, when nothing else comes before."""
        with pytest.raises(WebSocketDisconnect) as end:
            self._socket.receive_text()
        return end.value.code


@contextmanager
def online(service: Service, **opening: Any) -> Iterator[Session]:
    """A session of `/v1/online`, opened with a message if one is given."""
    with service.client.websocket_connect("/v1/online") as socket:
        session = Session(socket)
        if opening:
            facts = session.ask(**opening)
            assert facts["model"] == opening["model"], facts
        yield session
