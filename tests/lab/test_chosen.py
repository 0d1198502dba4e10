"""The best of several draws beside one: what is counted, and that goals can be missed."""

import json
from collections.abc import Iterator
from math import ceil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from contract.alphabets import LONGEST_LINE
from export.results import machine
from lab.legibility import chosen
from lab.legibility.chosen import (
    DRAWS,
    ONE,
    WAYS,
    Drawn,
    Streamed,
    draw,
    draw_all,
    judge,
    misread,
    stream,
)
from lab.legibility.goal import Goal
from lab.legibility.reading import PAGE, Errors, Reader

_TEXTS = {"invented": ["even keel", "a keel"], "plain": ["sails"]}


def _drawn(seconds: float, finish_reason: str = "stop") -> Drawn:
    return Drawn([[[30.0, 20.0], [60.0, 40.0]]], None, finish_reason, seconds)


def _says(*readings: str) -> Reader:
    said: Iterator[str] = iter(readings)
    return lambda png: next(said)


def _ways(count: int, slower: float, reason: str = "stop") -> dict[str, list[Drawn]]:
    return {way: [_drawn(1.0 if way == ONE else slower, reason)] * count for way in WAYS}


def _streamed(*first_lines_s: float) -> list[dict[str, Streamed]]:
    """First lines that take so many times what one draw takes."""
    times = [dict.fromkeys(WAYS, s) | {ONE: 1.0} for s in first_lines_s]
    return [{way: Streamed(0.25, s / 2) for way, s in of.items()} for of in times]


def test_errors_and_times_are_those_of_the_best_over_those_of_one() -> None:
    drawn = {"invented": _ways(2, 1.5, "unreadable"), "plain": _ways(1, 1.0)}
    drawn["invented"][ONE] = [_drawn(1.0)] * 2  # which nobody has read
    # One draw of every text, then the best of several, then the best by words.
    nothing = ("eXXX keel", "a kXel", *("even keel", "a keel") * 2, *("sails",) * 3)
    with pytest.raises(ZeroDivisionError):  # nothing misread in one draw has no ratio
        judge(_TEXTS, drawn, _streamed(1.2), _says(*nothing))
    reader = _says("eXXX keel", "a kXel", "eXen keel", "a keel", "eXXn keel", "a keel",
                   "sXils", "sails", "sails")  # fmt: skip
    content, goals = judge(_TEXTS, drawn, _streamed(1.2, 1.4, 9.0), reader)
    assert [content["invented"][way]["edits"] for way in WAYS] == [4, 1, 2]
    assert [content["invented"][way]["ratio"] for way in list(WAYS)[1:]] == [0.25, 0.5]
    assert [content[name]["by word"]["unreadable"] for name in drawn] == [2, 0]
    assert content["streamed"]["by word"] == {"first_ink_s": 0.25, "first_line_s": 0.7}
    assert [(goal.value, goal.met) for goal in goals] == [
        (0.25, True), (1.5, True), (1.4, True), (0.5, True), (1.5, True), (1.4, True),
    ]  # fmt: skip


def test_a_line_without_ink_is_read_as_nothing() -> None:
    blank = Drawn([], None, "stop", 1.0)
    assert misread("keel", blank, _says("")) == Errors(4, 4)


def test_a_goal_that_is_missed_by_little_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though what is told of it is rounded to what was wanted."""
    found = iter([Errors(100_000, 200_000), Errors(70_004, 200_000), Errors(70_000, 200_000)])
    monkeypatch.setattr(chosen, "misread", lambda *_: next(found))
    drawn = {"invented": _ways(1, 2.0004)}
    content, goals = judge({"invented": ["keel"]}, drawn, _streamed(1.0))
    told = [content["invented"][way] for way in list(WAYS)[1:]]
    assert [(one["ratio"], one["time_ratio"]) for one in told] == [(0.7, 2.0)] * 2
    assert [goal.met for goal in goals] == [False, False, True, True, False, True]


def test_each_goal_can_be_missed() -> None:
    drawn = {"invented": _ways(2, 2.5), "plain": _ways(1, 1.0)}
    reader = _says(*("eXen keel", "a kXel") * 3, *("sXils",) * 3)
    _, goals = judge(_TEXTS, drawn, _streamed(1.6), reader)
    assert [goal.met for goal in goals] == [False] * 6


def test_a_time_is_the_median_over_texts_of_what_choosing_takes_longer() -> None:
    drawn = {"invented": _ways(3, 1.0), "plain": _ways(1, 1.0)}
    drawn["invented"]["by word"] = [_drawn(seconds) for seconds in (1.2, 9.0, 1.6)]
    texts = {"invented": ["keel"] * 3, "plain": ["keel"]}
    content, _ = judge(texts, drawn, _streamed(1.0), lambda _: "kexl")
    told = content["invented"]["by word"]
    assert (told["time_ratio"], told["median_s"]) == (1.6, 1.6)
    assert content["invented"][ONE]["median_s"] == 1.0


def test_all_ways_are_asked_in_turns_with_one_seed_and_once_before_they_are_timed() -> None:
    asked: list[dict[str, Any]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(json.loads(request.content))
        line = {"strokes": [], "finish_reason": f"{len(asked)}"}
        return httpx.Response(200, json={"lines": [line]})

    with httpx.Client(base_url="http://any", transport=httpx.MockTransport(answer)) as client:
        found = draw_all(client, ["ahoy", "keel"])
    assert [(body["text"], body["seed"]) for body in asked] == [
        *[("ahoy", 0)] * 3, *[("ahoy", 0)] * 3, *[("keel", 1)] * 3,
    ]  # fmt: skip
    ways = [(None, None), (DRAWS, None), (DRAWS, "word")]
    assert [(body.get("best_of"), body.get("best_by")) for body in asked] == ways * 3
    numbers = [[drawn.finish_reason for drawn in found[way]] for way in WAYS]
    assert numbers == [["4", "7"], ["5", "8"], ["6", "9"]]


def test_a_stream_that_breaks_says_why() -> None:
    events = 'data: {"points": [[1, 2, 0]]}\n\ndata: {"error": {"message": "a rope tore"}}\n\n'
    breaks = httpx.MockTransport(lambda _: httpx.Response(200, text=events))
    with (
        httpx.Client(base_url="http://any", transport=breaks) as client,
        pytest.raises(ValueError, match="a rope tore"),
    ):
        stream(client, ONE, seed=0)


def test_a_page_is_timed_to_its_first_ink_and_to_the_end_of_its_first_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = [
        {"id": "page"}, {"points": [[1, 2, 0]]}, {"points": [[3, 2, 1]]},
        {"finish_reason": "stop"}, {"points": [[1, 9, 1]]},
    ]  # fmt: skip
    events = "".join(f"data: {json.dumps(event)}\n\n" for event in told) + "data: [DONE]\n\n"
    asked: list[dict[str, Any]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(json.loads(request.content))
        return httpx.Response(200, text=events)

    answers = httpx.MockTransport(answer)
    moments = iter(range(10, 20))
    monkeypatch.setattr(chosen, "time", SimpleNamespace(perf_counter=lambda: float(next(moments))))
    with httpx.Client(base_url="http://any", transport=answers) as client:
        assert stream(client, ONE, seed=0) == Streamed(1.0, 2.0)
        stream(client, "by word", seed=3)
    one, by_word = asked
    assert (len(one["text"]), one["seed"], one["stream"]) == (2000, 0, True)
    assert by_word == one | {"seed": 3} | WAYS["by word"]


@pytest.mark.parametrize(("values", "code"), [((0.5, 0.5), 0), ((0.5, 1.5), 1)])
def test_what_a_service_was_asked_is_told_with_its_pens_and_readers_and_whether_it_did(
    values: tuple[float, ...], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goals = [Goal("any", value, 1.0) for value in values]
    data = [{"id": kind, "kind": kind, "system_fingerprint": f"fp_{kind}"}
            for kind in ("language", "handwriting", "reader")]  # fmt: skip
    served = httpx.MockTransport(lambda _: httpx.Response(200, json={"data": data}))
    client = httpx.Client(base_url="http://any", transport=served)
    asked: list[Any] = []
    monkeypatch.setattr(chosen.httpx, "Client", lambda **_: client)
    monkeypatch.setattr(chosen, "tesseract_version", lambda: "5")
    monkeypatch.setattr(chosen, "draw_all", lambda _, texts: asked.append(texts) or {})
    monkeypatch.setattr(chosen, "stream", lambda _, way, seed: (way, seed))
    monkeypatch.setattr(chosen, "judge", lambda *given: asked.append(given[2]) or ({"a": 1}, goals))
    out = tmp_path / "out.json"
    assert chosen.run(SimpleNamespace(url="http://any", told="as typed", out=out)) == code  # type: ignore[arg-type]
    told, shipped = (json.loads(file.read_text("utf-8")) for file in (out, chosen.RESULTS))
    assert [*told][:-1] == [*shipped][: len(told) - 1]
    assert (told["draws"], told["seed"]) == (shipped["draws"], shipped["seed"])
    assert told["machine"] == machine()
    assert told["models"] == {"handwriting": "fp_handwriting", "reader": "fp_reader"}
    assert (told["command"], told["tesseract"], told["a"]) == ("as typed", "5", 1)
    invented, plain, streamed = asked
    assert len(set(invented)) == len(plain) == 120
    assert max(map(len, invented)) <= LONGEST_LINE
    assert streamed == [{way: (way, seed) for way in WAYS} for seed in range(12)]


def test_a_service_that_cannot_be_asked_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = httpx.MockTransport(lambda _: httpx.Response(404, json={}))
    client = httpx.Client(base_url="http://any", transport=refused)
    monkeypatch.setattr(chosen.httpx, "Client", lambda **_: client)
    monkeypatch.setattr(chosen, "tesseract_version", lambda: "5")
    with pytest.raises(ConnectionError, match=r"^http://any: .*404"):
        chosen.run(SimpleNamespace(url="http://any", told="", out=tmp_path / "out.json"))  # type: ignore[arg-type]


def test_a_line_is_read_as_far_as_its_ink_goes() -> None:
    seen: list[bytes] = []
    ink = Drawn([[[30.0, 20.0], [90.0, 40.0], [50.0, 30.0]]], None, "stop", 1.0)
    misread("keel", ink, lambda png: seen.append(png) or "")
    assert int.from_bytes(seen[0][16:20]) == ceil(90 + PAGE.margin_px)


def test_lines_are_drawn_as_high_as_they_are_read_best() -> None:
    asked: list[dict[str, Any]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(json.loads(request.content))
        return httpx.Response(200, json={"lines": [{"strokes": [], "finish_reason": "stop"}]})

    with httpx.Client(base_url="http://any", transport=httpx.MockTransport(answer)) as client:
        draw(client, "keel", 3, ONE)
    assert asked[0]["line_height"] == PAGE.line_height_px
    assert asked[0]["width"] >= 4096  # so that it is one line
