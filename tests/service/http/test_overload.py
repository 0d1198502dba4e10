"""Deadlines, turns and slow readers as callers see them."""

import asyncio
import json
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from socket import SHUT_RDWR, SO_LINGER, SO_RCVBUF, SOL_SOCKET
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from service.engine import terms
from service.http.keys import new_key
from tests.service.serving import (
    Service,
    contents,
    eventually,
    held,
    listening,
    running,
    settings,
)

_LONG = {"model": "letters", "max_tokens": 60_000, "seed": 1}


@contextmanager
def _slow(service: Service, model: str = "letters", run_s: float = 0.01) -> Iterator[None]:
    """Every run of the model takes so long."""
    runner = service.app.state.models[model].engine._slots.runner
    fast = runner.run

    def run(*args: Any, **kwargs: Any) -> Any:
        time.sleep(run_s)
        return fast(*args, **kwargs)

    runner.run = run
    try:
        yield
    finally:
        del runner.run


@pytest.fixture(scope="module")
def heard(letters: Path) -> Iterator[tuple[str, FastAPI]]:
    """A real server."""
    with listening(settings(letters)) as running:
        yield running


@pytest.fixture(scope="module")
def careful(inks: Path) -> Iterator[tuple[str, FastAPI]]:
    """One that looks after its callers at every step."""
    with listening(settings(inks, chunk_steps=1, first_chunk_steps=1)) as running:
        yield running


@pytest.mark.in_process
def test_a_whole_answer_past_the_deadline_of_its_request_is_a_504(scan: Service) -> None:
    service = scan
    with _slow(service):
        began_s = time.monotonic()
        late = service.post(**_LONG, deadline_s=0.3)
        assert late.status_code == 504
        assert late.json()["error"]["code"] == "deadline_exceeded"
        assert time.monotonic() - began_s < 5
        assert eventually(lambda: service.metric("requests_running") == 0)


def test_a_stream_past_its_deadline_ends_with_what_it_has_and_where_to_go_on(
    letters: Path,
) -> None:
    with running(settings(letters)) as service:
        whole = service.text(prompt="ab", max_tokens=4_000, seed=5)
        with _slow(service):
            *events, last = service.events(prompt="ab", max_tokens=4_000, seed=5, deadline_s=0.5)
        assert last["error"]["code"] == "deadline_exceeded"
        begun = "".join(event["choices"][0]["text"] for event in events)
        assert 0 < len(begun) < len(whole)
        assert begun + service.text(**last["resume"]) == whole


@pytest.mark.parametrize("keyed", [False, True])
def test_a_request_may_not_take_longer_than_the_service_allows(
    letters: Path, tmp_path: Path, keyed: bool
) -> None:
    file = tmp_path / "keys.toml"
    key = new_key(file, "me")
    chosen = settings(letters, deadline_s=0.3, keys=file if keyed else None)
    chosen = chosen.model_copy(update={"request_timeout_s": 60.0})
    with running(chosen) as service, _slow(service):
        service.client.headers["authorization"] = f"Bearer {key}"
        began_s = time.monotonic()
        assert service.post(**_LONG, deadline_s=1000.0).status_code == 504
        assert time.monotonic() - began_s < 30
        assert service.post(max_tokens=5).status_code == 200


@pytest.mark.parametrize("value", [0, -1, "soon", 1e400])
def test_a_deadline_is_a_number_of_seconds(scan: Service, value: object) -> None:
    body = '{"model": "letters", "deadline_s": %s}'
    text = "1e400" if value == 1e400 else repr(value).replace("'", '"')
    given = scan.client.post(
        "/v1/completions", content=body % text, headers={"content-type": "application/json"}
    )
    assert given.status_code == 400
    assert given.json()["error"]["param"] == "deadline_s"


def test_a_request_that_others_would_hold_up_is_refused_with_a_time(letters: Path) -> None:
    chosen = settings(letters, slots=1, max_wait_s=1e-9)
    with running(chosen) as service, ThreadPoolExecutor(2) as pool:
        with held(service.app.state.models["letters"]):
            runs = pool.submit(service.post, max_tokens=200)
            assert eventually(lambda: service.metric("requests_running") == 1)
            waits = pool.submit(service.post, max_tokens=200)
            assert eventually(lambda: service.metric("requests_waiting") == 1)
            refused = service.post(max_tokens=200)
            assert refused.status_code == 503
            assert refused.json()["error"]["code"] == "overloaded"
            assert int(refused.headers["retry-after"]) >= 1
        assert [one.result().status_code for one in (runs, waits)] == [200, 200]


def test_one_request_is_answered_while_another_caller_has_a_hundred(letters: Path) -> None:
    chosen = settings(letters, slots=2, queue_size=500, max_wait_s=1e6)
    with listening(chosen) as (url, app):
        engine = app.state.models["letters"].engine

        def ask(address: str, **body: Any) -> float:
            """When it was answered."""
            transport = httpx.HTTPTransport(local_address=address)
            with httpx.Client(transport=transport, timeout=240) as client:
                answer = client.post(f"{url}/v1/completions", json={"model": "letters"} | body)
                assert answer.status_code == 200
                return time.monotonic()

        with ThreadPoolExecutor(20) as pool:
            with held(app.state.models["letters"]):
                many = [pool.submit(ask, "127.0.0.2", max_tokens=400, n=5) for _ in range(20)]
                assert eventually(lambda: len(engine._slots.schedule.waiting) > 60)
            began_s = time.monotonic()
            one_s = ask("127.0.0.1", max_tokens=40) - began_s
            last_s = max(other.result() for other in many) - began_s
        assert one_s < last_s / 5


def test_a_stream_nobody_reads_pauses_and_others_go_on(letters: Path) -> None:
    with listening(settings(letters, slots=1, max_tokens=10**7, max_request_steps=10**7)) as (
        url,
        app,
    ):
        engine = app.state.models["letters"].engine
        body = {"model": "letters", "max_tokens": 5_000_000, "stream": True, "seed": 1}
        least = httpx.HTTPTransport(socket_options=[(SOL_SOCKET, SO_RCVBUF, 4096)])
        with httpx.Client(transport=least, timeout=60) as client:
            with client.stream("POST", f"{url}/v1/completions", json=body) as unread:
                assert unread.status_code == 200
                assert eventually(lambda: any(t.job.paused for t in engine._slots.schedule.waiting))
                written = engine._slots.schedule.waiting[0].job.written
                assert written < 500_000
                quick = httpx.post(f"{url}/v1/completions", json={"model": "letters"}, timeout=60)
                assert quick.status_code == 200
            schedule = engine._slots.schedule
            assert eventually(lambda: not schedule.waiting and not schedule.slots)


@pytest.mark.in_process
def test_who_reads_on_after_its_stream_has_paused_misses_nothing(scan: Service) -> None:
    """Of a real connection the system would keep all of this for whoever does not read."""
    schedule = scan.app.state.models["letters"].engine._slots.schedule
    body = {"model": "letters", "max_tokens": 4_000, "seed": 3}
    asked = json.dumps(body | {"stream": True}).encode()
    left = iter([{"type": "http.request", "body": asked, "more_body": False}])
    told = list[bytes]()

    async def receive() -> Any:
        message = next(left, None)
        return message if message is not None else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        told.append(message.get("body", b""))
        if len(told) == 3:
            async with asyncio.timeout(20):
                while not any(ticket.job.paused for ticket in schedule.waiting):
                    await asyncio.sleep(0.001)

    scope = {"type": "http", "method": "POST", "path": "/v1/completions", "query_string": b""}
    scope |= {
        "headers": [(b"host", b"x"), (b"content-type", b"application/json")],
        "asgi": {"version": "3.0"},
    }
    scan.client.portal.call(scan.app, scope, receive, send)
    events = contents(b"".join(told).decode())
    assert "".join(event["choices"][0]["text"] for event in events) == scan.text(**body)


def test_a_page_of_ink_that_has_begun_is_not_refused_its_next_line(inks: Path) -> None:
    chosen = settings(inks, slots=1, max_wait_s=1e-6)
    with running(chosen) as service:
        page = {"text": "\n".join(["ab"] * 4), "stream": True}
        done = threading.Event()

        def crowd() -> None:
            while not done.is_set():
                service.client.post("/v1/handwriting", json={"text": "cc", "format": "json"})

        with ThreadPoolExecutor(3) as pool:
            others = [pool.submit(crowd) for _ in range(3)]
            begun = list[str]()
            for _ in range(200):
                answer = service.client.post("/v1/handwriting", json=page)
                assert answer.status_code in (200, 503)
                if answer.status_code == 200:
                    begun.append(answer.text)
                if len(begun) == 3:
                    break
            done.set()
            for other in others:
                other.result()
        assert begun
        for text in begun:  # never refused after a line of it was written
            assert "overloaded" not in text
            assert text.count('"finish_reason"') == 4


@pytest.mark.parametrize("unread", [0, 2])
def test_a_session_whose_client_has_gone_gives_its_slot_back_within_a_chunk(
    heard: tuple[str, FastAPI], unread: int
) -> None:
    url, app = heard
    service = Service(app, client=None)
    before = service.metric("steps_total")
    with _slow(service, run_s=0.05):
        with connect(f"{url.replace('http', 'ws')}/v1/online") as socket:
            socket.send(json.dumps({"model": "letters"}))
            socket.recv(timeout=20)
            socket.send(json.dumps({"write": 4096}))
            assert eventually(lambda: service.metric("requests_running") == 1)
            for _ in range(unread):
                socket.send(json.dumps({"write": 1}))
            if unread:  # what comes behind them is not read either
                socket.socket.shutdown(SHUT_RDWR)
            else:
                linger = struct.pack("ii", 1, 0)  # a reset
                socket.socket.setsockopt(SOL_SOCKET, SO_LINGER, linger)
            socket.socket.close()
        assert eventually(lambda: service.metric("requests_running") == 0)
    assert service.metric("steps_total") < before + 3000


@pytest.mark.parametrize(("drain_s", "written"), [(20, 1024), (0, 4096)])
def test_a_session_that_answers_when_the_service_ends_says_where_it_stands(
    letters: Path, drain_s: int, written: int
) -> None:
    with ExitStack() as open_still:
        with listening(settings(letters, drain_timeout_s=drain_s)) as (url, app):
            service = Service(app, client=None)
            socket = open_still.enter_context(connect(f"{url.replace('http', 'ws')}/v1/online"))
            socket.send(json.dumps({"model": "letters"}))
            socket.recv(timeout=20)
            open_still.enter_context(_slow(service, run_s=0.015))
            socket.send(json.dumps({"write": written}))  # 4096 take some two seconds
            assert eventually(lambda: service.metric("requests_running") == 1)
        said = []
        with suppress(ConnectionClosed):
            while True:
                said.append(json.loads(socket.recv(timeout=20)))
        assert socket.close_code == 1012
    *answers, last = said
    assert last.keys() == ({"closing", "state"} if drain_s > 2 else {"error", "state"})
    assert [len(answer["bytes"]) for answer in answers] == [written] * (drain_s > 2)


_OWN = {"strokes": [[[5 * i, 20 * (i % 2)] for i in range(600)]], "text": 5 * "keel "}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/models/letters/attest", {}),
        ("/v1/styles", _OWN),
        ("/v1/handwriting", {"text": "a", "style": _OWN}),
        ("/v1/handwriting", {"text": "a", "style": _OWN, "stream": True}),
        ("/v1/read", {"strokes": _OWN["strokes"]}),
    ],
    ids=["attest", "styles", "page", "streamed page", "read"],
)
def test_what_runs_before_an_answer_ends_with_its_client(
    careful: tuple[str, FastAPI], path: str, body: dict[str, Any]
) -> None:
    models = {"/v1/models/letters/attest": "letters", "/v1/read": "squint"}
    model = models.get(path, "scrawl")
    url, app = careful
    service = Service(app, client=None)
    with _slow(service, model, run_s=0.05):
        before = service.metric("steps_total", model=model)
        with closing(HTTPConnection(url.removeprefix("http://"))) as client:
            client.request("POST", path, json.dumps(body), {"content-type": "application/json"})
            # However slow the machine is, it leaves when something has been done for it.
            assert eventually(lambda: service.metric("steps_total", model=model) > before)
        assert eventually(lambda: service.metric("requests_running", model=model) == 0)
        rows = 8 if path.endswith("attest") else 1  # side by side, at most
        assert service.metric("steps_total", model=model) - before < 20 * rows


def test_the_time_of_a_session_begins_with_its_first_message(
    inks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stroke = [[[5 * i, 20 * (i % 2)] for i in range(40)]]
    opening = {"model": "scrawl", "text": "a", "style": {"strokes": stroke, "text": "ab"}}
    long_ago = SimpleNamespace(monotonic=lambda: time.monotonic() - 60)
    with running(settings(inks, deadline_s=30)) as service, ExitStack() as open_still:
        with monkeypatch.context() as then:
            then.setattr(terms, "time", long_ago)
            online = service.client.websocket_connect("/v1/online")
            socket = open_still.enter_context(online)
        socket.send_json(opening)
        assert socket.receive_json()["model"] == "scrawl"
