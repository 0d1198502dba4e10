"""Whatever cannot be written by hand gets a 4xx with OpenAI's error body and a clear reason."""

import json
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.service.serving import eventually, held, running, settings
from tests.service.writing import InkService

_URL = "/v1/handwriting"
_JSON = {"content-type": "application/json"}
_LINE = [[i, i % 5] for i in range(40)]


def _style(**changes: Any) -> dict[str, Any]:
    return {"style": {"strokes": [_LINE], "text": "ab"} | changes}


def _raw(service: InkService, change: dict[str, Any], url: str = _URL) -> Any:
    # Not the client's own JSON, which has no word for a NaN.
    content = json.dumps({"text": "a"} | change).encode()
    return service.client.post(url, content=content, headers=_JSON)


def _error(response: Any, status: int = 400) -> dict[str, Any]:
    """The error of a response, its form checked."""
    assert response.status_code == status, response.text
    body = response.json()
    assert body.keys() == {"error"}
    error = body["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"
    assert error["message"]
    assert len(error["message"]) < 500
    return error


_WRONG = [
    ({"text": ""}, "text"),
    ({"text": " \n  \n"}, "text"),
    ({"text": None}, "text"),
    ({"text": 5}, "text"),
    ({"text": ["a"]}, "text"),
    ({"text": "x" * 2001}, "text"),
    ({"text": "\ud800"}, "text"),
    ({"text": "caf\u0436"}, "text"),
    ({"text": "a\x00b"}, "text"),
    ({"text": "\x7f"}, "text"),
    ({"text": "smile \U0001f989"}, "text"),
    ({"bias": -0.1}, "bias"),
    ({"bias": 5.01}, "bias"),
    ({"bias": float("nan")}, "bias"),
    ({"bias": float("inf")}, "bias"),
    ({"bias": "1"}, "bias"),
    ({"bias": True}, "bias"),
    ({"seed": 2**63}, "seed"),
    ({"seed": -(2**63) - 1}, "seed"),
    ({"seed": 1.5}, "seed"),
    ({"seed": True}, "seed"),
    ({"seed": "1"}, "seed"),
    ({"width": 159}, "width"),
    ({"width": 4097}, "width"),
    ({"width": 800.5}, "width"),
    ({"width": "800"}, "width"),
    ({"width": 10**30}, "width"),
    ({"line_height": 15.9}, "line_height"),
    ({"line_height": 400.1}, "line_height"),
    ({"line_height": float("nan")}, "line_height"),
    ({"stroke_width": 0.2}, "stroke_width"),
    ({"stroke_width": 40.1}, "stroke_width"),
    ({"stroke_width": float("-inf")}, "stroke_width"),
    ({"thinning": -0.01}, "thinning"),
    ({"thinning": 0.91}, "thinning"),
    ({"thinning": float("nan")}, "thinning"),
    ({"thinning": True}, "thinning"),
    ({"wander": -0.01}, "wander"),
    ({"wander": 0.21}, "wander"),
    ({"wander": float("nan")}, "wander"),
    ({"color": "red"}, "color"),
    ({"color": "#12345"}, "color"),
    ({"color": "#ggg"}, "color"),
    ({"color": "#fff\n"}, "color"),
    ({"color": '#fff" onload="alert(1)'}, "color"),
    ({"color": "url(#x)"}, "color"),
    ({"color": "#\uff11\uff11\uff11"}, "color"),
    ({"color": 5}, "color"),
    ({"format": "docx"}, "format"),
    ({"format": "SVG"}, "format"),
    ({"format": 5}, "format"),
    ({"stream": "yes"}, "stream"),
    ({"stream": 1}, "stream"),
    ({"return_state": 1}, "return_state"),
    ({"state": "forged"}, "state"),
    ({"state": "\ud800"}, "state"),
    ({"state": 5}, "state"),
    ({"model": 5}, "model"),
    ({"style": "nobody"}, "style"),
    ({"style": "\ud800"}, "style"),
    ({"style": 5}, "style"),
    ({"style": {}}, "style"),
    ({"style": {"strokes": [_LINE]}}, "style"),
    ({"style": {"text": "ab"}}, "style"),
    (_style(strokes=[]), "style"),
    (_style(strokes=[[]]), "style"),
    (_style(strokes=[_LINE, []]), "style"),
    (_style(strokes=[[[1]]]), "style"),
    (_style(strokes=[[[1, 2, 3]]]), "style"),
    (_style(strokes=[[["1", 2]]]), "style"),
    (_style(strokes=[[[True, 2]]]), "style"),
    (_style(strokes=[[[float("nan"), 2], *_LINE]]), "style"),
    (_style(strokes=[[[float("inf"), 2], *_LINE]]), "style"),
    (_style(strokes=[[[1e7, 2], *_LINE]]), "style"),
    (_style(strokes=[_LINE] * 201), "style"),
    (_style(strokes=[_LINE * 201]), "style"),
    (_style(text=""), "style"),
    (_style(text="   "), "style"),
    (_style(text="x" * 61), "style"),
    (_style(surprise=1), "style"),
    ({"surprise": 1}, "surprise"),
    ({"temperature": 1.0}, "temperature"),
    ({"n": 1}, "n"),
]


@pytest.mark.parametrize(("change", "field"), _WRONG, ids=lambda value: ascii(value)[:40])
def test_a_wrong_value_is_named(ink: InkService, change: dict[str, Any], field: str) -> None:
    error = _error(_raw(ink, change))
    assert error["param"] == field
    assert field in error["message"]


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"bias": 9.0}, ["9.0", "5"]),
        ({"width": 100}, ["100", "160"]),
        ({"text": "5 \u20b9 caf\u0436"}, ["'\u20b9', '\u0436'", "accents"]),
        ({"text": "x" * 2001}, ["text has 2,001 characters; at most 2,000 are taken"]),
        ({"text": ""}, ["at least 1 character"]),
        ({"text": "a\ud800"}, ["character 1 is half of a surrogate pair"]),
        (_style(text="x" * 61), ["style.text has 61 characters; at most 60 are taken"]),
        ({"text": " \n "}, ["nothing but spaces"]),
        ({"format": "docx"}, ["'docx'", "svg", "png"]),
        ({"stream": True, "resume": True, "format": "svg"}, ["resume", "json", "svg"]),
        ({"return_state": True}, ["return_state", "json"]),
        ({"return_state": True, "format": "png"}, ["return_state", "json"]),
        (_style(text="a…" * 30), ["style.text has 120 characters", "60"]),
        (_style(strokes=[_LINE] * 201), ["201", "200"]),
        (_style(strokes=[_LINE * 201]), ["8040", "8000"]),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_a_message_holds_the_value_and_the_rule(
    ink: InkService, change: dict[str, Any], parts: list[str]
) -> None:
    message = _error(_raw(ink, change))["message"]
    for part in parts:
        assert part in message


def test_a_text_has_its_length_as_it_is_written(ink: InkService) -> None:
    """Each of these is written as three letters."""
    answer = ink.post(text="ﬃ" * 667)
    assert answer.status_code == 400
    told = "text has 2,001 characters with its ligatures written out; at most 2,000 are taken"
    assert answer.json()["error"]["message"] == told


def test_a_missing_text_is_named(ink: InkService) -> None:
    error = _error(ink.client.post(_URL, json={}))
    assert (error["param"], error["message"]) == ("text", "text is missing")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"style": {"strokes": [_LINE]}}, "style.text is missing"),
        ({"page": {"width": 200}}, "page.height is missing"),
        ({"page": {"width": 5, "height": 200}}, "page.width is 5: "),
        ({"style": {"strokes": [[[1, "2"]]], "text": "a"}}, "style.strokes is '2': "),
        ({"bias": "1"}, "bias is '1': "),
    ],
)
def test_a_field_within_a_field_is_named_in_full(
    ink: InkService, body: dict[str, Any], told: str
) -> None:
    error = _error(ink.client.post(_URL, json={"text": "a"} | body))
    assert error["message"].startswith(told)
    assert error["param"] == told.split()[0].partition(".")[0]


def test_an_unknown_model_is_a_404_that_lists_those_there_are(ink: InkService) -> None:
    error = _error(ink.post(text="a", model="gpt"), 404)
    assert error["code"] == "model_not_found"
    assert error["message"] == "model is 'gpt'; this service has: letters, scrawl, squint"


@pytest.mark.parametrize("content", [b"", b"[]", b"5", b"null", b"{", b"\xff", b"[" * 100_000])
def test_a_body_that_is_no_object_is_refused(ink: InkService, content: bytes) -> None:
    for url in (_URL, "/v1/styles"):
        _error(ink.client.post(url, content=content, headers=_JSON))


def test_a_body_over_the_limit_is_refused(ink: InkService) -> None:
    _error(ink.post(text="a", style="x" * 2**20), 413)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"strokes": []}, "strokes"),
        ({"strokes": [_LINE] * 201}, "strokes"),
        ({"strokes": [[[float("nan"), 1], *_LINE]]}, "strokes"),
        ({"text": ""}, "text"),
        ({"text": "x" * 61}, "text"),
        ({"text": "\ud800"}, "text"),
        ({"text": "\u0436"}, "text"),
        ({"text": " "}, "text"),
        ({"text": "…" * 60}, "text"),
        ({"strokes": [[[1, 1]]]}, "strokes"),
        ({"text": "x" * 60}, "strokes"),
        ({"surprise": 1}, "surprise"),
        ({"model": "letters"}, "model"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_strokes_to_be_kept_have_the_same_limits(
    ink: InkService, change: dict[str, Any], field: str
) -> None:
    error = _error(_raw(ink, {"strokes": [_LINE], "text": "ab"} | change, "/v1/styles"))
    assert field in error["message"]
    assert error["param"] == field


@pytest.mark.parametrize(
    "fits",
    [
        {"bias": 0},
        {"bias": 5},
        {"seed": -(2**63)},
        {"seed": 2**63 - 1},
        {"width": 160, "stroke_width": 40},
        {"width": 160, "margin": 0},
        {"width": 4096, "line_height": 400, "margin": 200},
        {"width": 4096, "line_height": 16, "stroke_width": 0.25},
        {"width": 160, "line_height": 99, "style": "made-up"},  # for just two characters
        {"candidate": 15, "thinning": 0.9, "wander": 0.2},
        {"color": "#FfF"},
        {"color": "#1b2A49"},
        {"style": None, "state": None, "format": None, "model": None, "seed": None},
        {"stream": False, "return_state": False},
        {"text": "".join(map(chr, range(32, 127)))},
        {"text": "line\r\nbreaks\n"},
        {"return_state": True, "stream": True},
        {"stream": True, "format": "json"},
        _style(text="x" * 60, strokes=[_LINE] * 20),
        _style(strokes=[_LINE] * 200),
        _style(strokes=[[[1e6, -1e6], [-1e6, 1e6], [0.5, 0]]], text="a"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_a_value_at_its_limit_is_taken(ink: InkService, fits: dict[str, Any]) -> None:
    answer = _raw(ink, fits)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    "page",
    [
        {"width": 160, "line_height": 400},  # of which nothing is left between the margins
        {"width": 200, "line_height": 200, "wander": 0.1},
        {"width": 200, "line_height": 180},  # and here too little
        {"width": 160, "line_height": 100, "style": "made-up"},  # for less than a pen keeps in hand
        {"width": 160, "line_height": 95, "style": "made-up", "bias": 0},
    ],
)
def test_a_page_without_room_for_two_characters_is_refused(
    ink: InkService, page: dict[str, Any]
) -> None:
    message = _error(_raw(ink, page))
    assert message["param"] == "line_height"
    told = re.fullmatch(
        r"the margins leave (\d+) px of the width, too few for two characters, "
        r"which take (\d+) in this hand", message["message"],
    )  # fmt: skip
    assert told
    assert int(told[1]) < int(told[2])


def test_a_refused_request_is_counted(ink: InkService) -> None:
    def count() -> float:
        registry = ink.app.state.metrics.registry
        return registry.get_sample_value("evenkeel_requests_rejected_total", {"status": "400"}) or 0

    before = count()
    ink.post(text="a", bias=9.0)
    assert count() == before + 1


def test_a_full_queue_is_a_503_that_says_when_to_come_back(
    inks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.ink.online._PORTION", 512)  # one job, which takes a while
    chosen = settings(inks, runner="slots", slots=1, queue_size=1)
    with running(chosen) as started, ExitStack() as sockets:
        service = InkService(started.app, started.client)
        busy = [
            sockets.enter_context(service.client.websocket_connect("/v1/online")) for _ in range(2)
        ]
        with held(service.model):
            for socket, metric in zip(busy, ("requests_running", "requests_waiting"), strict=True):
                socket.send_json({"model": "scrawl"})
                socket.receive_json()
                socket.send_json({"write": 512})
                assert eventually(lambda m=metric: service.metric(m, model="scrawl") == 1)
            for stream in (False, True):
                refused = service.post(text="a", stream=stream)
                assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
                assert refused.json()["error"]["code"] == "overloaded"
        for socket in busy:
            assert "points" in socket.receive_json()
        assert service.lines(text="a")


def test_a_page_too_large_to_draw_is_refused_before_it_is_written(ink: InkService) -> None:
    text = "a" + "\n" * 1000 + "b"
    response = ink.post(text=text, width=4096, line_height=400, format="png")
    assert response.status_code == 400
    assert "1001 lines" in response.json()["error"]["message"]
    large = {"width": 4096, "line_height": 400, "format": "json"}
    assert ink.post(text="\n" * 7 + "b", **large).status_code == 200
    for first in (0, 8):  # the lines before it have their place on the page
        error = ink.post(text="\n" * 8 + "b", first_line=first, **large).json()["error"]
        assert error["message"].endswith("a page of 16,384,000 px; at most 16,000,000")


def test_sheets_that_are_longer_together_than_hpgl_has_numbers_for_are_plotted(
    ink: InkService,
) -> None:
    """Each from its own corner; ten of them are a metre high."""
    page = {"page": {"width": 100, "height": 100}, "margin": 5}
    text = "a" + "\n" * 49 + "b"
    assert ink.write(text=text, **page)["pages"] == 10
    assert ink.post(text=text, **page, format="hpgl").status_code == 200


@pytest.mark.parametrize(("field", "value"), [("page", 7), ("style", 7)])
def test_a_value_that_may_be_an_object_says_so(ink: InkService, field: str, value: Any) -> None:
    error = ink.post(**{"text": "a", field: value}).json()["error"]
    assert error["param"] == field
    assert error["message"].endswith(", or an object")


@pytest.mark.parametrize(
    "page",
    [
        {"width": 3097},
        {"text": "a" + "\n" * 60 + "b"},
        {"page": {"width": 819.2, "height": 90}},
    ],
)
def test_a_page_that_hpgl_has_no_numbers_for_is_refused(ink: InkService, page: Any) -> None:
    error = ink.post(**{"text": "wide"} | page, format="hpgl").json()["error"]
    assert error["param"] == "format"
    assert "at most 819" in error["message"]
    assert "a page of 819.175 mm" not in error["message"]
    # Who has sheets already is not told to take some.
    assert ("or set page for sheets" in error["message"]) == ("page" not in page)


@pytest.mark.parametrize("page", [{"width": 3096}, {"page": {"width": 819.175, "height": 819.175}}])
def test_the_largest_page_of_hpgl_has_its_numbers(ink: InkService, page: Any) -> None:
    answer = ink.post(text="wide", **page, format="hpgl")
    assert answer.status_code == 200, answer.text
    assert max(map(int, re.findall(r"\d+", answer.text))) <= 32_767


def test_unknown_characters_are_named_all_at_once(ink: InkService) -> None:
    response = ink.post(text="hello \u20b9\nw\u0436rld \u20b9")
    assert response.status_code == 400
    assert "text has '\u20b9', '\u0436';" in response.json()["error"]["message"]


@pytest.mark.parametrize("space", ["\x1c", "\x1d", "\x1f"])
def test_a_space_that_nobody_types_is_refused(ink: InkService, space: str) -> None:
    assert ink.post(text=f"a{space}b").status_code == 400


def test_the_largest_page_may_be_asked_for(ink: InkService) -> None:
    """Of nine lines, with margins of half a line each."""
    text = "a" + "\n" * 8 + "a"
    page = ink.write(text=text, seed=1, width=4000, line_height=400)
    assert page["width"] * page["height"] == 16_000_000
