"""From every line of a page that is being written the rest of it comes again, point for point."""

from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from service.errors import DeadlineExceeded
from service.ink.line import InkPiece
from service.ink.page import Page
from tests.service.serving import running, settings
from tests.service.writing import InkService

_OWN = {"strokes": [[[i, i % 5] for i in range(40)]], "text": "ab"}
_TEXT = "go\n\non as I\nbegan, on a broken line\n\n"
_BODIES: dict[str, dict[str, Any]] = {
    "no hand": {},
    "made up": {"style": "made-up"},
    "stored": {"style": "upright", "bias": 0.5},
    "strokes": {"style": _OWN, "width": 411},
    "best of three": {"best_of": 3},
    "blank first": {"text": "\n\nso\n\n\nit is"},
}


# What begins and ends within a portion of 32 is of another body only where lines are blank, chosen
# or made up; `make test-all` asks for the others too.
_OFTEN = [((7, 3), name) for name in _BODIES]
_OFTEN += [((32, 8), name) for name in ("made up", "best of three", "blank first")]
_SELDOM = [((1, 1), name) for name in _BODIES]
_SELDOM += [((32, 8), name) for name in ("no hand", "stored", "strokes")]


@pytest.fixture(scope="module")
def cut(request: pytest.FixtureRequest, inks: Path) -> Iterator[InkService]:
    """A service that writes in portions of some size."""
    chunk, first = request.param
    chosen = settings(inks, runner="scan", chunk_steps=chunk, first_chunk_steps=first)
    with running(chosen) as started:
        yield InkService(started.app, started.client)


def _lines(events: list[dict[str, Any]]) -> dict[int, list[Any]]:
    """The points of each line, and how it ended."""
    found: dict[int, list[Any]] = {}
    for event in events:
        if "line" in event:
            line = found.setdefault(event["line"], [])
            line += event.get("points", [event.get("finish_reason")])
    return found


@pytest.mark.parametrize(
    ("cut", "name"),
    [*_OFTEN, *(pytest.param(*case, marks=pytest.mark.long) for case in _SELDOM)],
    indirect=["cut"],
    scope="module",
    ids=str,
)
def test_every_token_of_a_page_gives_the_lines_from_there(cut: InkService, name: str) -> None:
    body = {"text": _TEXT, "seed": 3, "width": 320, "return_state": True} | _BODIES[name]
    events = cut.events(**body, resume=True)
    texts = events[0]["lines"]
    assert not set(texts) <= set(_TEXT.split("\n"))  # one is broken
    written = _lines(events)
    resumes = [event["resume"] for event in events if "resume" in event]
    *others, _ = [number for number, text in enumerate(texts) if text]
    assert [resume["first_line"] for resume in resumes] == [0, *(n + 1 for n in others)]
    for resume in resumes:
        assert resume.keys() == {"style", "state", "seed", "first_line", "model"}
        head, *again = cut.events(**body | resume)
        assert {n: head[n] for n in ("lines", "height", "seed")} == {
            n: events[0][n] for n in ("lines", "height", "seed")
        }
        first = resume["first_line"]
        assert _lines(again) == {n: line for n, line in written.items() if n >= first}
        assert again[-1]["state"] == events[-1]["state"]
        assert again[-1]["usage"]["characters"] == sum(map(len, texts[first:]))


def test_one_that_goes_on_can_be_gone_on_with(ink: InkService) -> None:
    body = {"text": "one\ntwo\nthree", "seed": 3}
    first = ink.events(**body, resume=True)
    (second,) = [e["resume"] for e in first if e.get("resume", {}).get("first_line") == 1]
    again = ink.events(**body | second, resume=True)
    (third,) = [e["resume"] for e in again if e.get("resume", {}).get("first_line") == 2]
    assert _lines(ink.events(**body | third))[2] == _lines(first)[2]


def test_a_whole_page_from_a_line_on_stands_where_it_stood(ink: InkService) -> None:
    body = {"text": "one\ntwo\n\nthree", "seed": 3, "style": "hasty"}
    whole = ink.write(**body)
    for event in ink.events(**body, resume=True):
        if "resume" in event:
            rest = ink.write(**body | event["resume"])
            assert rest["lines"] == whole["lines"][event["resume"]["first_line"] :]
            assert rest["height"] == whole["height"]


@pytest.mark.parametrize(("format", "has"), [(None, True), ("json", True), ("svg", False)])
def test_a_drawing_that_is_cut_is_begun_again(
    ink: InkService, monkeypatch: pytest.MonkeyPatch, format: str | None, has: bool
) -> None:
    async def cut(page: Page, number: int) -> AsyncGenerator[InkPiece]:
        if number:
            yield InkPiece()
            raise DeadlineExceeded("it took too long")
        async for piece in pieces(page, number):
            yield piece

    pieces = Page._pieces
    monkeypatch.setattr(Page, "_pieces", cut)
    *_, failed = ink.events(text="one\ntwo", seed=3, format=format)
    assert failed["error"]["code"] == "deadline_exceeded"
    # From a token it would lack the lines before.
    assert ("resume" in failed) == has
    assert not has or failed["resume"]["first_line"] == 1  # of which there is a part


def test_what_was_cut_behind_a_blank_line_goes_on_behind_it(
    ink: InkService, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cut(page: Page, number: int) -> AsyncGenerator[InkPiece]:
        if number:
            raise DeadlineExceeded("it took too long")
        async for piece in pieces(page, number):
            yield piece

    pieces = Page._pieces
    monkeypatch.setattr(Page, "_pieces", cut)
    *_, failed = ink.events(text="one\n\ntwo", seed=3)
    assert failed["resume"]["first_line"] == 2


def test_a_drawing_from_a_line_on_is_called_by_what_is_written(ink: InkService) -> None:
    drawings = [ink.post(text="one\ntwo\nthree", seed=3, first_line=n).text for n in (0, 1)]
    assert "<title>two\nthree</title>" in drawings[1]
    whole, rest = (ElementTree.fromstring(drawing).get("height") for drawing in drawings)
    assert whole == rest


def test_a_page_from_a_line_on_has_as_many_sheets(ink: InkService) -> None:
    """Each has room for one line."""
    sheets = {"page": {"width": 100, "height": 50}, "margin": 10}
    body = {"text": "one\ntwo\nthree", "seed": 3} | sheets
    assert ink.write(**body, first_line=2)["pages"] == ink.write(**body)["pages"] == 3


def test_a_stream_that_did_not_ask_has_no_tokens(ink: InkService) -> None:
    assert not any("resume" in event for event in ink.events(text="one\ntwo"))


@pytest.mark.parametrize(
    ("text", "first_line", "last"), [("one", 1, 0), ("a\n\nb\n\n", 3, 2), ("a", 10**9, 0)]
)
def test_a_line_past_the_last_is_refused(
    ink: InkService, text: str, first_line: int, last: int
) -> None:
    refused = ink.post(text=text, first_line=first_line)
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "first_line"
    assert refused.json()["error"]["message"] == (
        f"first_line is {first_line}; the last line with a text is {last}"
    )
