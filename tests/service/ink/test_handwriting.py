"""What a request for handwriting is answered with: lines, formats, events, and where it ends."""

import asyncio
import base64
import io
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, get_args
from xml.etree import ElementTree

import httpx
import pytest
from PIL import Image

from contract.alphabets import LONGEST_LINE
from service.ink.breaking import width_of
from service.ink.routes import _answer
from service.ink.schemas import Format, HandwritingRequest
from tests.service.altered import copy_of
from tests.service.serving import Service, eventually, listening, settings, unheard
from tests.service.writing import InkService

_SVG = "{http://www.w3.org/2000/svg}"
_INKML = "{http://www.w3.org/2003/InkML}"
_DRAWN = [name for name in get_args(Format) if name != "json"]
_LONG = "The quick brown fox jumps over the lazy dog; how it jumps! " * 4
_LOST = -1000.0  # a window that far to the left never gets to the end of a text
_ENDLESS = {"text": "nobody will ever read all of this, " * 40, "bias": 0}


def _points(line: dict[str, Any]) -> int:
    return sum(map(len, line["strokes"]))


def test_a_json_answer_is_what_the_contract_says(ink: InkService) -> None:
    answer = ink.write(text="an even\nkeel", seed=5, width=900, line_height=50)
    assert answer.keys() == {
        "id", "object", "created", "model", "system_fingerprint", "seed", "style", "width",
        "height", "lines", "usage",
    }  # fmt: skip
    assert (answer["object"], answer["model"], answer["seed"]) == ("handwriting", "scrawl", 5)
    assert answer["id"] != ink.write(text="an even\nkeel", seed=5)["id"]
    assert abs(answer["created"] - time.time()) < 60
    assert (answer["style"], answer["width"], answer["height"]) == ("hasty", 900, 150)
    assert [line["text"] for line in answer["lines"]] == ["an even", "keel"]
    points = sum(map(_points, answer["lines"]))
    assert answer["usage"] == {"characters": 11, "points": points}
    facts = ink.client.get("/v1/models/scrawl").json()
    assert facts["kind"] == "handwriting"
    assert facts["system_fingerprint"] == answer["system_fingerprint"]


def test_a_state_comes_when_it_is_asked_for(ink: InkService) -> None:
    assert "state" in ink.write(text="a", return_state=True)
    assert "state" not in ink.write(text="a")
    assert "state" in ink.events(text="a", return_state=True)[-1]


def test_a_text_that_is_over_ends_its_line(pen: InkService) -> None:
    for text in ("I", "a few words", "x" * LONGEST_LINE):
        (line,) = pen.lines(text=text, seed=1, width=4096)
        assert line["finish_reason"] == "stop"
        assert 0 < _points(line) < 40 * len(text) + 100
        *_, (*_, up) = [p for e in pen.events(text=text, seed=1) for p in e.get("points", [])]
        assert up == 1  # a line is not over while the pen is on the paper


def test_a_line_that_has_lost_its_way_ends_by_its_length(pen: InkService) -> None:
    lost = pen.token(kappa=_LOST)
    for text, points in (("a", 140), ("lost", 260)):
        (line,) = pen.lines(text=text, state=lost)
        assert line["finish_reason"] == "length"
        assert _points(line) == points


def test_the_hand_of_a_first_line_that_was_cut_off_does_not_lose_the_others(
    pen: InkService,
) -> None:
    first, second = pen.lines(text="a\nlost", state=pen.token(kappa=_LOST))
    assert (first["finish_reason"], _points(first)) == ("length", 140)
    assert _points(second) < 260


@pytest.mark.parametrize("width", [160, 500, 800, 4096])
def test_a_long_text_is_broken_into_lines_that_fit(ink: InkService, width: int) -> None:
    text = _LONG + "Donaudampfschifffahrtsgesellschaftskapitaen"
    body = {"text": text, "width": width, "style": "hasty"}
    told = ink.post(**body, first_line=10**6).json()["error"]["message"]
    # To see where it is broken, no more has to be written than the last line.
    lines = ink.events(**body, first_line=int(told.split()[-1]))[0]["lines"]
    advance = next(s.advance for s in ink.model.manifest.styles if s.id == "hasty")
    assert advance is not None
    room = int(10 * ((width - 64) * 0.93) / (advance * 64 / 14))
    widest = max(sum(map(width_of, line)) for line in lines)
    assert len(lines) > 4
    assert max(map(len, lines)) <= LONGEST_LINE
    assert widest <= room
    assert widest >= room - 90 or max(map(len, lines)) > LONGEST_LINE - 8
    assert "".join(lines).replace(" ", "").replace("-", "").startswith(_LONG.replace(" ", ""))


def test_an_svg_has_a_path_for_each_stroke(ink: InkService) -> None:
    body = {"text": "a < b & c\nd", "seed": 3, "color": "#a0B1c2", "stroke_width": 3.5}
    answer = ink.post(**body)
    assert answer.headers["content-type"].startswith("image/svg+xml")
    root = ElementTree.fromstring(answer.content)
    assert root.findtext(f"{_SVG}title") == "a < b & c\nd"
    (group,) = root.iter(f"{_SVG}g")
    assert (group.attrib["stroke"], group.attrib["stroke-width"]) == ("#a0B1c2", "3.5")
    ends = ("stroke-linecap", "stroke-linejoin")  # of a pen that is round
    assert [group.attrib[end] for end in ends] == ["round", "round"]
    strokes = [stroke for line in ink.strokes(**body) for stroke in line]
    paths = [path.attrib["d"] for path in root.iter(f"{_SVG}path")]
    assert len(paths) == len(strokes) > 4
    for path, ((x, y), *_) in zip(paths, strokes, strict=True):
        assert path.startswith(f"M{x:g},{y:g} ")
    assert ink.post(**body, format="svg").content == answer.content


def test_a_png_is_the_page(ink: InkService) -> None:
    answer = ink.post(text="a dot", seed=3, format="png", width=300, line_height=40)
    assert answer.headers["content-type"] == "image/png"
    assert answer.content.startswith(b"\x89PNG\r\n\x1a\n")
    image = Image.open(io.BytesIO(answer.content)).convert("L")
    assert image.size == (300, 80)
    assert image.getextrema()[0] < 128 < image.getextrema()[1] == 255


def test_an_ink_file_has_the_points_of_the_json(ink: InkService) -> None:
    body = {"text": "some  ink\nin\u00a0lines", "seed": 3}  # as it is written has plain spaces
    answer = ink.post(**body, format="inkml")
    assert answer.headers["content-type"].startswith("application/inkml+xml")
    root = ElementTree.fromstring(answer.content)
    assert root.findtext(f"{_INKML}annotation") == "some ink\nin lines"
    traces = [
        [[float(n) for n in point.split()] for point in str(trace.text).split(",")]
        for trace in root.findall(f"{_INKML}trace")
    ]
    assert traces == [stroke for line in ink.strokes(**body) for stroke in line]


@pytest.mark.parametrize("format_", _DRAWN)
def test_a_stream_ends_with_the_drawing_it_was_asked_for(ink: InkService, format_: str) -> None:
    body = {"text": "drawn\nwhole", "seed": 4, "format": format_}
    *_, last = ink.events(**body)
    drawing = last["drawing"]
    whole = ink.post(**body)
    as_text = whole.headers["content-type"] not in ("image/png", "application/pdf")
    assert whole.content == (drawing.encode() if as_text else base64.b64decode(drawing))
    assert "drawing" not in ink.events(text="points alone")[-1]


@pytest.mark.parametrize("format_", _DRAWN)
def test_headers_tell_the_seed_which_gives_the_bytes_again(ink: InkService, format_: str) -> None:
    answer = ink.post(text="chance", format=format_)
    seed = int(answer.headers["X-Evenkeel-Seed"])
    fingerprint = ink.client.get("/v1/models/scrawl").json()["system_fingerprint"]
    assert answer.headers["X-Evenkeel-Fingerprint"] == fingerprint
    again = ink.post(text="chance", format=format_, seed=seed)
    assert again.content == answer.content
    assert ink.post(text="chance", format=format_, seed=seed + 1).content != answer.content


def test_the_events_of_a_stream_are_those_of_the_contract(pen: InkService) -> None:
    head, *events, last = pen.events(text="first\n\nthe third", seed=2, color="#fff")
    assert head.keys() == {
        "id", "object", "created", "model", "system_fingerprint", "seed", "style", "width",
        "height", "stroke_width", "thinning", "color", "lines",
    }  # fmt: skip
    assert head["lines"] == ["first", "", "the third"]
    assert (head["stroke_width"], head["color"], head["seed"]) == (2.0, "#fff", 2)
    numbers = [event["line"] for event in events]
    assert numbers == sorted(numbers)
    for number, text in enumerate(head["lines"]):
        *written, end = [event for event in events if event["line"] == number]
        assert end == {"line": number, "finish_reason": "stop"}
        assert bool(written) == bool(text)
        for event in written:
            assert event.keys() == {"line", "points", "character"}
            assert 0 <= event["character"] < len(text)
        assert not text or written[-1]["character"] >= len(text) - 2
    points = [point for event in events for point in event.get("points", [])]
    assert {up for *_, up in points} == {0, 1}
    assert last == {"usage": {"characters": 14, "points": len(points)}}


def test_first_points_come_before_the_line_is_written(pen: InkService) -> None:
    _, first, *_ = pen.events(text="a line of some length", seed=2)
    assert 0 < len(first["points"]) <= 8


def test_the_only_model_need_not_be_named(ink: InkService, scan: Service) -> None:
    assert ink.lines(text="a", seed=1, model="scrawl") == ink.lines(text="a", seed=1)
    refused = scan.client.post("/v1/handwriting", json={"text": "a"})
    assert refused.status_code == 404
    assert refused.json()["error"]["message"].endswith("those that can do this: none")


def test_neither_kind_of_model_does_the_others_work(ink: InkService) -> None:
    refused = ink.post(text="a", model="letters")
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "model")
    assert "'letters' is of kind language, which cannot" in refused.json()["error"]["message"]
    refused = ink.client.post("/v1/completions", json={"model": "scrawl", "prompt": "a"})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "model")
    assert "'scrawl' is of kind handwriting, which cannot" in refused.json()["error"]["message"]


def test_what_was_written_is_counted(pen: InkService) -> None:
    def counts() -> list[float]:
        names = ("requests_finished_total", "generation_tokens_total", "prompt_tokens_total")
        labels = [{"reason": "stop"}, {}, {}]
        return [
            pen.metric(n, model="scrawl", **more) for n, more in zip(names, labels, strict=True)
        ]

    before = counts()
    usage = pen.write(text="four\nfive")["usage"]
    pen.events(text="ab")
    lines, points, characters = (after - b for after, b in zip(counts(), before, strict=True))
    assert (lines, characters) == (3, 10)
    assert points > usage["points"]
    assert pen.metric("time_to_first_token_seconds_count", model="scrawl") > 0


@pytest.fixture(scope="module", params=["scan", "slots"])
def server(request: pytest.FixtureRequest, inks: Path) -> Iterator[tuple[str, InkService]]:
    """A real server with few slots, and its application to look into."""
    with (
        listening(settings(inks, runner=request.param, slots=2)) as (url, app),
        httpx.Client() as client,
    ):
        yield url, InkService(app, client)  # type: ignore[arg-type]


def _at_rest(service: InkService) -> bool:
    """Whether nothing runs or waits, and nothing did for a while: between two lines nothing does
    either."""
    steps = service.metric("steps_total", model="scrawl")
    time.sleep(0.2)
    names = ("requests_running", "requests_waiting")
    busy = any(service.metric(name, model="scrawl") for name in names)
    return not busy and service.metric("steps_total", model="scrawl") == steps


def _leave(url: str, body: dict[str, Any]) -> None:
    """Hang up on a stream once its head has come."""
    with httpx.stream("POST", f"{url}/v1/handwriting", json=body, timeout=60) as response:
        assert '"object": "handwriting"' in next(response.iter_text())


def test_a_stream_that_is_left_goes_on_with_no_other_line(server: tuple[str, InkService]) -> None:
    url, service = server
    lines = service.metric("requests_finished_total", model="scrawl", reason="length")
    _leave(url, _ENDLESS | {"stream": True, "state": service.token(kappa=_LOST)})
    assert eventually(lambda: _at_rest(service))
    finished = service.metric("requests_finished_total", model="scrawl", reason="length") - lines
    assert finished < 20  # of 40


@pytest.fixture
def begun(ink: InkService, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The jobs of an engine that does nothing of them."""
    jobs: list[Any] = []
    monkeypatch.setattr(ink.model.engine, "submit", lambda more, **_: jobs.extend(more))
    return jobs


@pytest.mark.in_process
def test_a_stream_whose_client_left_before_it_began_is_given_up(
    ink: InkService, begun: list[Any]
) -> None:
    async def leave() -> None:
        body = HandwritingRequest(text="a", stream=True)
        await unheard(await _answer(body, ink.model, None, ink.app.state.aside))

    asyncio.run(leave())
    assert [job.cancelled for job in begun] == [True]


@pytest.mark.in_process
def test_a_page_that_is_left_between_two_lines_is_given_up(
    ink: InkService, begun: list[Any]
) -> None:
    """Its first line with a text waits from the beginning, whatever lines come before."""

    async def leave() -> None:
        body = HandwritingRequest(text="\n" * 100 + "a")
        page = asyncio.create_task(_answer(body, ink.model, None, ink.app.state.aside))
        while not begun:
            await asyncio.sleep(0)
        page.cancel()
        await asyncio.wait([page])

    asyncio.run(leave())
    assert [job.cancelled for job in begun] == [True]


def test_a_line_that_is_left_is_not_written_to_its_end(inks: Path, tmp_path: Path) -> None:
    # A step over so many slots takes milliseconds, so the line has seconds to go.
    copy_of(inks / "scrawl", tmp_path)
    chosen = settings(tmp_path, runner="slots", slots=256, chunk_steps=1, first_chunk_steps=1)
    with listening(chosen) as (url, app), httpx.Client() as client:
        service = InkService(app, client)  # type: ignore[arg-type]
        before = service.metric("steps_total", model="scrawl")
        line = {"text": "x" * LONGEST_LINE, "width": 4096, "state": service.token(kappa=_LOST)}
        _leave(url, line | {"stream": True})
        assert eventually(lambda: _at_rest(service))
        assert service.metric("steps_total", model="scrawl") - before < 40 * LONGEST_LINE


def test_a_whole_answer_that_is_not_waited_for_ends(server: tuple[str, InkService]) -> None:
    url, service = server
    before = service.metric("steps_total", model="scrawl")
    body = _ENDLESS | {"state": service.token(kappa=_LOST)}
    with closing(HTTPConnection(url.removeprefix("http://"))) as hasty:
        kind = {"content-type": "application/json"}
        hasty.request("POST", "/v1/handwriting", json.dumps(body), kind)
        assert eventually(lambda: service.metric("steps_total", model="scrawl") > before)
    assert eventually(lambda: _at_rest(service))
    steps = service.metric("steps_total", model="scrawl") - before
    assert 0 < steps < 40 * len(_ENDLESS["text"])


def test_more_pages_than_slots_are_all_written(server: tuple[str, InkService]) -> None:
    url, _ = server
    body = {"text": "one\ntwo", "seed": 7, "format": "svg"}
    with ThreadPoolExecutor(8) as pool:
        pages = pool.map(
            lambda _: httpx.post(f"{url}/v1/handwriting", json=body, timeout=60).content, range(12)
        )
        assert len(set(pages)) == 1
