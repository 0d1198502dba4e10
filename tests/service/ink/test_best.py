"""The best of several draws of a line: which is kept, what is told, and what stays as it was."""

import asyncio
import json
import logging
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest

from contract.pieces import RESTS
from service.errors import InvalidRequest
from service.http.keys import new_key
from service.ink import best
from service.ink.best import LEAST_LEGIBLE, Best, judge_of, only_judge
from service.ink.line import InkPiece
from service.ink.pen import LinePen
from tests.service.ink.conftest import Judge
from tests.service.serving import bearing, eventually, listening, on_cpu, running, settings
from tests.service.writing import InkService

_TEXT = "an even keel"
_WAVE = [[x, 40 * np.sin(x / 9) + 60] for x in np.arange(0.0, 300.0, 1.5).tolist()]
_OWN = {"strokes": [_WAVE[:90], _WAVE[90:]], "text": "two waves"}
_EVERY_HAND = pytest.mark.parametrize(
    "hand", ["made-up", "hasty", _OWN], ids=["made-up", "hasty", "own"]
)
_DRAWS = 4


@_EVERY_HAND
def test_the_most_legible_of_the_draws_is_kept(pen: InkService, judged: Judge, hand: Any) -> None:
    body = {"text": _TEXT, "seed": 5, "style": hand}
    alone = [pen.strokes(**body, candidate=number)[0] for number in range(_DRAWS)]
    legibility, softened = zip(*(judged(_TEXT, ink) for ink in alone), strict=True)
    (line,) = pen.lines(**body, best_of=_DRAWS)
    assert len({str(ink) for ink in alone}) == _DRAWS
    assert line["candidate"] == int(np.argmax(softened))
    assert line["legibility"] == pytest.approx(legibility[line["candidate"]], abs=1e-4)
    assert line["strokes"] == alone[line["candidate"]]


def test_draws_are_compared_by_a_reader_that_is_less_sure(ink: InkService, judged: Judge) -> None:
    others, kept = 0, set[int]()
    for seed in range(12):
        body = {"text": _TEXT, "seed": seed, "style": None}
        alone = [ink.strokes(**body, candidate=number)[0] for number in range(_DRAWS)]
        legibility, softened = zip(*(judged(_TEXT, ink) for ink in alone), strict=True)
        assert ink.lines(**body, best_of=_DRAWS)[0]["candidate"] == int(np.argmax(softened))
        kept.add(int(np.argmax(softened)))
        others += int(np.argmax(softened)) != int(np.argmax(legibility))
    assert others
    assert len(kept) > 1  # or the first would do


def test_a_line_that_is_squeezed_is_judged_as_it_is_shown(ink: InkService, judged: Judge) -> None:
    body = {"text": _TEXT, "seed": 5, "style": "made-up", "best_of": 2, "width": 360}
    (line,), (wide,) = ink.lines(**body), ink.strokes(**body | {"width": 2000})
    assert line["strokes"] != wide
    assert line["legibility"] == pytest.approx(judged(_TEXT, line["strokes"])[0], abs=1e-4)
    assert line["legibility"] != pytest.approx(judged(_TEXT, wide)[0], abs=1e-4)


def test_draws_are_made_ready_for_the_judge_beside_the_event_loop(
    ink: InkService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixteen that lose their way end at once, and all others waited for 50 ms."""
    move, moved = LinePen.move, list[int]()

    def noted(pen: LinePen, offsets: np.ndarray) -> np.ndarray:
        with suppress(RuntimeError):
            asyncio.get_running_loop()
            moved.append(len(offsets))
        return move(pen, offsets)

    monkeypatch.setattr(LinePen, "move", noted)
    (line,) = ink.lines(text=_TEXT, seed=5, best_of=_DRAWS)
    assert sum(moved) == sum(map(len, line["strokes"]))


def test_one_draw_is_what_it_was(pen: InkService) -> None:
    body = {"text": "as it was\nline by line", "seed": 9, "return_state": True}
    one, asked, first = (
        pen.write(**body, **more) for more in ({}, {"best_of": 1}, {"candidate": 0})
    )
    for name in ("lines", "usage", "state"):
        assert one[name] == asked[name] == first[name]
    assert all(line.keys() == {"text", "strokes", "finish_reason"} for line in one["lines"])


@_EVERY_HAND
def test_every_line_of_a_page_can_be_drawn_alone(pen: InkService, hand: Any) -> None:
    texts = ["one line", "and", "a third, which is longer"]
    look = {"width": 2000, "return_state": True}
    begin = {"seed": 5, "style": hand} | look
    whole = pen.write(**begin, text="\n".join(texts), best_of=3)
    assert pen.model.codec.decode(whole["state"]).choice == 0  # whoever goes on chooses anew
    assert len({line["candidate"] for line in whole["lines"]}) > 1  # or the first would do
    options = begin
    for number, text in enumerate(texts):
        told = whole["lines"][number]
        part = pen.write(**options, text="\n" * number + text, candidate=told["candidate"])
        assert part["lines"][-1]["strokes"] == told["strokes"]
        options = {"state": part["state"]} | look
    assert part["state"] == whole["state"]


@_EVERY_HAND
def test_a_stream_is_the_whole_answer_line_by_line(pen: InkService, hand: Any) -> None:
    body = {"text": "two\n\nlines", "seed": 6, "style": hand, "best_of": 3, "return_state": True}
    whole = pen.write(**body)
    assert pen.streamed_strokes(**body) == [line["strokes"] for line in whole["lines"]]
    _, *events, last = pen.events(**body)
    assert last == {"usage": whole["usage"], "state": whole["state"]}
    ends = [event for event in events if "finish_reason" in event]
    names = ("finish_reason", "legibility", "candidate")
    assert [{n: e[n] for n in names if n in e} for e in ends] == [
        {n: line[n] for n in names if n in line} for line in whole["lines"]
    ]
    # The ink of a character at a time, so that whoever shows it can follow the text.
    for number, text in enumerate(("two", "", "lines")):
        told = [e["character"] for e in events if e["line"] == number and "points" in e]
        assert all(before != after for before, after in pairwise(told))
        assert all(character < len(text) for character in told)
        assert told or not text
    assert len(events) > len(ends) + 2


@on_cpu
def test_slots_chunks_and_runner_change_nothing(ink: InkService, narrow: InkService) -> None:
    body = {"text": "one\nand another", "seed": 8, "best_of": 5, "return_state": True}
    here, there = (service.write(**body) for service in (ink, narrow))
    assert here["lines"] == there["lines"]
    assert here["state"] == there["state"]


def test_marks_of_letters_are_no_matter_of_the_reader(ink: InkService) -> None:
    plain, marked = (ink.lines(text=text, seed=2, best_of=3)[0] for text in ("uber", "\u00fcber"))
    told = ("legibility", "candidate")
    assert [marked[name] for name in told] == [plain[name] for name in told]
    assert len(marked["strokes"]) > len(plain["strokes"])


@pytest.mark.parametrize("page", [None, {"width": 150, "height": 30}], ids=["px", "sheets"])
def test_a_line_is_as_legible_wherever_it_stands(ink: InkService, page: Any) -> None:
    """On sheets of one line too."""
    body = {"seed": 5, "style": "hasty", "best_of": 3, "page": page, "margin": 5}
    first, third = (ink.lines(text=f"{above}{_TEXT}", **body)[-1] for above in ("", "\n\n"))
    assert third["candidate"] == first["candidate"]
    # Where it stands rounds the places of its points.
    assert third["legibility"] == pytest.approx(first["legibility"], abs=2e-4)


def test_an_unreadable_line_is_never_silent(ink: InkService) -> None:
    body = {"text": "a reader of random weights\nreads nothing", "seed": 1, "best_of": 2}
    lines = ink.lines(**body)
    assert [line["finish_reason"] for line in lines] == ["unreadable"] * len(lines)
    least = min(line["legibility"] for line in lines)
    assert LEAST_LEGIBLE <= least < best.UNREADABLE
    ends = [event["finish_reason"] for event in ink.events(**body) if "finish_reason" in event]
    assert ends == ["unreadable"] * len(lines)
    headers = ink.post(**body).headers
    assert float(headers["X-Evenkeel-Legibility"]) == least
    assert int(headers["X-Evenkeel-Unreadable"]) == len(lines)
    assert "X-Evenkeel-Legibility" not in ink.post(text="one draw").headers


@pytest.mark.in_process
def test_of_a_page_the_lines_that_are_not_legible_are_counted(
    ink: InkService, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"text": "one\ntwo, too\nthree", "seed": 1, "best_of": 2}
    legible = sorted(line["legibility"] for line in ink.lines(**body))
    assert legible[0] < legible[1]
    monkeypatch.setattr(best, "UNREADABLE", legible[1])
    headers = ink.post(**body).headers
    assert int(headers["X-Evenkeel-Unreadable"]) == 1
    assert float(headers["X-Evenkeel-Legibility"]) == legible[0]


@pytest.mark.parametrize(("legibility", "readable"), [(0.0, True), (-2.0, True), (-2.0001, False)])
def test_the_threshold_is_the_stated_one(legibility: float, readable: bool) -> None:
    assert Best(0, InkPiece(), legibility).readable == readable


def test_all_draws_are_work(pen: InkService) -> None:
    def counted() -> tuple[float, ...]:
        names = ("requests_finished_total", "generation_tokens_total", "prompt_tokens_total")
        labels: list[dict[str, str]] = [{"reason": "stop"}, {}, {}]
        return tuple(
            pen.metric(n, model="scrawl", **more) for n, more in zip(names, labels, strict=True)
        )

    before = counted()
    usage = pen.write(text="four\nfive", seed=3, best_of=_DRAWS)["usage"]
    jobs, points, characters = (a - b for a, b in zip(counted(), before, strict=True))
    assert (jobs, characters) == (2 * _DRAWS, 8 * _DRAWS)
    assert usage == {"characters": 8, "points": points}


def test_a_key_pays_for_all_draws(tmp_path: Path, inks: Path) -> None:
    key = new_key(tmp_path / "keys.toml", "slow", bytes_per_minute=1000)
    with running(settings(inks, keys=tmp_path / "keys.toml")) as service:

        def ask(best_of: int) -> int:
            body = {"text": _TEXT, "seed": 1, "best_of": best_of, "format": "json"}
            return service.client.post(
                "/v1/handwriting", json=body, headers=bearing(key)
            ).status_code

        assert [ask(1) for _ in range(4)] == [200] * 4
        assert ask(16) == 200
        assert ask(1) == 429


@pytest.mark.in_process
def test_their_reading_is_work_too(ink: InkService, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="evenkeel.request"):
        ink.write(text=_TEXT, seed=1)
        ink.write(text=_TEXT, seed=1, best_of=_DRAWS)
    one, several = (json.loads(record.message) for record in caplog.records)
    assert one["steps"] == 0
    assert several["steps"] > _DRAWS * (1 + RESTS)


def test_draws_that_nobody_waits_for_end(inks: Path) -> None:
    with listening(settings(inks, slots=4)) as (url, app), httpx.Client() as client:
        service = InkService(app, client)  # type: ignore[arg-type]
        lost = {"text": "nobody will ever read this, " * 40, "state": service.token(kappa=-1000.0)}
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(
                f"{url}/v1/handwriting",
                json=lost | {"best_of": 4},
                timeout=httpx.Timeout(60, read=0.3),
            )
        assert eventually(lambda: _at_rest(service))
        # Every line would take 40 points a character.
        assert 0 < service.metric("steps_total", model="scrawl") < 4 * 40 * len(lost["text"])


def _at_rest(service: InkService) -> bool:
    """Whether neither the pen nor the reader has done anything for a while."""

    def steps() -> list[float]:
        return [service.metric("steps_total", model=name) for name in ("scrawl", "squint")]

    before = steps()
    time.sleep(0.3)
    return steps() == before


def test_a_deadline_ends_all_draws(ink: InkService) -> None:
    lost = {"text": "much too long for that, " * 40, "state": ink.token(kappa=-1000.0)}
    assert ink.post(**lost, best_of=8, deadline_s=0.05).status_code == 504
    assert eventually(lambda: not ink.metric("requests_running", model="scrawl"))


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"best_of": 0}, "best_of"),
        ({"best_of": 17}, "best_of"),
        ({"best_of": 2.5}, "best_of"),
        ({"best_of": 2, "judge": "scrawl"}, "judge"),
        ({"best_of": 2, "judge": "nobody"}, "judge"),
        ({"candidate": 16}, "candidate"),
        ({"candidate": -1}, "candidate"),
        ({"judge": "squint"}, "judge"),
        ({"best_of": 2, "candidate": 1}, "candidate"),
    ],
    ids=str,
)
def test_what_cannot_be_chosen_is_refused(
    ink: InkService, body: dict[str, Any], param: str | None
) -> None:
    refused = ink.post(text="a", **body)
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == param


def test_a_judge_may_be_named(ink: InkService) -> None:
    body = {"text": "a", "seed": 1, "best_of": 2}
    assert ink.lines(**body, judge="squint") == ink.lines(**body)


def test_without_a_reader_the_refusal_says_so(tmp_path: Path, inks: Path) -> None:
    copytree(inks / "scrawl", tmp_path / "scrawl")
    with running(settings(tmp_path)) as started:
        service = InkService(started.app, started.client)
        refused = service.post(text="a", best_of=2)
        assert refused.status_code == 400
        assert refused.json()["error"]["param"] == "best_of"
        assert refused.json()["error"]["message"].endswith("this service has: none")
        assert service.post(text="a").status_code == 200


def _judges(**ready: bool) -> Any:
    """Models of which these read."""
    found = [
        SimpleNamespace(name=name, engine=SimpleNamespace(ready=is_ready))
        for name, is_ready in ready.items()
    ]
    return SimpleNamespace(of=lambda kind: found)


def test_of_several_readers_one_has_to_be_named() -> None:
    two = _judges(one=True, other=True)
    with pytest.raises(InvalidRequest, match="this service has: one, other") as refused:
        judge_of(two, None)
    assert refused.value.param == "best_of"
    assert judge_of(two, "other").name == "other"
    assert only_judge(two) is None


def test_a_preview_does_not_wait_for_a_reader() -> None:
    assert only_judge(_judges(one=False)) is None
    assert only_judge(_judges(one=True)) is not None


def test_a_reader_that_is_not_ready_is_not_waited_for(inks: Path) -> None:
    with running(settings(inks)) as started:
        started.app.state.models["squint"].engine.ready = False
        service = InkService(started.app, started.client)
        before = service.metric("steps_total", model="scrawl")
        for stream in (False, True):
            refused = service.post(text="a", best_of=2, stream=stream)
            assert refused.status_code == 503
            assert "squint" in refused.json()["error"]["message"]
        assert service.metric("steps_total", model="scrawl") == before


def test_a_reader_that_goes_while_it_judges_is_named(inks: Path) -> None:
    body = {"text": f"{_TEXT}\n" * 100, "best_of": 2, "stream": True}
    with (
        listening(settings(inks)) as (url, app),
        httpx.stream("POST", f"{url}/v1/handwriting", json=body, timeout=60) as answer,
    ):
        events = (line[6:] for line in answer.iter_lines() if line.startswith("data: {"))
        next(events)
        app.state.models["squint"].engine.stop()
        error = json.loads([*events][-1])["error"]
    assert error["code"] == "not_ready"
    # By where it is caught: at work, or between two lines.
    assert error["message"].startswith("squint, which judges the lines: the model has ")


def test_a_reader_that_fails_is_named(inks: Path) -> None:
    with running(settings(inks)) as started:
        started.app.state.models["squint"].engine._slots.runner.run = None  # a run raises
        failed = InkService(started.app, started.client).post(text="a", best_of=2)
        assert failed.status_code == 500
        told = failed.json()["error"]["message"]
        assert told.startswith("squint, which judges the lines: the run")
