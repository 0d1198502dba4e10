"""The page visited without a browser: its tabs, the keyboard, the other place, and the API key."""

import json
from typing import Any

import pytest

from tests.site.visiting import PEN, READER, TEXT, Visitor, serving

_TABS = ["write", "text", "draw", "proof", "lab"]
_PANELS = ["all", ".panel", "@hidden"]
_CHOSEN = ["all", "[role=tab]", "ariaSelected"]
_STOPS = ["all", "[role=tab]", "@tabindex"]


def _shown(hidden: list[str | None]) -> list[str]:
    return [tab for tab, is_hidden in zip(_TABS, hidden, strict=True) if is_hidden is None]


def test_arrows_home_and_end_walk_the_tabs(visit: Visitor) -> None:
    walk = [("ArrowRight", "text"), ("ArrowRight", "draw"), ("End", "lab"), ("ArrowRight", "write")]
    walk += [("ArrowLeft", "lab"), ("Home", "write"), ("ArrowLeft", "lab"), ("ArrowLeft", "proof")]
    looks: list[list[Any]] = [_PANELS, _CHOSEN, _STOPS, ["at"], ["where"]]
    steps = [step for key, _ in walk for step in (["key", key], *looks)]
    found = visit(["focus", "#write-tab"], *steps)
    for i, (_, tab) in enumerate(walk):
        hidden, chosen, stops, at, where = found[5 * i : 5 * i + 5]
        assert _shown(hidden) == [tab]
        assert chosen == [str(tab == other).lower() for other in _TABS]
        assert stops == ["0" if tab == other else "-1" for other in _TABS]
        assert (at, where) == (f"{tab}-tab", f"#{tab}")


def test_a_key_that_is_the_browsers_is_left_to_it(visit: Visitor) -> None:
    keys = [("ArrowRight", {name: True}) for name in ("ctrlKey", "altKey", "metaKey")]
    keys += [("Tab", {}), ("ArrowDown", {}), ("Home", {"altKey": True})]
    steps = [["left", "keydown", "#text-tab", {"key": key, **more}] for key, more in keys]
    found = visit(
        *steps, _PANELS, ["left", "keydown", "#text-tab", {"key": "ArrowRight"}], address="#text"
    )
    assert found[:-2] == len(keys) * [True]
    assert (_shown(found[-2]), found[-1]) == (["text"], False)


@pytest.mark.parametrize(
    ("address", "tab", "where"),
    [
        ("#draw", "draw", "#draw"), ("#read", "text", "#read"), ("#lab?any", "lab", "#lab?any"),
        ("#nothing", "write", "#write"), ("", "write", "#write"), ("?a#proof", "proof", "#proof"),
    ],
)  # fmt: skip
def test_the_address_opens_its_tab(visit: Visitor, address: str, tab: str, where: str) -> None:
    kept = {"write-model": "pen"}
    found = visit(
        _PANELS, ["where"], ["history"], ["goes", "#text"], _PANELS, ["goes", "#none"], _PANELS,
        address=address, history=kept,
    )  # fmt: skip
    assert (_shown(found[0]), *found[1:3]) == ([tab], where, kept)
    assert [_shown(hidden) for hidden in found[3:]] == [["text"], ["text"]]


def test_a_press_shows_a_tab_and_leaves_the_keyboard_where_it_is(visit: Visitor) -> None:
    found = visit(["focus", "#write-text"], ["press", "#lab-tab"], _PANELS, ["at"], ["where"])
    assert (_shown(found[0]), *found[1:]) == (["lab"], "write-text", "#lab")


@pytest.mark.parametrize(
    ("models", "address", "tab", "lacking"),
    [
        ((TEXT,), "", "text", [True, False, True]), ((TEXT,), "#draw", "draw", [True, False, True]),
        ((PEN, READER), "", "write", [False, True, False]), ((), "", "text", 3 * [True]),
    ],
)  # fmt: skip
def test_without_its_model_a_tab_is_a_sentence(
    visit: Visitor, models: tuple[dict[str, Any], ...], address: str, tab: str, lacking: list[bool]
) -> None:
    answers = serving() | {"/v1/models": {"body": {"data": models}}}
    found = visit(
        _PANELS, ["all", ".missing", "@hidden"], ["all", ".panel", "className"],
        ["all", "[type=submit]", "ariaDisabled"], ["asked", "/v1/styles"], ["look", "#verdict"],
        address=address, answers=answers,
    )  # fmt: skip
    assert _shown(found[0]) == [tab]
    assert [hidden is None for hidden in found[1]] == lacking
    assert ["lacking" in name for name in found[2][:3]] == lacking
    assert found[3] == [str(lacks).lower() for lacks in lacking]
    assert bool(found[4]) == (not lacking[0])  # of a pen that is not there
    assert ("No model" in found[5]) == lacking[_TABS.index(tab)]


def test_a_key_of_the_keyboard_writes_and_another_stops(visit: Visitor) -> None:
    answers = serving(**{"/v1/completions": {"events": [], "open": True}})
    ways: list[tuple[dict[str, Any], int]] = [
        ({"ctrlKey": True}, 1), ({"metaKey": True}, 1), ({}, 0), ({"shiftKey": True}, 0),
        ({"ctrlKey": True, "isComposing": True}, 0), ({"ctrlKey": True, "keyCode": 229}, 0),
    ]  # fmt: skip
    for more, times in ways:
        found = visit(
            ["key", "Enter", more, "#text-prompt"], ["asked", "/v1/completions"],
            ["look", "#text-stop", "ariaDisabled"], ["key", "Escape", {}, "#text-prompt"],
            ["look", "#text-stop", "ariaDisabled"], address="#text", answers=answers,
        )  # fmt: skip
        assert len(found[0]) == times
        assert found[1:] == [str(not times).lower(), "true"]


def test_where_nothing_is_written_the_keyboard_does_nothing(visit: Visitor) -> None:
    for tab in ("#proof", "#lab"):
        found = visit(
            ["asked"], ["key", "Enter", {"ctrlKey": True}, "#lab-tab"], ["key", "Escape"],
            ["asked"], address=tab,
        )  # fmt: skip
        assert found[1] == []


def test_the_verdict_is_of_the_model_that_is_shown(visit: Visitor) -> None:
    lost = {**TEXT, "ready": False, "failed": "it is lost"}
    look = [["look", "#verdict"], ["look", "#verdict", "className"], ["look", "#status", "hidden"]]
    found = visit(
        *look, ["press", "#text-tab"], *look, ["press", "#proof-tab"], look[2],
        ["press", "#lab-tab"], look[2], ["press", "#write-tab"], look[2],
        answers=serving(PEN, lost),
    )  # fmt: skip
    assert found[0].startswith("Ready: ")
    assert found[1:3] == ["verdict good", False]
    assert found[3:6] == ["Not served: it is lost.", "verdict bad", False]
    assert found[6:] == [True, True, False]
    other = ["fill", "#text-model", "other"]
    found = visit(
        *look[:1], other, *look[:1], answers=serving(TEXT, {**lost, "id": "other"}), address="#text"
    )
    assert found[0].startswith("Ready: ")
    assert found[1] == "Not served: it is lost."


def test_a_field_that_is_wrong_is_folded_out(visit: Visitor) -> None:
    folded = ["look", "#write-panel details", "open"]
    found = visit(
        ["fill", "#write-size", "23"], folded, ["press", "#write-start"], folded, ["at"], ["asked"],
        ["fill", "#write-size", "24"], ["press", "#write-start"], ["asked", "/v1/handwriting"],
        address="#write",
    )  # fmt: skip
    assert found[:3] == [False, True, "write-size"]
    assert len([asked for asked in found[3] if asked["method"] == "POST"]) == 1  # the opening
    assert [asked["body"]["line_height"] for asked in found[4]] == [24]


def test_what_was_typed_goes_along_to_the_other_place_once(visit: Visitor) -> None:
    typed = {"#write-text": "gone along", "#write-seed": "77", "#write-bias": "2.5"}
    typed |= {"#write-color": "#204060", "#draw-text": "hello", "#text-prompt": "no\u00fc"}
    typed |= {"#text-temperature": "1.5", "#draw-bias": "0.5", "#write-thinning": "0.3"}
    fills = [["type", field, text] for field, text in typed.items()]
    here = ["press", "#place a[href]"]
    (address, kept) = visit(
        *fills, here, ["look", "#place a[href]", "hash"], ["kept", "sessionStorage"],
        address="?any#text?text=a",
    )  # fmt: skip
    assert address == "#text"
    session = {"evenkeel-fields": kept["evenkeel-fields"]}
    looks = [["look", field, "value"] for field in typed]
    told = [["look", f"#{name}"] for name in ("write-neat", "text-heat", "draw-neat", "write-thin")]
    found = visit(*looks, *told, ["kept", "sessionStorage"], session=session, address="#text")
    expected = typed | {"#draw-text": ""}  # the words of ink that stays behind
    assert found[: len(typed)] == [*expected.values()]
    assert found[len(typed) :] == ["2.5", "1.5", "0.5", "0.3", {}]
    for more in ("ctrlKey", "metaKey", "shiftKey"):  # this page stays
        found = visit(
            ["heard", "click", "#place a[href]", {more: True}], ["kept", "sessionStorage"]
        )
        assert found == [{}]


@pytest.mark.parametrize("spoilt", ["{", "null", "[]", "1", '"x"', '{"lab-padding": "3"}'])
def test_fields_that_another_page_left_are_passed_over(visit: Visitor, spoilt: str) -> None:
    """And so are fields that do not go along, as those outside the forms."""
    looks = [["look", field, "value"] for field in ("#write-text", "#lab-padding")]
    found = visit(*looks, session={"evenkeel-fields": spoilt})
    assert found == ["Steady as she goes.", "0"]


def test_what_a_browser_fills_in_again_is_told_beside_it(visit: Visitor) -> None:
    filled = ["sets", "#text-temperature", "value", "1.5"]
    assert visit(filled, ["happens", "pageshow"], ["look", "#text-heat"]) == ["1.5"]


def test_a_form_is_sent_by_the_page_and_not_by_the_browser(visit: Visitor) -> None:
    found = visit(["left", "submit", "#text-form"], ["asked", "/v1/completions"], address="#text")
    assert (found[0], len(found[1])) == (False, 1)


_REFUSED = {"status": 401, "body": {"error": {"message": "no key"}}}


def test_a_key_is_asked_for_once_kept_and_sent_with_everything(visit: Visitor) -> None:
    answers = serving() | {"/v1/models": [_REFUSED, _REFUSED, serving()["/v1/models"]]}
    look = [["look", "#key", "hidden"], ["look", "#key-field", "placeholder"], ["at"], ["asked"]]
    found = visit(
        *look, ["fill", "#key-field", "ek-w\u00fcrong"], *look,
        ["fill", "#key-field", "\u200bek-right \n"], *look, ["look", "#key-field", "value"],
        ["kept", "sessionStorage"], ["kept", "localStorage"], ["look", "#status", "hidden"],
        answers=answers, address="#lab",
    )  # fmt: skip
    first, second, third = found[:4], found[4:8], found[8:12]
    assert (first[:3], second[:3]) == (
        [False, "", "key-field"],
        [False, "that key is not known", "key-field"],
    )
    service = [a for a in first[3] if "plots" not in a["path"]]
    assert service == [{"method": "GET", "path": "/v1/models", "headers": {}}]
    assert [a["headers"] for a in second[3]] == [{"Authorization": "Bearer ek-wrong"}]
    assert third[0] is True
    asked = [a for a in third[3] if a["path"].startswith("/v1/")]
    assert {a["path"] for a in asked} == {"/v1/models", "/v1/styles", "/v1/previews/it"}
    assert all(a["headers"] == {"Authorization": "Bearer ek-right"} for a in asked)
    assert found[12:] == ["", {"evenkeel-key": "ek-right"}, {}, True]


def test_a_key_that_is_kept_is_sent_from_the_beginning(visit: Visitor) -> None:
    found = visit(["asked"], session={"evenkeel-key": "ek-kept"})
    sent = [a["headers"].get("Authorization") for a in found[0] if a["path"].startswith("/v1/")]
    assert len(sent) > 3
    assert set(sent) == {"Bearer ek-kept"}


def test_where_nothing_can_be_kept_a_key_lasts_as_long_as_the_page(visit: Visitor) -> None:
    answers = serving() | {"/v1/models": [_REFUSED, serving()["/v1/models"]]}
    found = visit(
        ["fill", "#key-field", "ek-any"],
        ["asked", "/v1/handwriting"],
        answers=answers,
        refuses=True,
    )
    assert [a["headers"]["Authorization"] for a in found[0]] == ["Bearer ek-any"]


def test_a_task_that_waits_for_a_key_says_so_and_may_be_stopped(visit: Visitor) -> None:
    answers = serving(**{"/v1/completions": _REFUSED})
    progress = ["look", "#text-progress"]
    found = visit(
        ["focus", "#text-prompt"], ["press", "#text-start"], progress, ["at"],
        ["press", "#text-stop"], progress, ["look", "#text-error", "hidden"],
        ["press", "#text-start"],
        ["answers", {"/v1/completions": {"events": [{"choices": [], "seed": 1}], "open": True}}],
        ["asked"], ["fill", "#key-field", "ek-any"], progress, ["at"], ["asked"],
        address="#text", answers=answers,
    )  # fmt: skip
    assert found[:4] == ["Waiting for the API key, asked for below…", "key-field", "", True]
    assert len([a for a in found[4] if a["path"] == "/v1/completions"]) == 2
    assert found[5:7] == ["Writing…", "text-prompt"]
    assert json.dumps(found[7]).count("Bearer ek-any") == 1  # of who still waits


def test_a_key_is_asked_for_where_there_is_no_status_too(visit: Visitor) -> None:
    answers = serving(**{"/v1/models/pen/attest": _REFUSED})
    look = [["look", "#status", "hidden"], ["look", "#key", "hidden"]]
    found = visit(
        look[0], ["look", "#key-field", "type"], ["press", "#proof-models button"], *look,
        ["press", "#lab-tab"], *look,
        ["press", "#proof-tab"], *look, address="#proof", answers=answers,
    )  # fmt: skip
    assert found == [True, "password", *6 * [False]]
