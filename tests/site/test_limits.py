"""A text that is too long when what stands for several characters is written out is refused on the
site as by the service."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contract.alphabets import LONGEST_TEXT
from service.artifact import load_artifact
from service.ink.line import InkEdge, InkLine
from service.ink.schemas import MOST_CHARACTERS
from service.state import Moment
from tests.service.serving import Service
from tests.site.conftest import Ask

_ELLIPSIS = "\u2026"  # three characters, written out
_INK = [[[0.0, 0.0], [9.0, 9.0]]]


def _text(longest: int, more: int) -> str:
    """A text of so many characters and more, most of which are seen as a third."""
    return _ELLIPSIS * (longest // 3) + "." * (longest % 3 + more)


@pytest.fixture
def refused(ask: Ask, artifact: Callable[[str], Path]) -> Callable[..., list[Any]]:
    """Why the site refuses some requests, and which field is wrong."""
    manifest = json.loads((artifact("handwriting") / "manifest.json").read_text())

    def asked(*cases: dict[str, Any]) -> list[Any]:
        return ask("refused", [{"manifest": manifest} | case for case in cases])

    return asked


def _pages(more: int) -> list[dict[str, Any]]:
    own = {"text": _text(LONGEST_TEXT, more), "strokes": _INK}
    bodies: list[dict[str, Any]] = [
        {"text": _text(MOST_CHARACTERS, more)},
        {"text": "a", "style": own},
    ]
    return [body | {"format": "json"} for body in bodies]


def test_pages_and_hands_are_as_long_as_in_the_service(
    refused: Callable[..., list[Any]], service: Service
) -> None:
    expected = []
    for body in _pages(1):
        response = service.client.post("/v1/handwriting", json=body)
        assert response.status_code == 400
        expected.append([response.json()["error"][name] for name in ("message", "param")])
    assert [message.split(" characters")[0] for message, _ in expected] == [
        "text has 2,001", "style.text has 61",
    ]  # fmt: skip
    assert refused(*({"page": body} for body in _pages(1))) == expected
    # One character less is refused for another reason, if for any.
    for message, _ in refused(*({"page": body} for body in _pages(0))):
        assert " characters" not in message


def test_what_no_pen_writes_is_named_as_by_the_service(
    refused: Callable[..., list[Any]], service: Service
) -> None:
    body = {"text": "5\u00b0 \u00e9\u0327\u0331 \u20b9", "format": "json"}
    error = service.client.post("/v1/handwriting", json=body).json()["error"]
    named = error["message"].replace("'", '"').replace("this model", "this page")
    assert refused({"page": body}) == [[named, "text"]]


def test_a_page_without_room_is_told_what_it_lacks_as_by_the_service(
    refused: Callable[..., list[Any]], service: Service
) -> None:
    """Where nothing is left between the margins, and less than a pen keeps in hand."""
    made_up = {"text": "a", "style": "made-up", "format": "json", "width": 160}
    bodies = [
        made_up | body
        for body in ({"line_height": 400}, {"line_height": 100.4}, {"line_height": 95, "bias": 0})
    ]
    answers = [service.client.post("/v1/handwriting", json=body) for body in bodies]
    errors = [answer.json()["error"] for answer in answers]
    expected = [[error["message"], error["param"]] for error in errors]
    assert [message.split(" px")[0] for message, _ in expected] == [
        "the margins leave 0", "the margins leave 59", "the margins leave 65",
    ]  # fmt: skip
    fits = made_up | {"line_height": 99, "stream": True}  # for just two characters
    assert refused(*({"page": body} for body in [*bodies, fits])) == [*expected, None]


def test_a_page_is_as_large_as_in_the_service(
    refused: Callable[..., list[Any]], service: Service
) -> None:
    """16 million px, and not one more."""
    page = {"style": "made-up", "format": "json", "width": 1000, "line_height": 40}
    whole, larger = (page | {"text": count * "a\n"} for count in (399, 400))
    error = service.client.post("/v1/handwriting", json=larger).json()["error"]
    expected = [error["message"], error["param"]]
    assert expected[0].startswith("text has 400 lines, a page of 16,040,000 px")
    assert refused({"page": larger}, {"page": whole | {"stream": True}}) == [expected, None]


def test_what_cannot_be_written_is_named_with_its_field(
    refused: Callable[..., list[Any]],
) -> None:
    other = "\u0434a\u0444\u0434"
    own = {"text": other, "strokes": _INK}
    pages = [{"text": other}, {"text": "a", "style": own}]
    told = refused(*({"page": page | {"format": "json"}} for page in pages))
    written = "printable ASCII, Latin letters with accents, ¿ ¡ ° and € £ ¥"
    named = f'has "\u0434", "\u0444"; this page writes {written}'
    assert told == [[f"text {named}", "text"], [f"style.text {named}", "style"]]


def test_a_pen_that_takes_a_shorter_line_is_given_none_that_is_longer(
    refused: Callable[..., list[Any]], artifact: Callable[[str], Path]
) -> None:
    manifest = json.loads((artifact("handwriting") / "manifest.json").read_text())
    manifest["alphabet"]["longest_text"] = 4
    texts = ("keel", "keels")
    told = refused(*({"manifest": manifest, "opening": {"text": text}} for text in texts))
    assert told == [None, ["text has 5 characters; a line has fewer", "text"]]


def test_what_this_page_does_not_do_is_refused_by_its_name(
    refused: Callable[..., list[Any]],
) -> None:
    page = {"text": "a", "format": "json"}
    fields = {"page": "a4", "margin": 20, "paper": "ruled", "best_of": 2, "style": "nobody"}
    fields |= {"wander": 0.1, "first_line": 1, "state": "any"}
    told = refused(*({"page": page | {name: value}} for name, value in fields.items()))
    assert [param for _, param in told] == [*fields]
    one = {"best_of": 1, "stream": True, "style": "made-up"}
    more = [page | changed for changed in ({"format": "svg"}, {"text": " \n "}, one)]
    told = refused(*({"page": body} for body in more))
    assert [error and error[1] for error in told] == ["format", "text", None]
    assert refused({"opening": {"text": "a", "state": "any"}}) == [
        ["this page has no state; the service does", "state"]
    ]


def test_a_line_that_is_followed_is_as_long_as_in_the_service(
    refused: Callable[..., list[Any]], service: Service
) -> None:
    opening = {"model": "handwriting", "text": _text(LONGEST_TEXT, 1)}
    with service.client.websocket_connect("/v1/online") as socket:
        socket.send_text(json.dumps(opening))
        error = socket.receive_json()["error"]
    expected = [error["message"], error["param"]]
    assert expected[0].startswith("text has 61 characters")
    shorter = opening | {"text": _text(LONGEST_TEXT, 0)}
    assert refused({"opening": opening}, {"opening": shorter}) == [expected, None]


def test_a_line_that_has_lost_its_way_ends_where_it_does_in_the_service(
    ask: Ask, artifact: Callable[[str], Path]
) -> None:
    manifest = load_artifact(artifact("handwriting")).manifest
    begun = Moment({}, 0, 0, 0, InkEdge())
    theirs = InkLine("even keel", begun, manifest, lambda piece: None, bias=1.0)
    case = {"manifest": manifest.model_dump(mode="json"), "text": "even keel"}
    assert ask("lost", [case]) == [[theirs.steps_wanted(), 0, "length"]]
