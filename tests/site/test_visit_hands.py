"""The hands to choose from, visited without a browser: the service's, one's own, one made up."""

import json
from typing import Any

import pytest

from tests.site.visiting import PEN, PENCIL, TEXT, WRITTEN, Visitor, model, serving, styles

_VALUES = ["all", "#write-hands input", "value"]
_NAMES = ["all", "#write-hands label", "textContent"]
_CHECKED = ["all", "#write-hands input:checked", "value"]
_COUNT, _ABOUT = ["look", "#write-count"], ["look", "#write-hand"]
_FORGET = ["look", "#write-forget", "hidden"]
_STYLES = ["asked", "/v1/styles"]
_HAND = {"token": "mine", "strokes": [[[10, 20], [30, 60]], [[50, 40]]], "model": "pen"}
_KEPT = {"evenkeel-hand": json.dumps(_HAND)}
_WRITE = [
    ["fill", "#write-text", "a"],
    ["asked"],
    ["press", "#write-start"],
    ["asked", "/v1/handwriting"],
]
_ANY, _MADE = (
    "Another of these hands with each seed",
    "A new hand with each seed, made up as it writes",
)


def _style(found: list[Any]) -> Any:
    return found[-1][0]["body"]["style"]


def _choose(value: str) -> list[str]:
    return ["press", f'#write-hands input[value="{value}"]']


def test_the_hands_of_the_model_are_there_to_choose(visit: Visitor) -> None:
    hands = styles("ada", "bea") + styles("cyd", of="pencil")
    found = visit(
        _VALUES, _NAMES, _CHECKED, _ABOUT, _COUNT, _FORGET, _choose("bea"), _CHECKED, _ABOUT,
        ["history"], _choose("made-up"), _ABOUT, _choose(""), ["history"], _choose("bea"), *_WRITE,
        answers=serving(PEN, PENCIL, TEXT, hands=hands),
    )  # fmt: skip
    assert found[0] == ["", "ada", "bea", "made-up"]
    assert found[1] == ["?Any", "Ada", "Bea", "?Made up"]
    assert found[2:6] == [[""], _ANY, "4 to choose from", True]
    assert found[6:9] == [["bea"], "it leans", {"write-hands": "bea"}]
    assert found[9:11] == [_MADE, {"write-hands": ""}]
    assert _style(found) == "bea"


@pytest.mark.parametrize(("value", "style"), [("", None), ("made-up", "made-up"), ("ada", "ada")])
def test_the_hand_that_is_chosen_is_asked_for(visit: Visitor, value: str, style: Any) -> None:
    assert _style(visit(_choose(value), *_WRITE)) == style
    assert (
        _style(visit(*_WRITE, history={"write-hands": value})) == style
    )  # and when it is loaded again


def test_a_hand_that_is_not_there_is_nobodys_choice(visit: Visitor) -> None:
    found = visit(_CHECKED, *_WRITE, history={"write-hands": "zoe"})
    assert (found[0], _style(found)) == ([""], None)
    for kept, values in ({}, ["made-up"]), (_KEPT, ["mine", "made-up"]):
        found = visit(
            _VALUES, _CHECKED, _COUNT, *_WRITE, answers=serving(hands=[]), local=kept,
            history={"write-hands": "zoe"},
        )  # fmt: skip
        assert found[:3] == [values, ["made-up"], f"{len(values)} to choose from"]
        assert _style(found) is None


def test_ink_of_a_hand_that_was_forgotten_is_marked(visit: Visitor) -> None:
    stale = ["look", "#write-stale", "hidden"]
    found = visit(_choose("mine"), *_WRITE, stale, ["press", "#write-forget"], stale, local=_KEPT)
    assert found[2:] == [True, False]


def test_hands_that_come_after_another_model_was_chosen_are_not_shown(visit: Visitor) -> None:
    hands = styles("ada") + styles("cyd", of="pencil")
    early = {**PEN, "ready": False, "attestation": None}
    answers = serving(early, PENCIL, TEXT, hands=hands)
    answers["/v1/styles"] = [{"held": True, **answers["/v1/styles"]}, answers["/v1/styles"]]
    pencil = ["fill", "#write-model", "pencil"]
    found = visit(pencil, ["says", None], _VALUES, answers=answers)
    assert found == [["", "cyd", "made-up"]]
    answers = serving(early, PENCIL, TEXT, hands=styles("cyd", of="pencil"))
    assert visit(pencil, ["passes", 2000], _VALUES, answers=answers) == found


def test_pictures_of_a_model_that_was_left_are_not_asked_for(visit: Visitor) -> None:
    hands = styles("ada", "bea") + styles("cyd", of="pencil")
    answers = serving(PEN, PENCIL, TEXT, hands=hands)
    answers["/v1/previews/it"] = [{"held": True, "text": "<svg/>"}, {"text": "<svg/>"}]
    load = ["heard", "load", "#write-hands img"]
    found = visit(
        ["fill", "#write-model", "pencil"], ["asked"], ["says", None], ["asked", "/v1/previews/it"],
        ["revoked"], load, ["revoked"], answers=answers, session={"evenkeel-key": "ek"},
    )  # fmt: skip
    assert len(found[1]) == 1
    assert (len(found[2]), len(found[3])) == (0, 1)  # what is shown is not kept


def test_the_model_is_asked_again_until_its_hands_are_there(visit: Visitor) -> None:
    early = {**PEN, "ready": False, "attestation": None}
    answers = serving(early, TEXT)
    answers["/v1/styles"] = [{"lost": True}, {"body": {"data": []}}, serving()["/v1/styles"]]
    answers["/v1/models/pen"] = [{"body": early}, {"body": PEN}]
    found = visit(
        _COUNT, _VALUES, _STYLES, ["passes", 1999], _STYLES, ["focus", "#write-hands input"],
        ["passes", 1], _STYLES, _COUNT, ["passes", 2000], _VALUES, _COUNT, ["passes", 9000],
        ["at"], _STYLES, ["passes", 9000], _STYLES, answers=answers,
    )  # fmt: skip
    assert found[:2] == ["the others are being looked at", ["made-up"]]
    assert [len(asked) for asked in (found[2], found[3], found[4])] == [1, 0, 1]
    assert found[6:8] == [["", "ada", "bea", "made-up"], "4 to choose from"]
    assert found[-1] == []


def test_hands_that_are_lost_on_their_way_are_there_still(visit: Visitor) -> None:
    hands = styles("ada") + styles("cyd", of="pencil")
    found = visit(
        _VALUES, ["answers", {"/v1/styles": {"lost": True}}], ["fill", "#write-model", "pencil"],
        _VALUES, _COUNT, ["fill", "#write-model", "pen"], _VALUES,
        answers=serving(PEN, PENCIL, TEXT, hands=hands),
    )  # fmt: skip
    assert found[:3] == [
        ["", "ada", "made-up"],
        ["", "cyd", "made-up"],
        "the others are being looked at",
    ]
    assert found[3] == ["", "ada", "made-up"]


def test_the_keyboard_stays_at_the_hands_when_they_come_anew(visit: Visitor) -> None:
    found = visit(
        _choose("ada"), ["focus", "#write-hands input:checked"], ["fill", "#write-model", "pencil"],
        ["looks", "value"], ["fill", "#write-model", "pen"], ["looks", "value"],
        ["focus", "#write-text"],
        ["fill", "#write-model", "pencil"], ["at"],
        answers=serving(PEN, PENCIL, TEXT, hands=styles("ada") + styles("ada", of="pencil")),
    )  # fmt: skip
    assert found == ["ada", "ada", "write-text"]


def test_pictures_are_asked_for_with_the_key_one_at_a_time(visit: Visitor) -> None:
    picture = {"text": "<svg/>"}
    answers = serving() | {"/v1/previews/it": [{"held": True, **picture}, {"status": 429}, picture]}
    images = ["all", "#write-hands img", "@src"]
    asked = ["asked", "/v1/previews/it"]
    found = visit(
        asked, images, ["says", None], asked, images, ["passes", 2000], asked, images,
        answers=answers, session={"evenkeel-key": "ek"},
    )  # fmt: skip
    assert [one["headers"]["Authorization"] for one in found[0]] == ["Bearer ek"]
    assert found[1] == [None, None]
    assert (len(found[2]), found[3][1]) == (1, None)
    assert found[3][0].startswith("blob:")
    assert len(found[4]) == 1
    assert found[5][1].startswith("blob:")
    found = visit(asked, images)  # without one the browser asks
    assert found == [[], 2 * ["http://127.0.0.1:8000/v1/previews/it"]]


def test_a_picture_that_fails_is_asked_for_once_more(visit: Visitor) -> None:
    image, fail = ["look", "#write-hands img", "@src"], ["heard", "error", "#write-hands img"]
    gone = ["sets", "#write-hands img", "src", ""]
    found = visit(
        fail,
        gone,
        ["passes", 1999],
        image,
        ["passes", 1],
        image,
        fail,
        gone,
        ["passes", 9000],
        image,
    )
    assert found == ["", "http://127.0.0.1:8000/v1/previews/it", ""]


def test_ones_own_hand_is_offered_drawn_and_kept(visit: Visitor) -> None:
    found = visit(
        _VALUES, _NAMES, _choose("mine"), _ABOUT, _FORGET, ["look", "#write-hands svg", "@viewBox"],
        ["all", "#write-hands path", "@d"], ["look", "#write-hands svg", "style.strokeWidth"],
        *_WRITE, local=_KEPT,
    )  # fmt: skip
    assert found[0] == ["", "mine", "ada", "bea", "made-up"]
    assert found[1][1] == "My hand"
    assert found[2:4] == ["The hand you drew", False]
    assert found[4:6] == ["2 12 56 56", ["M10,20 C16.67,33.33 23.33,46.67 30,60", "M50,40 L50,40"]]
    assert found[6] == 1.4
    assert _style(found) == "mine"


def test_a_hand_is_forgotten_where_it_is_wanted(visit: Visitor) -> None:
    found = visit(
        _FORGET, _choose("mine"), ["focus", "#write-forget"], ["press", "#write-forget"], _VALUES,
        _CHECKED, ["kept", "localStorage"], _FORGET, ["looks", "localName"], ["history"], *_WRITE,
        local=_KEPT,
    )  # fmt: skip
    assert found[0] is True
    assert found[1:5] == [["", "ada", "bea", "made-up"], [""], {}, True]
    assert found[5:7] == ["input", {"write-hands": ""}]
    assert _style(found) is None


def test_a_hand_of_a_model_that_is_gone_can_be_forgotten(visit: Visitor) -> None:
    kept = {"evenkeel-hand": json.dumps(_HAND | {"model": "quill"})}
    found = visit(
        _VALUES,
        _ABOUT,
        _FORGET,
        _choose("ada"),
        _FORGET,
        ["press", "#write-forget"],
        _ABOUT,
        local=kept,
    )
    gone = "The hand you drew is of quill, which is not served."
    assert found == [["", "ada", "bea", "made-up"], f"{_ANY} {gone}", False, False, _ANY]
    found = visit(
        _VALUES, _ABOUT, local=kept, answers=serving(PEN, model("quill", "handwriting"), TEXT)
    )
    assert found == [["", "ada", "bea", "made-up"], _ANY]


@pytest.mark.parametrize(("style", "forgets"), [("mine", True), ("ada", False)])
def test_a_hand_that_the_service_refuses_is_forgotten(
    visit: Visitor, style: str, forgets: bool
) -> None:
    refused = {"status": 422, "body": {"error": {"message": "no hand", "param": "style"}}}
    answers = serving(**{"/v1/handwriting": [{"events": WRITTEN}, refused]})
    found = visit(
        _choose(style),
        *_WRITE[:3],
        ["look", "#write-error"],
        ["kept", "localStorage"],
        _CHECKED,
        answers=answers,
        local=_KEPT,
    )
    if forgets:
        assert found[1].startswith("The service no longer knows the hand you drew")
        assert found[2:] == [{}, [""]]
    else:
        assert found[1:] == ["no hand", _KEPT, [style]]


def test_a_link_that_is_copied_has_no_hand_of_ones_own(visit: Visitor) -> None:
    link = ["press", "#write-link"]
    told = ["look", "#write-progress"]
    found = visit(
        ["fill", "#write-speed", "Infinity"], _choose("mine"), *_WRITE[:3], link, told,
        ["press", "#write-curl"], _choose("ada"), _WRITE[2], link, told, _choose("made-up"),
        _WRITE[2], link, _choose(""), _WRITE[2], link, ["copied"], local=_KEPT,
    )  # fmt: skip
    copied = found[-1]
    assert found[1:3] == ["Copied, but for your hand, which stays here\nseed 3", "Copied\nseed 3"]
    assert ["hand=" in text for text in copied] == [False, False, True, True, False]
    assert '"style":"mine"' in copied[1]


def test_a_hand_is_forgotten_at_once_and_when_all_that_was_kept_is(visit: Visitor) -> None:
    answers = serving()
    answers["/v1/styles"] = [answers["/v1/styles"], {"held": True}]
    found = visit(
        _choose("mine"), ["press", "#write-forget"], _VALUES, answers=answers, local=_KEPT
    )
    assert found == [["", "ada", "bea", "made-up"]]
    assert visit(["clears", "localStorage"], _VALUES, local=_KEPT) == found


def test_another_page_of_this_browser_changes_the_hand(visit: Visitor) -> None:
    anew = _HAND | {"token": "anew"}
    found = visit(
        _choose("mine"), ["puts", "localStorage", "evenkeel-hand", json.dumps(anew)], _VALUES,
        _CHECKED, ["puts", "localStorage", "evenkeel-hand", None], _VALUES, _CHECKED,
        local=_KEPT,
    )  # fmt: skip
    assert found[:2] == [["", "anew", "ada", "bea", "made-up"], ["anew"]]
    assert found[2:] == [["", "ada", "bea", "made-up"], [""]]
