"""Every request is counted once, however it ends, and leaves a line in the log under the id of its
answer.
"""

import asyncio
import json
import logging
import re
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect
from websockets.sync.client import connect

from service.app import create_app
from service.engine.jobs import Piece
from service.http import record
from service.http.answers import EventStream
from service.http.record import Record, Recorder
from service.metrics import Metrics, Work
from tests.service.engine.scripted import Call
from tests.service.serving import Service, eventually, listening, running, settings
from tests.service.writing import InkService, online

_ENDLESS = {"model": "letters", "max_tokens": 50_000_000}
_ROOMY = {"max_tokens": 10**9, "max_request_steps": 10**12}
_TEXT, _INK, _ONLINE = "/v1/completions", "/v1/handwriting", "/v1/online"


class _Counted:
    """How requests ended since this was made."""

    def __init__(self, app: Any) -> None:
        metrics = app.state.metrics
        self._series = (metrics.ended, metrics.finished)
        self._before = self._all()

    def _all(self) -> Counter[tuple[str, ...]]:
        found: Counter[tuple[str, ...]] = Counter()
        for series in self._series:
            for sample in series.collect()[0].samples:
                if sample.name.endswith("_total"):
                    found[tuple(sample.labels.values())] = int(sample.value)
        return found

    def __call__(self) -> dict[tuple[str, ...], int]:
        return {
            ending: count
            for ending, count in (self._all() - self._before).items()
            if ending[0] not in ("/readyz", "/metrics")
        }


@contextmanager
def _logged(caplog: pytest.LogCaptureFixture) -> Iterator[list[dict[str, Any]]]:
    """The lines of requests, once it is over."""
    lines: list[dict[str, Any]] = []
    with caplog.at_level(logging.INFO, logger=record.log.name):
        caplog.clear()
        yield lines
    lines += [json.loads(r.message) for r in caplog.records if r.name == record.log.name]


def test_text_that_comes_to_its_end_is_counted_once(scan: Service) -> None:
    counted = _Counted(scan.app)
    scan.complete(n=3, max_tokens=5)
    scan.events(n=2, max_tokens=5)
    scan.complete(max_tokens=0)
    assert counted() == {(_TEXT, "200", ""): 3, ("letters", "length"): 6}


@pytest.mark.parametrize("stream", [False, True])
def test_ink_that_comes_to_its_end_is_counted_once(ink: InkService, stream: bool) -> None:
    counted = _Counted(ink.app)
    ink.post(text="ab\ncd", seed=1, stream=stream)
    ended = counted()
    assert ended.pop((_INK, "200", "")) == 1
    assert {model for model, _ in ended} == {"scrawl"}
    assert sum(ended.values()) == 2  # a job a line


def test_a_session_that_comes_to_its_end_is_counted_once(
    scan: Service, caplog: pytest.LogCaptureFixture
) -> None:
    counted = _Counted(scan.app)
    with _logged(caplog) as lines:
        with online(scan, model="letters") as session:
            steps = session.ask(write=3)["step"]
            token = session.ask(state=True)["state"]
        assert eventually(lambda: counted() == {(_ONLINE, "1000", ""): 1})
    (line,) = lines
    assert (line["method"], line["model"], line["steps"]) == ("WEBSOCKET", "letters", steps)
    with _logged(caplog) as lines, online(scan, model="letters", state=token) as session:
        assert session.ask(write=2)["step"] == steps + 2
    (line,) = lines
    assert line["steps"] == 2  # not those of the session before


def test_a_session_that_breaks_a_rule_is_counted_with_its_code(scan: Service) -> None:
    counted = _Counted(scan.app)
    with online(scan, model="letters") as session:
        session.ask_raw("{}")
        assert session.closed() == 1008
    assert eventually(lambda: counted() == {(_ONLINE, "1008", "invalid_request_error"): 1})


def test_codes_of_a_clients_own_count_as_one(scan: Service) -> None:
    counted = _Counted(scan.app)
    for code in (3000, 3456, 4999):
        with scan.client.websocket_connect("/v1/online") as socket:
            socket.close(code)
    assert eventually(lambda: counted() == {(_ONLINE, "3000", ""): 3})


def test_a_refused_request_is_counted_once_and_finishes_nothing(letters: Path) -> None:
    chosen = settings(letters, queue_size=2, max_body_bytes=1024, allowed_hosts=("testserver",))
    with running(chosen) as service:
        counted, ask = _Counted(service.app), service.client
        another = Call().job
        another.paused = True  # by whoever reads it: it stays in the queue
        service.app.state.models["letters"].engine.submit([another])
        service.post(max_tokens=-1)
        service.post(model="nobody")
        service.post(n=64)
        service.post(prompt="x" * 2000)
        ask.post(_TEXT, json={}, headers={"host": "elsewhere"})
        ask.delete(_TEXT)
        ask.get("/v1/models/nobody")
        ask.get("/nowhere/at/all")
        with pytest.raises(WebSocketDisconnect), ask.websocket_connect("/nowhere/at/all"):
            pass
        assert counted() == {
            (_TEXT, "400", "invalid_request_error"): 1,
            (_TEXT, "404", "model_not_found"): 1,
            (_TEXT, "503", "overloaded"): 1,
            (_TEXT, "413", "body_too_large"): 1,
            (_TEXT, "403", "forbidden"): 1,
            (_TEXT, "405", "invalid_request_error"): 1,
            ("/v1/models/{name}", "404", "model_not_found"): 1,
            ("other", "404", "unknown_url"): 2,
        }


def test_a_head_that_never_becomes_a_request_is_counted_and_logged(
    server: tuple[str, FastAPI], caplog: pytest.LogCaptureFixture
) -> None:
    url, app = server
    counted = _Counted(app)
    with _logged(caplog) as lines:
        answer = httpx.get(url, headers={"x": "x" * 100_000})
    ((path, status, code),) = counted()
    assert (path, status) == ("other", str(answer.status_code))
    assert code == answer.json()["error"]["code"]
    assert [(line["path"], line["error"]) for line in lines] == [(path, code)]


@pytest.mark.parametrize(("stream", "status"), [(False, "503"), (True, "200")])
def test_text_that_fails_is_counted_with_its_code(letters: Path, stream: bool, status: str) -> None:
    with ThreadPoolExecutor(1) as pool, running(settings(letters, **_ROOMY)) as service:
        counted = _Counted(service.app)
        asked = pool.submit(service.post, **_ENDLESS, n=2, stream=stream)
        assert eventually(lambda: service.metric("generation_tokens_total") == 0)
        assert eventually(lambda: service.metric("requests_running") == 2)
        service.app.state.models["letters"].engine.stop()
        assert "not_ready" in asked.result().text
        assert counted() == {(_TEXT, status, "not_ready"): 1, ("letters", "error"): 2}
        assert service.metric("request_seconds_count") == 0  # says nothing of how long they take


def _hang_up(url: str, path: str, body: dict[str, Any], *, stream: bool) -> None:
    """Leave after the first bytes, or after half a second without any."""
    with httpx.Client(timeout=httpx.Timeout(60, read=None if stream else 0.5)) as client:
        if stream:
            with client.stream("POST", url + path, json=body | {"stream": True}) as response:
                next(response.iter_raw())
        else:
            with pytest.raises(httpx.ReadTimeout):
                client.post(url + path, json=body)


@pytest.fixture(scope="module")
def server(inks: Path) -> Iterator[tuple[str, FastAPI]]:
    # Until it is seen that somebody has left, he holds up others.
    with listening(settings(inks, slots=4, max_wait_s=3600, **_ROOMY)) as (url, app):
        yield url, app


@pytest.mark.parametrize("stream", [False, True])
def test_text_that_is_left_is_counted_as_an_abort(
    server: tuple[str, FastAPI], stream: bool
) -> None:
    url, app = server
    counted = _Counted(app)
    _hang_up(url, _TEXT, _ENDLESS | {"n": 6}, stream=stream)  # two of which wait
    status = "200" if stream else "499"
    expected = {(_TEXT, status, "abort"): 1, ("letters", "abort"): 6}
    assert eventually(lambda: counted() == expected), counted()
    rejected = app.state.metrics.rejected.collect()[0].samples
    assert "499" not in {sample.labels["status"] for sample in rejected}  # nobody refused it


def test_ink_that_is_left_is_counted_as_an_abort(server: tuple[str, FastAPI]) -> None:
    url, app = server
    counted = _Counted(app)
    _hang_up(url, _INK, {"text": "word " * 399, "seed": 1}, stream=True)
    assert eventually(lambda: (_INK, "200", "abort") in counted())
    endings = {reason for model, reason in (k for k in counted() if k[0] == "scrawl")}
    assert "abort" in endings
    assert counted()["scrawl", "abort"] == counted()[_INK, "200", "abort"] == 1


def test_a_session_that_is_cut_off_is_counted_as_an_abort(server: tuple[str, FastAPI]) -> None:
    url, app = server
    counted = _Counted(app)
    with connect(url.replace("http", "ws") + _ONLINE) as socket:
        socket.send(json.dumps({"model": "letters"}))
        socket.recv()
        socket.socket.shutdown(2)
    assert eventually(lambda: counted() == {(_ONLINE, "1006", "abort"): 1}), counted()


def test_an_unexpected_error_is_counted_and_its_answer_has_an_id() -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError("broken")

    metrics = Metrics()
    app = FastAPI()
    app.state.routes = []
    app.mount("/", broken)
    app.middleware_stack = Recorder(app.build_middleware_stack(), metrics)
    answer = TestClient(app, raise_server_exceptions=False).get("/any")
    assert answer.status_code == 500
    assert answer.headers["x-request-id"].startswith("req-")
    labels = {"path": "other", "status": "500", "code": "server_error"}
    assert metrics.registry.get_sample_value("evenkeel_http_requests_total", labels) == 1


@pytest.mark.in_process  # Ray has ids of its own
@pytest.mark.parametrize("given", ["a", "x" * 128, "{~!}"])
def test_a_request_keeps_the_id_it_came_with(scan: Service, given: str) -> None:
    for path in ("/livez", "/nowhere", "/v1/models/nobody"):
        answer = scan.client.get(path, headers={"X-Request-Id": given})
        assert answer.headers.get_list("x-request-id") == [given]


@pytest.mark.in_process
@pytest.mark.parametrize("given", ["", "x" * 129, "two words", "tab\t", b"caf\xe9"])
def test_an_id_that_is_none_is_replaced(scan: Service, given: str | bytes) -> None:
    name = {b"X-Request-Id": given if isinstance(given, bytes) else given.encode()}
    ids = {scan.client.get("/livez", headers=name).headers["x-request-id"] for _ in range(2)}
    assert len(ids) == 2
    assert all(re.fullmatch(r"req-[0-9a-f]{24}", made) for made in ids)


def test_a_refusal_before_any_route_has_an_id(letters: Path) -> None:
    client = TestClient(create_app(settings(letters, allowed_hosts=("here.example",))))
    answer = client.get("/v1/models", headers={"X-Request-Id": "mine"})
    assert (answer.status_code, answer.headers["x-request-id"]) == (403, "mine")


def test_a_session_carries_its_id(server: tuple[str, FastAPI]) -> None:
    url = server[0].replace("http", "ws") + _ONLINE
    with connect(url, additional_headers={"X-Request-Id": "mine"}) as socket:
        assert socket.response is not None
        assert socket.response.headers["x-request-id"] == "mine"


@pytest.mark.in_process
def test_a_request_leaves_a_line_that_says_what_became_of_it(
    scan: Service, caplog: pytest.LogCaptureFixture
) -> None:
    with _logged(caplog) as lines:
        body = {"model": "letters", "prompt": "secret", "n": 2, "max_tokens": 9, "seed": 1}
        scan.client.post(_TEXT, json=body, headers={"X-Request-Id": "mine"})
        for probed in ("/livez", "/readyz", "/health", "/metrics", "/", "/docs"):
            scan.client.get(probed)
        scan.client.get("/static/service.js")
        scan.client.get("/docs/ui/swagger-ui.css")
        scan.client.get("/v1/models/nobody?token=secret")
    done, refused = lines
    assert 0 <= done.pop("queue_s") <= done.pop("first_byte_s") <= done.pop("total_s") < 60
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00", done.pop("time"))
    assert done == {
        "request": "mine",
        "method": "POST",
        "path": _TEXT,
        "status": 200,
        "error": None,
        "caller": done["caller"],
        "model": "letters",
        "prompt_tokens": 12,
        "completion_tokens": 18,
        "steps": 0,
        "finish": ["length", "length"],
    }
    assert (refused["path"], refused["status"], refused["error"]) == (
        "/v1/models/{name}", 404, "model_not_found",
    )  # fmt: skip
    assert refused["first_byte_s"] is None
    assert "secret" not in json.dumps(lines)


def test_a_line_has_its_time_in_one_notation_at_a_whole_second_too() -> None:
    told = json.loads(Record("mine", began_ns=10**18).line())
    assert told["time"] == "2001-09-09T01:46:40.000000+00:00"


class _Key:
    id = "key-1"


def test_the_line_names_the_caller_that_was_found(caplog: pytest.LogCaptureFixture) -> None:
    async def found(scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"]["caller"] = _Key()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    app = FastAPI()
    app.state.routes = []
    app.middleware_stack = Recorder(found, Metrics())
    with _logged(caplog) as lines:
        TestClient(app).get("/any")
    assert [line["caller"] for line in lines] == ["key-1"]


def test_an_unexpected_error_in_the_middle_of_a_stream_is_counted() -> None:
    async def contents() -> AsyncGenerator[str]:
        yield "{}"
        raise RuntimeError("broken")

    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        at_work: Any = type("AtWork", (), {"stalled_s": 0.0})
        await EventStream(contents(), lambda: None, at_work)(scope, receive, send)

    metrics = Metrics()
    app = FastAPI()
    app.state.routes = []
    app.mount("/", broken)
    app.middleware_stack = Recorder(app.build_middleware_stack(), metrics)
    answer = TestClient(app).get("/any")
    first, told, end = (line for line in answer.text.splitlines() if line.startswith("data: "))
    assert (first, end) == ("data: {}", "data: [DONE]")
    assert json.loads(told.removeprefix("data: "))["error"]["type"] == "server_error"
    labels = {"path": "other", "status": "200", "code": "server_error"}
    assert metrics.registry.get_sample_value("evenkeel_http_requests_total", labels) == 1


def test_work_outside_of_any_request_is_recorded_nowhere() -> None:
    async def ids() -> list[str]:
        return [record.current().id for _ in range(2)]

    assert asyncio.run(ids()) == ["", ""]


def test_of_several_errors_and_jobs_the_first_is_told() -> None:
    kept = Record("id")
    for code in ("first", "second"):
        kept.fail(code)
    for after_s in (2.0, 1.0):
        times = kept.began_s, kept.began_s + after_s, kept.began_s + 2 * after_s
        kept.works.append(Work("letters", "stop", 3, 4, *times, kept.began_s + 9))
    told = json.loads(kept.line())
    assert (told["error"], told["queue_s"], told["first_byte_s"]) == ("first", 1.0, 2.0)


def test_as_many_pieces_are_noted_as_a_span_has_events() -> None:
    kept, job = Record("id"), Any
    for _ in range(200):
        kept.take(job, Piece())  # type: ignore[arg-type]
    assert len(kept.pieces_s) == 128


@pytest.mark.in_process
def test_a_session_that_broke_a_rule_is_no_request_that_was_refused(ink: InkService) -> None:
    """Its code is none of HTTP."""
    with online(ink, model="letters") as session:
        assert session.ask(no="rule")["error"]
        assert session.closed() == 1008
    rejected = ink.app.state.metrics.rejected.collect()[0].samples
    assert {sample.labels["status"] for sample in rejected} & {"1008", "1000"} == set()


def test_times_are_in_seconds() -> None:
    before_s, kept = time.perf_counter(), Record("it")
    time.sleep(0.01)
    kept.end()
    assert 0.01 <= kept.total_s <= time.perf_counter() - before_s
    assert json.loads(kept.line())["total_s"] == round(kept.total_s, 6)
