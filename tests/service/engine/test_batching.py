"""Many requests at once: they share runs, wait in a bounded queue, leave when their client does."""

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from tests.service.serving import Service, eventually, held, listening, running, settings

_ENDLESS = 10**8  # hours: what ends sooner was ended
_ALLOWED = {"max_tokens": 10**9, "max_request_steps": 10**12}


@pytest.fixture(scope="module", params=["scan", "slots"])
def server(request: pytest.FixtureRequest, artifacts: Path) -> Iterator[tuple[str, Service]]:
    """A real server and a way to look at its metrics."""
    chosen = settings(artifacts, runner=request.param, slots=24, **_ALLOWED)
    with listening(chosen) as (url, app):
        yield url, _looking_at(app)


def _looking_at(app: FastAPI) -> Service:
    return Service(app, client=None)


def _body(**options: Any) -> dict[str, Any]:
    return {"model": "letters", "max_tokens": _ENDLESS} | options


def _here(service: Service) -> float:
    """How many requests run or wait."""
    return service.metric("requests_running") + service.metric("requests_waiting")


def _idle(service: Service) -> bool:
    return _here(service) == 0


@pytest.mark.parametrize("runner", ["scan", "slots"])
def test_among_sixteen_requests_half_of_the_runs_have_more_than_eight_rows(
    artifacts: Path, runner: str
) -> None:
    patient = settings(artifacts, runner=runner, max_wait_s=60)
    with running(patient) as service, ThreadPoolExecutor(16) as pool:
        sizes = [500 + 20 * i for i in range(16)]
        with held(service.app.state.models["letters"]):
            asked = [pool.submit(service.complete, max_tokens=size) for size in sizes]
            assert eventually(lambda: _here(service) == 16)
        written = [answer.result()["usage"] for answer in asked]
        bounds = ("8.0", "16.0", "+Inf")
        runs = {le: service.metric("rows_per_run_bucket", le=le) for le in bounds}
    assert [usage["completion_tokens"] for usage in written] == sizes
    assert runs["8.0"] < runs["+Inf"] / 2
    assert runs["16.0"] == runs["+Inf"]
    # Alone they would have taken as many runs as there are chunks in all of them.
    assert runs["+Inf"] < 0.25 * sum(sizes) / 32


def test_every_request_is_counted_once(service: Service) -> None:
    names = ("requests_finished_total", "generation_tokens_total", "prompt_tokens_total")

    def counts() -> list[float]:
        labels = [{"reason": "length"}, {}, {}]
        return [service.metric(n, **more) for n, more in zip(names, labels, strict=True)]

    before = counts()
    service.complete(prompt="four", max_tokens=11, n=3)
    service.events(prompt="ab", max_tokens=5)
    difference = [after - b for after, b in zip(counts(), before, strict=True)]
    assert difference == [4, 38, 14]
    assert service.metric("time_to_first_token_seconds_count") > 0
    assert _idle(service)


def test_a_full_queue_is_a_503_that_says_when_to_come_back(artifacts: Path) -> None:
    with running(settings(artifacts, slots=1, queue_size=2)) as service:
        with ThreadPoolExecutor(1) as pool, held(service.app.state.models["letters"]):
            first = pool.submit(service.post, max_tokens=1)
            assert eventually(lambda: service.metric("requests_running") == 1)
            for stream in (False, True):
                refused = service.post(n=3, stream=stream)
                assert refused.status_code == 503
                assert refused.headers["retry-after"] == "1"
                error = refused.json()["error"]
                assert error["code"] == "overloaded"
                assert error["message"] == "the queue is full (2 requests may wait)"
            assert service.metric("requests_waiting") == 0  # all of them or none
        assert first.result().status_code == 200
        assert service.complete(n=2)["usage"]["completion_tokens"] == 32
        refusals = service.app.state.metrics.registry.get_sample_value(
            "evenkeel_requests_rejected_total", {"status": "503"}
        )
        assert refusals == 2


def test_more_requests_than_slots_are_all_answered(artifacts: Path) -> None:
    with (
        running(settings(artifacts, slots=3)) as service,
        ThreadPoolExecutor(12) as pool,
    ):
        texts = pool.map(lambda _: service.text(seed=7, max_tokens=80), range(24))
        assert set(texts) == {service.text(seed=7, max_tokens=80)}


def test_a_stream_that_is_left_frees_its_slots(server: tuple[str, Service]) -> None:
    url, service = server
    body = _body(n=16, stream=True)
    with (
        httpx.Client() as client,
        client.stream("POST", f"{url}/v1/completions", json=body) as response,
    ):
        texts = response.iter_text()  # dropped, it would close the connection
        assert "text_completion" in next(texts)
        # Those that nobody has read enough of wait.
        assert eventually(lambda: _here(service) == 16)
    assert eventually(lambda: _idle(service))


@contextmanager
def _asked_and_left(url: str, **options: Any) -> Iterator[None]:
    """A client who wants a whole answer, and hangs up at the end of this."""
    with closing(HTTPConnection(url.removeprefix("http://"))) as client:
        kind = {"content-type": "application/json"}
        client.request("POST", "/v1/completions", json.dumps(_body(**options)), kind)
        yield


def test_a_whole_response_that_is_not_waited_for_frees_its_slots(
    server: tuple[str, Service],
) -> None:
    url, service = server
    before = service.metric("steps_total")
    with _asked_and_left(url, n=16):
        assert eventually(lambda: service.metric("requests_running") == 16)
        assert eventually(lambda: service.metric("steps_total") > before)
    assert eventually(lambda: _idle(service))


def test_a_request_left_in_the_queue_never_runs(artifacts: Path) -> None:
    chosen = settings(artifacts, slots=1, **_ALLOWED)
    with listening(chosen) as (url, app), ThreadPoolExecutor(1) as pool:
        service, short = _looking_at(app), _body(max_tokens=9)
        with held(app.state.models["letters"]):
            first = pool.submit(httpx.post, f"{url}/v1/completions", json=short, timeout=60)
            assert eventually(lambda: service.metric("requests_running") == 1)
            with _asked_and_left(url):
                assert eventually(lambda: service.metric("requests_waiting") == 1)
            gone = "requests_finished_total"
            assert eventually(lambda: service.metric(gone, reason="abort") == 1)
        assert first.result().status_code == 200
        assert eventually(lambda: _idle(service))
        assert service.metric("steps_total") == 9


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_gone_before_the_response_began_frees_its_slots(
    artifacts: Path, stream: bool
) -> None:
    body = json.dumps(_body(n=16, stream=stream)).encode()
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> dict[str, Any]:
        return next(messages, {"type": "http.disconnect"})

    async def send(message: dict[str, Any]) -> None:
        await asyncio.sleep(0)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "method": "POST",
        "path": "/v1/completions",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
    }
    with running(settings(artifacts, **_ALLOWED)) as service:
        service.client.portal.call(service.app, scope, receive, send)
        assert eventually(lambda: _idle(service))


def test_stopping_the_service_ends_streams_with_an_error_event(artifacts: Path) -> None:
    lines: list[str] = []
    begun = threading.Event()

    def read(url: str) -> None:
        with httpx.stream("POST", url, json=_body(n=8, stream=True), timeout=60) as response:
            for line in response.iter_lines():
                lines.append(line)
                begun.set()

    with listening(settings(artifacts, **_ALLOWED)) as (url, app):
        reader = threading.Thread(target=read, args=[f"{url}/v1/completions"])
        reader.start()
        assert begun.wait(30)
        app.state.models.stop()
        reader.join(30)
    assert not reader.is_alive()
    events = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    assert json.loads(events[-2])["error"]["code"] == "not_ready"
    assert events[-1] == "[DONE]"
