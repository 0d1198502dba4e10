"""Who is refused before the framework has seen a request, and that nobody else is."""

import asyncio
import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from starlette.responses import Response

from service.engine import terms
from service.engine.schedule import Schedule
from service.http import door, record
from service.http.keys import new_key
from service.http.waits import TokenBucket
from service.ink import schemas as ink_schemas
from service.ink.line import USUAL_POINTS_PER_CHARACTER
from service.settings import Settings
from service.text import routes
from service.text.schemas import least
from tests.service.engine.scripted import Call
from tests.service.serving import Service, bearing, listening, running, settings, told_by

_PATH = "/v1/completions"
_JSON = {"content-type": "application/json"}
_WANTED = {"model": "letters", "prompt": "ab", "max_tokens": 200}
_TOO_LARGE_TO_LOOK_AT = " " * 16384


@pytest.fixture(autouse=True)
def _nobody_is_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is queued stays there, so that a test knows the queue."""
    monkeypatch.setattr(Schedule, "next", lambda schedule, now_s: None)


@contextmanager
def _crowded(
    chosen: Settings, callers: tuple[str, ...] = ("address:testclient",), name: str = "letters"
) -> Iterator[Service]:
    """A service where each of the callers has something waiting, and none may wait for more."""
    chosen = chosen.model_copy(update={"max_wait_s": 1e-9})
    with running(chosen) as service:
        engine = service.app.state.models[name].engine
        call = Call()
        call.job.state = service.app.state.models[name].artifact.initial_state()
        schedule, width = engine._slots.schedule, engine._slots.runner.width
        schedule.add([call.job] * width, terms.Terms("first of all"))
        for caller in callers:
            schedule.add([call.job], terms.Terms(caller))
        yield service


def _unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    def make_call(*_: object) -> None:
        raise AssertionError("the route was called")

    monkeypatch.setattr(routes, "_make_call", make_call)


def test_a_refusal_at_the_door_is_that_of_the_route(
    letters: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with _crowded(settings(letters)) as service:
        caplog.set_level(logging.INFO, logger=record.log.name)
        series = service.app.state.metrics.ended.labels(_PATH, 503, "overloaded")

        def ask(before: str) -> tuple[Any, dict[str, Any], float]:
            counted = series._value.get()
            body = before + json.dumps(_WANTED)
            answer = service.client.post(_PATH, content=body, headers=_JSON)
            line = json.loads(caplog.records[-1].message)
            return answer, line, series._value.get() - counted

        route, route_line, route_count = ask(_TOO_LARGE_TO_LOOK_AT)
        _unreachable(monkeypatch)
        assert ask(_TOO_LARGE_TO_LOOK_AT)[0].status_code == 500  # that one does reach it
        door, door_line, door_count = ask("")
        assert door.status_code == route.status_code == 503
        assert door.json() == route.json()
        assert door.headers["retry-after"] == route.headers["retry-after"]
        assert door.headers.keys() == route.headers.keys()
        assert door.headers["x-request-id"] == door_line["request"]
        vary = ("time", "request", "total_s")
        assert {k: v for k, v in door_line.items() if k not in vary} == {
            k: v for k, v in route_line.items() if k not in vary
        }
        assert door_line["model"] == "letters"
        assert route_count == door_count == 1


def test_a_body_of_16_kib_is_looked_at_and_no_larger_one(
    letters: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _crowded(settings(letters)) as service:
        _unreachable(monkeypatch)
        for more, status in ((0, 503), (1, 500)):
            body = json.dumps(_WANTED).rjust(2**14 + more)
            assert service.client.post(_PATH, content=body, headers=_JSON).status_code == status


def test_nobody_without_a_key_hears_of_the_queue(
    letters: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "keys.toml"
    busy, idle = new_key(file, "busy"), new_key(file, "idle")
    with _crowded(settings(letters, keys=file), ("busy",)) as service:
        _unreachable(monkeypatch)

        def ask(key: str) -> int:
            answer = service.client.post(_PATH, json=_WANTED, headers=bearing(key))
            return int(answer.status_code)

        assert [ask("ek-none"), ask(busy)] == [401, 503]
        # Both would have to wait for one job of `busy`, which is more than anybody may.
        assert ask(idle) == 503
        engine = service.app.state.models["letters"].engine
        engine._limits = replace(engine._limits, max_wait_s=1e9)
        assert [ask(busy), ask(idle)] == [500, 500]  # the route


def test_one_caller_s_two_hundred_do_not_refuse_another(
    letters: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(settings(letters, queue_size=500)) as service:
        engine = service.app.state.models["letters"].engine
        jobs = [Call(max_tokens=200).job for _ in range(200)]
        engine._slots.schedule.add(jobs, terms.Terms("greedy"))
        one_s = 200 * engine._pace.wait_s(engine._slots.runner.width)
        engine._limits = replace(engine._limits, max_wait_s=5 * one_s)
        _unreachable(monkeypatch)
        assert service.post(**_WANTED).status_code == 500  # let through to the route
        monkeypatch.setattr(terms, "current", lambda: terms.Terms("greedy"))
        assert service.post(**_WANTED).status_code == 503


def test_what_is_not_clear_is_for_the_route(artifacts: Path) -> None:
    with _crowded(settings(artifacts)) as service:
        for body, status in (
            ("", 400),
            ("[1]", 400),
            ('{"model": ', 400),
            ("[" * 5000, 400),
            ('{"max_tokens": 200}', 404),
            ('{"model": 7, "max_tokens": 200}', 400),
            ('{"model": "letters", "max_tokens": -1}', 400),
            ('{"model": "letters", "max_tokens": "200"}', 400),
            ('{"model": "letters", "max_tokens": %s}' % ("9" * 5000), 400),
            ('{"model": "nobody", "max_tokens": 200}', 404),
            ('{"model": "letters", "max_tokens": 0}', 200),
        ):  # fmt: skip
            answer = service.client.post(_PATH, content=body, headers=_JSON)
            assert answer.status_code == status, (body[:60], answer.text)


def test_a_body_in_pieces_is_read_by_the_route(
    letters: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # this one is to be answered
    with listening(settings(letters)) as (url, _):
        half = json.dumps(_WANTED).encode()

        def pieces() -> Iterator[bytes]:
            yield half[:10]
            yield half[10:]

        answers = [
            httpx.post(url + _PATH, content=content, headers=_JSON, timeout=60).json()
            for content in (pieces(), half)
        ]
        assert [answer["usage"]["prompt_tokens"] for answer in answers] == [2, 2]


def test_what_goes_on_from_a_state_is_for_the_route() -> None:
    """A session may have drawn the next byte already, which takes no step."""
    assert least(_WANTED | {"state": None}) == ("letters", 202)
    assert least(_WANTED | {"state": "a token"}) is None


def test_what_has_no_number_of_steps_is_for_the_route() -> None:
    for written in (True, -1, 1.5, None):
        assert least(_WANTED | {"max_tokens": written}) is None
    assert least({"prompt": "", "max_tokens": 0}) is None  # a job takes one at least


_INK = {"model": "scrawl", "text": "an even keel"}


def test_ink_is_refused_at_the_door_as_the_route_would(
    inks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _crowded(settings(inks), name="scrawl") as service:

        def ask(before: str) -> tuple[int, dict[str, Any]]:
            content = before + json.dumps(_INK)
            answer = service.client.post("/v1/handwriting", content=content, headers=_JSON)
            return answer.status_code, answer.json()["error"]

        status, by_route = ask(_TOO_LARGE_TO_LOOK_AT)
        monkeypatch.setattr("service.ink.routes.make_page", None)
        assert (status, by_route["code"]) == (503, "overloaded")
        assert ask("") == (503, by_route)


@pytest.mark.parametrize("field", ["width", "line_height", "page", "margin"])
def test_lines_of_a_page_that_is_laid_out_may_be_shorter_than_usual(field: str) -> None:
    """Of two characters, which is all that the narrowest has room for."""
    word = {"model": "scrawl", "text": "keels"}
    assert ink_schemas.least(word) == ("scrawl", 5 * USUAL_POINTS_PER_CHARACTER)
    assert ink_schemas.least(word | {field: 16}) == ("scrawl", 2 * USUAL_POINTS_PER_CHARACTER)


def test_a_word_is_divided_where_its_line_ends_unless_it_has_a_mark() -> None:
    texts = ("keels", "k-eel", "keelhauling", "k-eelhauling")  # lines have room for five letters
    *whole, divided, at_its_mark = (ink_schemas.least({"text": text}) for text in texts)
    assert None not in (divided, at_its_mark)
    assert whole == [divided] * 2
    assert divided != at_its_mark


@pytest.mark.parametrize(
    "change",
    [
        {"text": "é"}, {"text": 3}, {"text": "  "}, {"first_line": 1}, {"model": 5},
        {"style": {"strokes": [[[0, 0]]], "text": "a"}},
    ],
)  # fmt: skip
def test_ink_that_is_not_plain_is_for_the_route(change: dict[str, Any]) -> None:
    assert ink_schemas.least(_INK | change) is None
    assert ink_schemas.least(_INK | {"style": "ada"}) == ("scrawl", 20)


def test_a_model_that_is_not_ready_says_so_whatever_waits(letters: Path) -> None:
    with _crowded(settings(letters)) as service:
        engine = service.app.state.models["letters"].engine
        engine.ready = False
        assert service.post(**_WANTED).json()["error"]["code"] == "not_ready"


def test_refusals_beyond_a_burst_wait_for_their_turn_and_no_longer_than_they_may() -> None:
    turns = TokenBucket(per_s=10, burst=3, longest_s=0.5)
    waits = [turns.wait_s(100.0) for _ in range(12)]
    assert waits == pytest.approx([0, 0, 0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.5, 0.5, 0.5, 0.5], abs=1e-9)
    assert turns.wait_s(100.45) == pytest.approx(0.15)
    assert [turns.wait_s(200.0) for _ in range(4)] == pytest.approx([0, 0, 0, 0.1], abs=1e-9)


@pytest.mark.parametrize("max_tokens", [200, 200.0, None], ids=["door", "route", "default"])
def test_whoever_asks_again_at_once_is_refused_no_faster_than_others_are_served(
    letters: Path, monkeypatch: pytest.MonkeyPatch, max_tokens: float | None
) -> None:
    """Whoever refuses: the door knows no number that is written 200.0."""
    monkeypatch.setattr(door, "_PER_S", 20.0)
    monkeypatch.setattr(door, "_BURST", 2)
    with _crowded(settings(letters)) as service:
        took_s = []
        for _ in range(6):
            begun_s = time.monotonic()
            asked = _WANTED | {"max_tokens": max_tokens}
            assert service.client.post(_PATH, json=asked).status_code == 503
            took_s.append(time.monotonic() - begun_s)
    assert sum(took_s[2:]) >= 4 * 0.05 - sum(took_s[:2])


def test_who_names_no_model_is_refused_on_behalf_of_the_one_it_would_have(
    inks: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with _crowded(settings(inks)) as service:
        _unreachable(monkeypatch)
        caplog.set_level(logging.INFO, logger=record.log.name)
        answer = service.client.post(_PATH, json={"prompt": "ab", "max_tokens": 200})
        assert answer.status_code == 503
        assert json.loads(caplog.records[-1].message)["model"] == "letters"


def _before_one_that_answers(status: int) -> door.Door:
    async def answers(scope: Any, receive: Any, send: Any) -> None:
        await Response(status_code=status)(scope, receive, send)

    kinds: Any = {"text": SimpleNamespace(model=None, least={_PATH: lambda body: None})}
    return door.Door(answers, models=None, kinds=kinds)  # type: ignore[arg-type]


def test_a_thousand_refusals_a_second_go_out_and_none_waits_for_longer_than_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entered, told = _before_one_that_answers(503), list[Any]()

    async def hear(what: Any = None) -> dict[str, Any]:
        told.append(what)
        return {"type": "http.request"}

    async def ask() -> None:
        for _ in range(1150):
            await entered({"type": "http", "method": "POST", "path": _PATH}, hear, hear)

    monkeypatch.setattr(door, "asyncio", SimpleNamespace(sleep=hear))
    monkeypatch.setattr(door, "time", SimpleNamespace(monotonic=lambda: 5.0))
    asyncio.run(ask())
    waits_s = [0.0] * 100 + [number / 1000 for number in range(1, 1001)] + [1.0] * 50
    assert [what for what in told if isinstance(what, float)] == pytest.approx(waits_s, abs=1e-9)


@pytest.mark.parametrize(("status", "waits"), [(503, 1), (504, 0), (500, 0), (429, 0)])
def test_a_refusal_of_a_full_service_waits_for_its_turn_and_no_other(
    status: int, waits: int
) -> None:
    entered = _before_one_that_answers(status)
    turns: list[float] = []
    entered._turns = SimpleNamespace(wait_s=lambda now_s: turns.append(now_s) or 0.0)  # type: ignore[assignment, func-returns-value]
    told = told_by(entered, {"type": "http", "method": "POST", "path": _PATH})
    assert told[0]["status"] == status
    assert len(turns) == waits
