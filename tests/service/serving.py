"""A service to talk to: the application in this process, or a real server on a free port."""

import asyncio
import json
import os
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Message, Scope
from websockets.sync.client import ClientConnection

from contract.golden import Verdict
from service.app import create_app
from service.artifact import load_artifact
from service.attestation import attest
from service.engine.runners import make_runner
from service.engine.runtime import choose_runtime
from service.models import ServedModel
from service.server import Server
from service.settings import Settings
from service.state import StateCodec
from tests.service.client import Client

KEY = "a key shared by replicas"
ELSEWHERE = "cpu-ort1.30.0-x86_64-avx2"  # no runtime of these versions
_PATIENCE_S = 30.0
_PROVIDER = os.environ.get("EVENKEEL_PROVIDER", "cpu")  # `make gpu-check` says cuda
on_cpu = pytest.mark.skipif(_PROVIDER == "cuda", reason="on a GPU the bits are those of its slots")


def settings(artifacts: Path, **changes: Any) -> Settings:
    """Settings of a small service, whose artifacts need no parity report, on the provider that the
    tests are run for; a GPU has no runner `scan`."""
    provider = "cpu" if changes.get("runner") == "scan" else _PROVIDER
    usual = {"artifacts": artifacts, "provider": provider, "threads": 1, "state_key": KEY}
    usual |= {"allow_unproved": True, "allowed_hosts": ("*",)}
    return Settings(**usual | changes)


def attested(artifact: Path, runner: str = "scan", slots: int = 4) -> Verdict:
    """What a replay of the golden vectors finds, on a runner that serves nobody."""
    loaded = load_artifact(artifact)
    runtime = choose_runtime(settings(artifact.parent, runner=runner, slots=slots))
    return attest(loaded, make_runner(loaded, runtime))


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether a condition comes true before patience ends."""
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def contents(stream: str) -> list[dict[str, Any]]:
    """The contents of server-sent events, their numbers and `[DONE]` checked and left out."""
    *events, end = stream.split("\n\n")
    assert end == ""
    fields = [dict(line.split(": ", 1) for line in event.split("\n")) for event in events]
    assert [field["id"] for field in fields] == [str(number) for number in range(len(events))]
    *data, done = (field["data"] for field in fields)
    assert done == "[DONE]"
    return [json.loads(content) for content in data]


def bearing(key: str) -> dict[str, str]:
    """The headers of whoever has this API key."""
    return {"authorization": f"Bearer {key}"}


def ask(socket: ClientConnection, message: dict[str, Any]) -> dict[str, Any]:
    """What a WebSocket answers to a message."""
    socket.send(json.dumps(message))
    answer: dict[str, Any] = json.loads(socket.recv(timeout=20))
    return answer


def told_by(application: ASGIApp, scope: Scope) -> list[Message]:
    """All that an application sends to whoever asks it for this, and says nothing more."""
    told: list[Message] = []

    async def send(message: Message) -> None:
        told.append(message)

    async def receive() -> Message:
        return {"type": "http.request"}

    asyncio.run(application(scope, receive, send))
    return told


async def unheard(answer: Response) -> None:
    """Send an answer whose client left before its first byte."""

    async def send(_: Message) -> None:
        raise OSError("nobody is there")

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    with pytest.raises(ClientDisconnect):
        await answer({"type": "http", "asgi": {"spec_version": "2.4"}}, receive, send)


class Service:
    """An application that runs, and the usual questions to it."""

    def __init__(self, app: FastAPI, client: TestClient) -> None:
        self.app = app
        self.client = client

    def post(self, **body: Any) -> Any:
        """The response to a completion request, of `letters` if it does not say."""
        return self.client.post("/v1/completions", json={"model": "letters"} | body)

    def complete(self, **body: Any) -> dict[str, Any]:
        """The body of a response that must be a success."""
        response = self.post(**body)
        assert response.status_code == 200, response.text
        return response.json()

    def choice(self, **body: Any) -> dict[str, Any]:
        """The only choice of a completion."""
        (choice,) = self.complete(**body)["choices"]
        return choice

    def text(self, **body: Any) -> str:
        """The text of the only choice."""
        return self.choice(**body)["text"]

    def events(self, **body: Any) -> list[dict[str, Any]]:
        """The events of a streamed completion, `[DONE]` checked and left out."""
        response = self.post(**body, stream=True)
        assert response.status_code == 200, response.text
        assert response.headers["content-type"].startswith("text/event-stream")
        return contents(response.text)

    def streamed_text(self, **body: Any) -> str:
        """The texts of a streamed completion with one choice, joined."""
        return "".join(e["choices"][0]["text"] for e in self.events(**body))

    def moved(self, model: str, token: str) -> str:
        """A token of this service as a replica on other hardware would have signed it."""
        served = self.app.state.models[model]
        assert served.runtime.fingerprint != ELSEWHERE
        moment = served.codec.decode(token)
        codec = StateCodec(KEY.encode(), served.artifact, ELSEWHERE, type(moment.edge))
        return codec.encode(moment)

    def metric(self, name: str, **labels: str) -> float:
        """The value of one series of `letters`, 0 if it has none yet."""
        labels = {"model": "letters"} | labels
        value = self.app.state.metrics.registry.get_sample_value(f"evenkeel_{name}", labels)
        return value or 0.0


@contextmanager
def held(model: ServedModel, *, after: int = 0) -> Iterator[None]:
    """One of which, `after` so many, no run ends until this does."""
    runner, go_on, left = model.engine._slots.runner, threading.Event(), count(after, -1)
    run = runner.run
    runner.run = lambda *given, **named: (
        (next(left) > 0 or go_on.wait(_PATIENCE_S)) and run(*given, **named)
    )
    try:
        yield
    finally:
        del runner.run
        go_on.set()


@contextmanager
def running(chosen: Settings, *, ready: bool = True) -> Iterator[Service]:
    """The application in this process; waits until its models have been attested."""
    app = create_app(chosen)
    with Client(app) as client:
        if ready:
            assert eventually(lambda: client.get("/readyz").status_code == 200)
        yield Service(app, client)


class _Hasty:
    """`asyncio` for uvicorn, which looks every 100 ms whether it is to end, and whether it may."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    def sleep(self, delay_s: float) -> Coroutine[Any, Any, None]:
        return asyncio.sleep(delay_s / 10)


uvicorn.server.asyncio = _Hasty()  # type: ignore[attr-defined]


@contextmanager
def listening(chosen: Settings) -> Iterator[tuple[str, FastAPI]]:
    """A real server on a free port of the loopback interface: its URL and its application."""
    chosen = chosen.model_copy(update={"port": 0})
    app = create_app(chosen)
    server = Server(app, chosen)
    # Its own `run` would listen to signals, which is for the main thread.
    thread = threading.Thread(target=uvicorn.Server.run, args=(server,), daemon=True)
    thread.start()
    try:
        assert eventually(lambda: server.started and app.state.models.ready)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}", app
    finally:
        server.should_exit = True
        thread.join(_PATIENCE_S)
