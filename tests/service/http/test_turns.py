"""What one caller has the service do leaves the event loop, and its threads, to others."""

import asyncio
import gc
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope, Send

from service.engine import terms
from service.errors import DeadlineExceeded, NotReady
from service.http import limits, online
from service.http.aside import Aside
from service.http.limits import Bodies, BodyLimit
from service.http.waits import Turns
from tests.service.serving import Service, eventually, listening, running, settings

_HELD_S = 90.0  # longer than any test is patient
_SCOPE = {"asgi": {"version": "3.0"}, "query_string": b"", "headers": [(b"host", b"x")]}
_BLANK = {"text": "\n" * 1500 + "a", "stream": True, "resume": True}
_LOOK = {"width": 160, "line_height": 16, "margin": 0}


@pytest.fixture(scope="module")
def service(inks: Path) -> Iterator[Service]:
    with running(settings(inks)) as started:
        yield started


def _waits(service: Service, scope: dict[str, Any], messages: list[dict[str, Any]]) -> list[float]:
    """Seconds between the turns of others while the application answers messages that have all
    come, to a client that takes all answers at once."""

    async def measured() -> list[float]:
        left, done = iter(messages), False
        sent_s, turns_s = list[float](), list[float]()

        async def receive() -> dict[str, Any]:
            message = next(left, None)
            return message if message is not None else await asyncio.Event().wait()  # type: ignore[return-value]

        async def send(message: dict[str, Any]) -> None:
            sent_s.append(time.perf_counter())

        async def others() -> None:
            while not done:
                await asyncio.sleep(0)
                turns_s.append(time.perf_counter())

        beside = asyncio.create_task(others())
        await service.app(_SCOPE | scope, receive, send)
        done = True
        await beside
        assert len(sent_s) > 1000
        between = [sent_s[0], *(s for s in turns_s if sent_s[0] < s < sent_s[-1]), sent_s[-1]]
        return [after - before for before, after in pairwise(between)]

    gc.disable()  # of all that other tests have left, a collection takes 0.2 s
    try:
        found: list[float] = min((service.client.portal.call(measured) for _ in range(2)), key=max)
    finally:
        gc.enable()
    return found


def _burst(service: Service) -> list[float]:
    texts = [json.dumps({"model": "letters"}), *['{"state": true}'] * 3000]
    messages = [{"type": "websocket.receive", "text": text} for text in texts]
    told = [
        {"type": "websocket.connect"},
        *messages,
        {"type": "websocket.disconnect", "code": 1000},
    ]
    scope = {"type": "websocket", "path": "/v1/online", "subprotocols": []}
    return _waits(service, scope, told)


def test_a_burst_of_messages_to_a_session(service: Service) -> None:
    waits_s = _burst(service)
    assert max(waits_s) < sum(waits_s) / 4


def test_a_session_gives_way_when_it_has_had_its_time(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others have turns while messages are parsed as well, one for some fifteen of them."""
    monkeypatch.setattr(online, "_ALONE_S", 0.0)
    assert len(_burst(service)) >= 3000


def test_a_page_of_blank_lines_with_tokens(service: Service) -> None:
    body = json.dumps({"model": "scrawl"} | _BLANK | _LOOK).encode()
    scope = {"type": "http", "method": "POST", "path": "/v1/handwriting"}
    scope |= {"headers": [(b"host", b"x"), (b"content-type", b"application/json")]}
    waits_s = _waits(service, scope, [{"type": "http.request", "body": body, "more_body": False}])
    assert max(waits_s) < sum(waits_s) / 4


def test_large_bodies_that_come_together(service: Service) -> None:
    body = json.dumps({"model": "letters", "prompt": "a", "nothing": [1.5] * 100_000}).encode()
    scope = {"type": "http", "method": "POST", "path": "/v1/completions", "client": ["::1", 1]}
    scope |= {
        "headers": [(b"host", b"x"), (b"content-type", b"application/json")],
        "scheme": "http",
    }
    requests = 12

    async def measured() -> list[float]:
        answered, moments_s = 0, [time.perf_counter()]

        async def ask() -> None:
            nonlocal answered
            messages = iter([{"type": "http.request", "body": body, "more_body": False}])

            async def receive() -> dict[str, Any]:
                message = next(messages, None)
                return message if message is not None else await asyncio.Event().wait()  # type: ignore[return-value]

            async def send(message: dict[str, Any]) -> None:
                assert message.get("status", 400) == 400

            await service.app(_SCOPE | scope, receive, send)
            answered += 1

        asked = [asyncio.create_task(ask()) for _ in range(requests)]
        while answered < requests:
            await asyncio.sleep(0)
            moments_s.append(time.perf_counter())
        await asyncio.gather(*asked)
        return [after - before for before, after in pairwise(moments_s)]

    waits_s = min((service.client.portal.call(measured) for _ in range(2)), key=max)
    assert sum(waits_s) > 0.02
    assert max(waits_s) < sum(waits_s) / 4


def test_a_turn_that_is_given_up_holds_up_nobody() -> None:
    async def take() -> None:
        turns = Turns()
        first, second, third = (asyncio.create_task(turns.mine()) for _ in range(3))
        await asyncio.sleep(0)  # all three have asked, in one round of the loop
        assert (first.done(), second.done(), third.done()) == (True, False, False)
        second.cancel()
        await asyncio.wait_for(third, 10)
        await asyncio.wait_for(turns.mine(), 10)

    asyncio.run(take())


def test_a_backlog_of_drawings(inks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hold, drawing = threading.Event(), threading.Semaphore(0)

    def held(*_: object) -> tuple[str, str]:
        drawing.release()
        assert hold.wait(_HELD_S)
        return "image/svg+xml", "<svg/>"

    monkeypatch.setattr("service.ink.routes.draw", held)
    with listening(settings(inks)) as (url, _), ThreadPoolExecutor(40) as pool:

        def ask(path: str, **body: Any) -> httpx.Response:
            return httpx.post(url + path, json=body, timeout=40)

        pages = [pool.submit(ask, "/v1/handwriting", text="a") for _ in range(36)]
        try:
            assert drawing.acquire(timeout=30)
            late = ask("/v1/handwriting", text="a", deadline_s=0.2)
            stroke = [[5 * i, 20 * (i % 2)] for i in range(40)]
            read = pool.submit(ask, "/v1/read", strokes=[stroke])
            assert eventually(read.done)
            assert read.result().status_code == 200
            assert (late.status_code, late.json()["error"]["code"]) == (504, "deadline_exceeded")
        finally:
            hold.set()
        assert {page.result().status_code for page in pages} == {200}


@pytest.mark.parametrize("wanted", [{"format": "json"}, {"stream": True}])
def test_ink_that_is_not_drawn_waits_for_no_drawing(
    inks: Path, monkeypatch: pytest.MonkeyPatch, wanted: dict[str, Any]
) -> None:
    hold, drawing = threading.Event(), threading.Semaphore(0)

    def held_up(*_: object) -> tuple[str, str]:
        drawing.release()
        assert hold.wait(_HELD_S)
        return "image/svg+xml", "<svg/>"

    monkeypatch.setattr("service.ink.routes.draw", held_up)
    with listening(settings(inks)) as (url, _), ThreadPoolExecutor(3) as pool:
        path = f"{url}/v1/handwriting"
        held = [pool.submit(httpx.post, path, json={"text": "a"}, timeout=40) for _ in range(2)]
        try:
            assert all(drawing.acquire(timeout=30) for _ in held)  # both threads are busy
            points = pool.submit(httpx.post, path, json={"text": "a"} | wanted, timeout=40)
            assert eventually(points.done)
            assert points.result().status_code == 200
            assert not any(one.done() for one in held)
        finally:
            hold.set()


def test_drawings_of_one_caller_do_not_hold_up_another_s() -> None:
    began: list[str] = []
    hold = threading.Event()

    def work(caller: str) -> None:
        began.append(caller)
        assert hold.wait(_HELD_S)

    async def ask() -> None:
        aside = Aside()

        async def ask_for(caller: str) -> None:
            terms.agree(60, caller)
            await aside.do(lambda: work(caller))

        greedy = [asyncio.create_task(ask_for("greedy")) for _ in range(20)]
        while len(began) < 2:
            await asyncio.sleep(0.01)
        one = asyncio.create_task(ask_for("one"))
        await asyncio.sleep(0)
        hold.set()
        await asyncio.gather(one, *greedy)
        aside.end()
        # Nobody is kept in mind who has nothing at work, once threads have done what comes after.
        assert eventually(lambda: not aside._busy)
        assert not aside._waits

    asyncio.run(ask())
    assert "one" in began[:4]
    assert began.count("greedy") == 20


def test_what_nobody_waits_for_is_not_drawn() -> None:
    done: list[str] = []
    hold = threading.Event()

    async def ask() -> None:
        aside = Aside()
        held = [asyncio.create_task(aside.do(lambda: hold.wait(30))) for _ in range(2)]
        left = asyncio.create_task(aside.do(lambda: done.append("left")))
        kept = asyncio.create_task(aside.do(lambda: done.append("kept")))
        await asyncio.sleep(0.05)
        left.cancel()
        await asyncio.sleep(0)
        hold.set()
        await asyncio.gather(kept, *held)
        late = asyncio.create_task(aside.do(lambda: hold.wait(30)))
        aside.end()
        with pytest.raises(NotReady):
            await late

    asyncio.run(ask())
    assert done == ["kept"]


def test_who_waits_for_a_drawing_past_its_deadline_is_told() -> None:
    hold = threading.Event()

    async def ask() -> None:
        aside = Aside()
        terms.agree(0.05)
        with pytest.raises(DeadlineExceeded):
            await asyncio.wait_for(aside.do(lambda: hold.wait(30)), 2)
        aside.end()

    try:
        asyncio.run(ask())
    finally:
        hold.set()


def test_a_body_that_begins_as_the_service_stops_is_waited_for_a_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "_LAST_BYTES_S", limits._LAST_BYTES_S / 10)

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()

    async def never() -> Message:
        await asyncio.sleep(30)
        raise AssertionError

    async def ask() -> None:
        bodies = Bodies()
        bodies.end()
        limit = BodyLimit(application, 100, 20.0, bodies)
        with pytest.raises(HTTPException) as told:
            await limit({"type": "http", "headers": []}, never, never)
        assert told.value.status_code == 503

    began_s = time.monotonic()
    asyncio.run(ask())
    assert time.monotonic() - began_s < 5


def test_a_stream_whose_drawing_fails_says_so(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> dict[str, str]:
        raise RuntimeError("no image came of the drawing (-9): ")

    monkeypatch.setattr("service.ink.routes.in_event", fail)
    body = {"text": "a", "stream": True, "format": "png"}
    answer = service.client.post("/v1/handwriting", json=body)
    *_, last, done = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
    assert done == "[DONE]"
    assert json.loads(last)["error"]["message"] == "internal error; the log has the details"
    name = answer.headers["x-request-id"]
    (logged,) = [line for line in caplog.records if name in line.getMessage() and line.exc_info]
    assert logged.exc_info is not None
    assert "no image came of the drawing" in str(logged.exc_info[1])
