"""The Write tab visited without a browser: links, the opening, what goes wrong, and paper."""

from typing import Any

import pytest

from tests.site.visiting import (
    HEAD,
    INK,
    PEN,
    READER,
    TEXT,
    USAGE,
    WRITTEN,
    Visitor,
    model,
    serving,
    styles,
)  # fmt: skip

_ROUTE = "/v1/handwriting"
_ASKED = ["asked", _ROUTE]
_ERROR, _PROGRESS = ["look", "#write-error"], ["look", "#write-progress"]
_LINK = (
    "#write?text=a+b%0Ac&hand=bea&seed=0&bias=2&model=pen&line=50&nib=1.5&thinning=0.3"
    "&color=%23aabbcc&width=700&draws=2&judge=reads"
)
_LINKED: dict[str, Any] = {
    "model": "pen", "text": "a b\nc", "bias": 2, "style": "bea", "line_height": 50,
    "stroke_width": 1.5, "thinning": 0.3, "color": "#aabbcc", "seed": 0, "width": 700,
    "best_of": 2, "best_by": "word", "judge": "reads", "format": "json", "stream": True,
}  # fmt: skip


def _without(request: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in request.items() if name not in names}


_UNJUDGED = _without(_LINKED, "best_of", "best_by", "judge")


def _bodies(asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one["body"] for one in asked]


def test_a_link_is_written_as_it_says(visit: Visitor) -> None:
    fields = [["look", f"#write-{name}", "value"] for name in ("text", "seed", "size", "color")]
    found = visit(
        _ASKED,
        *fields,
        ["look", "#write-hands input:checked", "value"],
        ["look", "#write-opening", "hidden"],
        ["look", "#write-neat"],
        ["look", "#write-stale", "hidden"],
        address=_LINK,
    )
    assert _bodies(found[0]) == [_LINKED]
    assert found[1:] == ["a b\nc", "0", "50", "#aabbcc", "bea", True, "2.0", False]


@pytest.mark.parametrize(
    ("link", "body"),
    [
        ("#write?text=a&draws=1&width=300", _UNJUDGED | {"width": 300}),
        ("#write?text=a", _LINKED | {"width": 880, "best_of": 4}),
        ("#write?text=a&draws=3", _LINKED | {"width": 880, "best_of": 3}),
    ],
)  # fmt: skip
def test_what_a_link_does_not_say_is_as_the_form_has_it(
    visit: Visitor, link: str, body: dict[str, Any]
) -> None:
    plain = {"text": "a", "bias": 1, "style": None, "line_height": 64, "stroke_width": 2.5,
             "thinning": 0.5, "color": "#1b2a49"}  # fmt: skip
    found = visit(_ASKED, address=link)
    assert _bodies(found[0]) == [_without(body, "seed") | plain]


@pytest.mark.parametrize(
    ("link", "missing"),
    [
        ("text=a&model=quill", "the model quill"),
        ("text=a&hand=zoe", "the hand zoe"),
        ("text=a&draws=2&judge=eyes", "the model eyes"),
        (f"text=a&hand={'x' * 41}", f"the hand {'x' * 40}…"),
        (f"text=a&model=quill&hand={'x' * 40}", f"the model quill and the hand {'x' * 40}"),
    ],
)
def test_a_link_that_cannot_be_followed_writes_nothing(
    visit: Visitor, link: str, missing: str
) -> None:
    found = visit(_ASKED, _ERROR, ["look", "#write-text", "value"], address=f"#write?{link}")
    told = f"This link asks for {missing}, not to be had here. Write takes what is chosen below."
    assert found == [[], told, "a"]
    found = visit(_ERROR, address=f"#write?{link}".replace("text=a", "text=%D0%B4"))
    assert found == [told]  # whatever else is wrong with it


def test_a_link_may_name_another_model_and_a_hand_of_it(visit: Visitor) -> None:
    hands = styles("ada") + styles("cyd", of="pencil")
    other = model("pencil", "handwriting")
    link = "#write?text=a&model=pencil&hand=cyd&draws=1"
    answers = serving(PEN, other, TEXT, hands=hands)
    found = visit(_ASKED, ["history"], ["look", "#write-count"], address=link, answers=answers)
    assert [(body["model"], body["style"]) for body in _bodies(found[0])] == [("pencil", "cyd")]
    assert found[1:] == [{"write-model": "pencil", "write-hands": "cyd"}, "3 to choose from"]
    later = visit(_ASKED, ["goes", link], _ASKED, ["look", "#write-error"], answers=answers)
    assert ([body["style"] for body in _bodies(later[1])], later[2]) == (["cyd"], "")


def test_a_link_that_asks_for_draws_needs_one_who_chooses(visit: Visitor) -> None:
    link = "#write?text=a&draws=2"
    found = visit(_ASKED, _ERROR, address=link, answers=serving(PEN, TEXT))
    assert found[0] == []
    assert "asks for a model that reads, not" in found[1]
    two = serving(PEN, TEXT, READER, model("looks", "reader"))
    found = visit(_ASKED, _ERROR, address=link, answers=two)
    assert "the only model that reads (there are 2)" in found[1]
    found = visit(_ASKED, address="#write?text=a&draws=1", answers=serving(PEN, TEXT))
    assert len(found[0]) == 1
    found = visit(_ASKED, address=f"{link}&judge=looks", answers=two)
    assert _bodies(found[0])[0]["judge"] == "looks"


def test_a_link_is_written_once_its_tab_is_shown(visit: Visitor) -> None:
    found = visit(
        ["press", "#lab-tab"],
        ["answers", {"/v1/models/pen": {"body": PEN}}],
        ["passes", 2000],
        _ASKED,
        ["press", "#write-tab"],
        _ASKED,
        ["press", "#lab-tab"],
        ["press", "#write-tab"],
        _ASKED,
        address=_LINK,
        answers=serving({**PEN, "ready": False, "attestation": None}, TEXT, READER),
    )
    assert [len(asked) for asked in found] == [0, 1, 0]


def test_a_link_that_is_put_into_the_address_is_written_too(visit: Visitor) -> None:
    found = visit(_ASKED, ["goes", _LINK], _ASKED, ["goes", "#write?seed=3"], _ASKED, ["where"])
    _, linked, unlinked, where = found
    assert _bodies(linked) == [_LINKED]
    assert (unlinked, where) == ([], "#write?seed=3")


def test_a_link_does_not_wait_for_what_is_being_written(visit: Visitor) -> None:
    held = {"events": [HEAD], "open": True}
    answers = serving(**{_ROUTE: [{"events": WRITTEN}, held, {"events": WRITTEN}]})
    found = visit(*_PRESSED, ["asked"], ["goes", _LINK], _ASKED, answers=answers)
    assert _bodies(found[2]) == [_LINKED]


def test_the_sentence_whose_ink_is_there_is_written_when_the_page_opens(visit: Visitor) -> None:
    opening = ["look", "#write-opening", "hidden"]
    found = visit(
        opening, _ASKED, ["all", "#write-sheet image", "@href"], ["says", HEAD], opening,
        ["all", "#write-sheet image", "outerHTML"], ["says", USAGE, None],
        ["all", "#write-sheet image", "@href"],
        answers=serving(**{_ROUTE: {"events": [], "open": True}}),
    )  # fmt: skip
    assert found[:3] == [False, found[1], []]
    image = '<image href="static/opening.svg" width="600" height="128" class="before"></image>'
    assert found[3:] == [True, [image], []]
    (body,) = _bodies(found[1])
    assert (body["seed"], body["width"], "best_of" in body) == (9, 752, False)
    assert (body["line_height"], body["stroke_width"]) == (88, 3)


def test_who_asks_for_something_else_does_not_wait_for_the_opening(visit: Visitor) -> None:
    held = {"events": [HEAD, INK], "open": True}
    found = visit(
        ["look", "#write-start", "ariaDisabled"], ["fill", "#write-speed", "Infinity"],
        ["fill", "#write-text", "mine"], ["press", "#write-start"], _PROGRESS, _ERROR, _ASKED,
        ["all", "#write-sheets li", "hidden"],
        answers=serving(**{_ROUTE: [held, {"events": WRITTEN}]}),
    )  # fmt: skip
    assert found[0] == "false"
    assert found[1:3] == ["2 characters, the most legible of 4 draws of each word\nseed 3", ""]
    assert [body["text"] for body in _bodies(found[3])] == ["Steady as she goes.", "mine"]
    assert len(found[4]) == 1  # nobody asked for what gave way


@pytest.mark.parametrize(
    "how", [{"address": "#text"}, {"session": {"evenkeel-fields": '{"write-text": "x"}'}}]
)
def test_nothing_is_written_unasked_elsewhere_or_over_what_was_typed(
    visit: Visitor, how: dict[str, Any]
) -> None:
    found = visit(
        _ASKED, ["look", "#write-opening", "hidden"], ["look", "#write-empty", "hidden"], **how
    )
    typed = "session" in how
    assert found == [[], typed, not typed]


def test_an_opening_that_fails_is_not_told(visit: Visitor) -> None:
    lost = {_ROUTE: {"status": 500, "body": {"error": {"message": "lost"}}}}
    found = visit(_ERROR, ["look", "#write-error", "hidden"], _PROGRESS, answers=serving(**lost))
    assert found == ["", True, ""]


def _refused(message: str, **more: str) -> dict[str, Any]:
    return {"status": 422, "body": {"error": {"message": message, **more}}}


_PRESSED = [["fill", "#write-text", "a"], _ASKED, ["press", "#write-start"]]


def test_what_the_service_refuses_is_said_until_the_next(visit: Visitor) -> None:
    answers = serving(
        **{_ROUTE: [{"events": WRITTEN}, _refused("too wide", param="width"), {"events": WRITTEN}]}
    )
    found = visit(
        *_PRESSED,
        _ERROR,
        ["look", "#write-error", "hidden"],
        ["press", "#write-start"],
        ["look", "#write-error", "hidden"],
        answers=answers,
    )
    assert found[1:] == ["too wide", False, True]


@pytest.mark.parametrize("param", ["judge", "best_of"])
def test_without_whom_to_choose_among_draws_there_is_one(visit: Visitor, param: str) -> None:
    answers = serving(
        **{_ROUTE: [{"events": WRITTEN}, _refused("none", param=param), {"events": WRITTEN}]}
    )
    answers["/v1/models"] = [answers["/v1/models"], serving(PEN, TEXT)["/v1/models"]]
    found = visit(
        *_PRESSED, _ASKED, _ERROR, _PROGRESS, ["press", "#write-curl"], ["copied"], answers=answers
    )
    first, second = _bodies(found[1])
    assert first == second | {"best_of": 4, "best_by": "word", "judge": "reads"}
    assert found[2:4] == ["", "2 characters, 9 points\nseed 3"]
    assert "best_of" not in found[4][0]


@pytest.mark.parametrize("param", ["judge", "best_of", "text"])
def test_so_many_draws_are_not_to_be_had_says_the_service(visit: Visitor, param: str) -> None:
    answers = serving(**{_ROUTE: [{"events": WRITTEN}, _refused("not so many", param=param)]})
    found = visit(*_PRESSED, ["asked"], _ERROR, answers=answers)
    asked = ["/v1/handwriting", *([] if param == "text" else ["/v1/models"])]
    assert ([one["path"] for one in found[1]], found[2]) == (asked, "not so many")


def test_what_cannot_be_written_is_not_asked_for(visit: Visitor) -> None:
    latin = {"characters": "abc ", "marks": []}
    pencil = model("pencil", "handwriting", writes=latin)
    found = visit(
        ["fill", "#write-text", "\u0434"], ["look", "#write-wrong"], _ASKED,
        ["press", "#write-start"],
        _ASKED, ["at"], ["fill", "#write-text", "xyz"], ["look", "#write-wrong", "hidden"],
        ["fill", "#write-model", "pencil"], ["look", "#write-wrong"],
        ["fill", "#write-model", "pen"],
        ["look", "#write-wrong", "hidden"], ["fill", "#write-text", ""], ["press", "#write-start"],
        _ASKED,
        answers=serving(PEN, pencil, TEXT),
    )  # fmt: skip
    assert found[0] == "The pen cannot write \u0434"
    assert found[2:] == [[], "write-text", True, "The pen cannot write x  y  z", True, []]


_BOUNDS = {"nib": (0.25, 12), "size": (24, 200), "seed": (0, 9007199254740991)}


def test_a_number_out_of_its_bounds_is_not_asked_for(visit: Visitor) -> None:
    steps = []
    for field, (least, most) in _BOUNDS.items():
        for number in (least - 1 if least != 0.25 else 0, most + 1, least, most):
            fill = ["fill", f"#write-{field}", str(number)]
            steps += [fill, ["press", "#write-start"], _ASKED]
    found = visit(["fill", "#write-speed", "Infinity"], _ASKED, *steps)
    assert [len(asked) for asked in found[1:]] == 3 * [0, 0, 1, 1]


@pytest.mark.parametrize(("narrow", "said"), [(False, ["64", "2.5"]), (True, ["44", "2"])])
def test_on_a_phone_lines_are_lower(visit: Visitor, narrow: bool, said: list[str]) -> None:
    fields = [["look", f"#write-{name}", "value"] for name in ("size", "nib")]
    assert visit(*fields, narrow=narrow) == said
    session = {"evenkeel-fields": '{"write-size": "99"}'}
    assert visit(fields[0], narrow=narrow, session=session) == ["99"]


def test_paper_gets_the_ink_line_by_line(visit: Visitor) -> None:
    """And once, however often it is printed."""
    ends = ((20, 24), (60, 98), (85, 125), (150, 154), (260, 264))
    strokes = [{"points": [[9, a, 0], [19, b, 1]], "line": 0, "character": 0} for a, b in ends]
    events = [HEAD | {"height": 256}, *strokes, USAGE]
    lines = ["all", ".lines svg", "@viewBox"]
    found = visit(
        lines, ["fill", "#write-speed", "Infinity"], ["press", "#write-start"],
        ["fill", "#write-size", "99"], ["happens", "beforeprint"], ["happens", "beforeprint"],
        lines,
        ["all", ".lines svg", "children.length"], ["all", ".lines svg", "style.maxWidth"],
        ["happens", "afterprint"], lines, ["press", "#text-tab"], ["happens", "beforeprint"], lines,
        answers=serving(**{_ROUTE: {"events": events}}),
    )  # fmt: skip
    assert found[0] == found[4] == found[5] == []
    assert found[1] == ["0 0 600 96", "0 96 600 64", "0 160 600 96"]
    assert found[2] == [2, 2, 1]
    assert found[3] == 3 * ["600px"]
