"""What is there before anybody asks: ink at once and live soon after, what cannot be written, ink
that is no longer asked for, sheets of before, and hands.
"""

import json
import re
from typing import Any

import numpy as np
import pytest

from tests.page import opening
from tests.page.answers import HEAD, USAGE, ink, listing, stream, unready
from tests.page.conftest import Open
from tests.page.taken import numbers, paths, requests
from tests.page.visit import Visit

_SENTENCE = "Steady as she goes."
_OPENED = "() => !document.querySelector('#write-sheet .before, #write-sheet .tip')"


def _live(visit: Visit) -> None:
    """Wait until the sentence of the opening has been written."""
    visit.wait("#write-sheet path", "attached")
    visit.until(_OPENED)


def test_the_stored_ink_needs_nothing_but_its_file(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "text") as visit:
        visit.page.route("**/v1/**", lambda route: route.abort())
        visit.page.route("**/*.js", lambda route: route.abort())
        visit.page.goto("about:blank")
        visit.page.goto(handwriting)
        assert visit["#write-opening"].is_visible()
        assert visit["#write-opening"].evaluate("(image) => image.naturalWidth") > 300
        assert visit["#write-opening"].get_attribute("alt") == f"Handwriting: {_SENTENCE}"
        visit.errors.clear()  # the scripts that did not come


def test_it_is_written_live_over_that_ink(handwriting: str, opened: Open) -> None:
    with opened(handwriting) as visit:
        visit.wait("#write-sheet .before", "attached")
        visit.until("() => document.querySelectorAll('#write-sheet path').length > 3")
        _live(visit)
        assert visit["#write-opening"].is_hidden()
        assert visit["#write-sheet"].get_attribute("aria-label") == f"Handwriting: {_SENTENCE}"
        assert visit["#write-stale"].is_hidden()
        assert visit["#write-sheets"].is_hidden()


def test_the_stored_ink_is_what_the_shipped_pen_writes(handwriting: str, opened: Open) -> None:
    """`python -m tests.page.opening` draws it again when the pen's weights have changed."""
    stored = paths(opening.FILE.read_text())
    with opened(handwriting) as visit:
        asked = requests(visit)
        visit.go("write")
        _live(visit)
        assert asked[0] | {"style": None} == opening.request() | {
            "style": None, "format": "json", "stream": True,
        }  # fmt: skip
        live = visit.ink("#write-sheet")
    assert len(live) == len(stored)
    for one, other in zip(live, stored, strict=True):
        np.testing.assert_allclose(numbers(one), numbers(other), atol=0.6)


def test_who_writes_at_once_does_not_wait_for_it(handwriting: str, opened: Open) -> None:
    with opened(handwriting) as visit:
        visit.wait("#write-sheet .before", "attached")
        visit["#write-text"].fill("at once")
        visit.press("#write-start")
        visit.wait_done("write")
        assert visit["#write-sheet"].get_attribute("aria-label") == "Handwriting: at once"
        assert visit["#write-sheets"].is_hidden()  # what nobody waited for is not kept


def test_what_was_typed_before_is_not_written_over(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "lab") as visit:
        asked = requests(visit)
        typed = json.dumps({"write-text": "typed elsewhere"})
        visit.page.evaluate("(typed) => sessionStorage.setItem('evenkeel-fields', typed)", typed)
        visit.go("write")
        visit.wait("#write-start[aria-disabled=false]")
        visit.page.wait_for_timeout(500)
        assert visit["#write-empty"].is_visible()
        assert visit["#write-opening"].is_hidden()
        assert asked == []


def test_who_types_before_the_pen_is_ready_says_when_to_write(
    handwriting: str, opened: Open
) -> None:
    with opened(handwriting, "text") as visit:
        asked = requests(visit)
        visit.page.route("**/v1/models", listing(unready))
        visit.page.route("**/v1/models/*", lambda route: held.append(route))
        held: list[Any] = []
        visit.go("write")
        visit["#write-text"].fill("half a senten")
        visit.page.unroute("**/v1/models/*")
        for route in held:
            route.continue_()
        visit.until("() => document.querySelector('#verdict').textContent.startsWith('Ready')")
        visit.page.wait_for_timeout(300)
        assert asked == []


def test_ink_that_is_late_is_marked_for_who_has_typed_since(handwriting: str, opened: Open) -> None:
    held: list[Any] = []
    with opened(handwriting) as visit:
        visit.page.route("**/v1/handwriting", lambda route: held.append(route))
        visit.go("write")
        visit["#write-speed"].select_option("Infinity")
        for asked, typed in (
            ("Steady as she goes.", "something else"),
            ("something else", "once more"),
        ):
            visit.wait("#write-stop[aria-disabled=false]")
            visit["#write-text"].fill(typed)
            visit.page.wait_for_timeout(100)
            held.pop().continue_()
            visit.wait("#write-stop[aria-disabled=true]")
            assert visit.text("#write-echo") == asked
            assert visit["#write-stale"].is_visible()
            visit.press("#write-start")


def test_a_link_is_written_as_wide_as_there_is_room_once_it_is_in_sight(
    handwriting: str, opened: Open
) -> None:
    with opened(handwriting, "text") as visit:
        asked, held = requests(visit), list[Any]()
        visit.page.route("**/v1/models", listing(unready))
        visit.page.route("**/v1/models/*", lambda route: held.append(route))
        visit.go("write?text=Hi&seed=2")
        visit["#text-tab"].click()
        visit.page.unroute("**/v1/models/*")
        for route in held:
            route.continue_()
        visit.until("() => document.querySelector('#verdict').textContent.startsWith('Ready')")
        visit.page.wait_for_timeout(300)
        visit["#write-tab"].click()
        visit.until("() => document.querySelector('#write-progress').innerText.includes('seed 2')")
        room = visit["#write-desk"].evaluate(
            "(desk) => desk.clientWidth - 2 * parseFloat(getComputedStyle(desk).paddingLeft)"
        )
        assert asked[0]["width"] == pytest.approx(room, abs=1)


@pytest.mark.parametrize("fails", [False, True])
def test_a_link_waits_for_the_reader_that_chose_its_sheet(
    handwriting: str, opened: Open, fails: bool
) -> None:
    """Or for what is known of it: without a reader the link is not followed."""

    def without(model: dict[str, Any]) -> None:
        if model["kind"] == "reader":
            unready(model)

    def told(route: Any) -> None:
        model = route.fetch().json()
        route.fulfill(json=model | {"ready": False, "failed": "this is a test"} if fails else model)

    with opened(handwriting, "text") as visit:
        asked = requests(visit)
        held: list[Any] = []
        visit.page.route("**/v1/models", listing(without))
        visit.page.route("**/v1/models/*", lambda route: held.append(route))
        visit.page.goto("about:blank")
        visit.page.goto(f"{handwriting}/#write?text=Hello&seed=2&draws=4")
        visit.until("() => document.querySelector('#write-text').value === 'Hello'")
        visit.wait("#write-hands input[value=ben]")  # whose list a link waits for too
        visit.page.wait_for_timeout(500)
        assert asked == []
        assert held
        visit.page.unroute("**/v1/models/*")
        for route in held:
            told(route)
        if fails:
            visit.wait("#write-error")
            assert "a model that reads, not to be had here" in visit["#write-error"].inner_text()
            assert asked == []
        else:
            visit.wait("#write-link[aria-disabled=false]")
            assert [body["best_of"] for body in asked] == [4]


@pytest.mark.parametrize(
    ("tab", "field", "note"),
    [
        ("write", "#write-text", "#write-wrong"),
        ("draw", "#draw-text", "#draw-wrote"),
        ("draw", "#draw-next", "#draw-wrong"),
    ],
)
def test_what_cannot_be_written_is_named_while_typing(
    handwriting: str, opened: Open, tab: str, field: str, note: str
) -> None:
    with opened(handwriting, tab) as visit:
        asked = requests(visit)
        visit[field].fill("na\u00efve \u201cquotes\u201d, \u0142\u00f3d\u017a \u2026")
        assert visit[note].is_hidden()
        visit[field].fill("caf\u00e9 \u6f22 and \u0436 and \u6f22")
        visit.wait(note)
        assert visit.text(note) == "The pen cannot write \u6f22  \u0436"
        assert visit[field].get_attribute("aria-invalid") == "true"
        assert note[1:] in visit[field].get_attribute("aria-describedby").split()
        visit.press(f"#{tab}-start")
        visit.page.wait_for_timeout(300)
        assert not [body for body in asked if "\u6f22" in json.dumps(body, ensure_ascii=False)]
        visit[field].fill("   ")
        assert "nothing but spaces" in visit.text(note)
        visit[field].fill("\u200b")  # is left out when it is written
        assert "nothing but spaces" in visit.text(note)
        visit[field].fill("a\u0007b")
        assert visit.text(note) == "The pen cannot write U+0007"  # which nobody would see
        visit[field].fill("\u2764\ufe0f or \u3164")  # of an emoji, and of a letter without ink
        assert visit.text(note) == "The pen cannot write \u2764  U+3164"
        visit[field].fill("caf\u00e9")
        assert visit[note].is_hidden()
        assert visit[field].get_attribute("aria-invalid") == "false"


@pytest.mark.parametrize(
    ("tab", "field", "note"),
    [("write", "#write-text", "#write-wrong"), ("draw", "#draw-next", "#draw-wrong")],
)
def test_a_text_that_is_too_long_is_kept_and_told_of(
    handwriting: str, opened: Open, tab: str, field: str, note: str
) -> None:
    with opened(handwriting, tab) as visit:
        asked = requests(visit)
        for length in (2001, 4200):
            visit[field].fill("a" * length)
            assert f"These are {length:,} characters: the pen writes 2,000" in visit.text(note)
            visit.press(f"#{tab}-start")
        visit.page.wait_for_timeout(300)
        assert not [body for body in asked if "aaa" in json.dumps(body)]
        visit[field].fill("\u2026" * 667)  # three characters each, written out
        assert "These are 2,001 characters" in visit.text(note)
        visit[field].fill("a" * 2000)
        assert visit[note].is_hidden()


def _change(visit: Visit, what: str) -> None:
    if what == "text":
        visit["#write-text"].press("End")
        visit["#write-text"].press("x")
    if what == "hand":
        visit["#write-hands input"].last.check()
    if what == "seed":
        visit["#write-seed"].fill("4711")
    if what == "bias":
        visit["#write-bias"].fill("2.9")
    if what == "color":
        visit["#write-color"].evaluate(
            "(field) => { field.value = '#ff0000';"
            "field.dispatchEvent(new Event('input', {bubbles: true})) }"
        )


def test_ink_that_is_not_what_is_asked_for_any_more_is_marked(
    handwriting: str, opened: Open
) -> None:
    with opened(handwriting, "write") as visit:
        visit.wait("#write-hands input >> nth=2", "attached")
        for what in ("text", "hand", "seed", "bias", "color"):
            visit.write("as asked", seed=None)
            assert visit["#write-stale"].is_hidden(), what
            _change(visit, what)
            assert visit["#write-stale"].is_visible(), what
        visit.write("as asked", seed=None)
        visit["#write-text"].fill("other")
        assert visit["#write-stale"].is_visible()
        visit["#write-text"].fill("as asked")
        assert visit["#write-stale"].is_hidden()


def _shown(visit: Visit) -> dict[str, Any]:
    fields = ("text", "seed", "bias")
    said = {name: visit[f"#write-{name}"].input_value() for name in fields}
    return said | {"ink": visit.ink("#write-sheet"), "progress": visit.text("#write-progress")}


def test_a_sheet_of_before_is_shown_again(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "text") as visit:  # no opening
        visit["#write-tab"].click()
        visit["#write-bias"].fill("2")
        visit.write("the first", seed=1)
        first = _shown(visit)
        assert visit["#write-sheets"].is_hidden()
        visit["#write-bias"].fill("1")
        visit.write("and the second", seed=2)
        second = _shown(visit)
        buttons = visit["#write-sheets button"]
        assert buttons.count() == 2
        names = [button.get_attribute("aria-label") for button in buttons.all()]
        assert names == [
            "Show again: and the second, seed 2", "Show again: the first, seed 1",
        ]  # fmt: skip
        for number, before in ((1, first), (0, second)):
            buttons.nth(number).click()
            assert _shown(visit) == before
            assert visit["#write-stale"].is_hidden()
            assert buttons.nth(number).get_attribute("aria-current") == "true"
            assert buttons.nth(1 - number).get_attribute("aria-current") == "false"
        with visit.page.expect_download() as download:
            visit.press("#write-svg")
        assert download.value.suggested_filename == "evenkeel-2.svg"


def test_a_long_sheet_is_called_by_its_beginning(handwriting: str, opened: Open) -> None:
    long = HEAD | {"lines": ["a" * 40, "b" * 40]}
    with opened(handwriting, "text") as visit:
        visit.page.route(
            "**/v1/handwriting", lambda route: route.fulfill(**stream(long, ink(3), USAGE))
        )
        visit["#write-tab"].click()
        visit.write("ho")
        visit.write("ho")
        name = visit["#write-sheets button"].first.get_attribute("aria-label")
    assert name == f"Show again: {'a' * 40} {'b' * 19}, seed 3"


def test_so_many_sheets_are_kept(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "text") as visit:
        visit["#write-tab"].click()
        for seed in range(14):
            visit.write("o", seed=seed)
        labels = [b.get_attribute("aria-label") for b in visit["#write-sheets button"].all()]
        assert [int(re.sub(r".*seed ", "", label)) for label in labels] == list(range(13, 1, -1))
        visit["#write-sheets button"].last.focus()
        visit.page.keyboard.press("Control+Enter")  # and that one makes room
        visit.wait_done("write")
        assert visit["#write-sheets li:last-child button:focus"].count() == 1


def test_nine_hands_are_in_sight_and_more_are_hinted_at(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "write") as visit:
        visit.wait("#write-hands input >> nth=9", "attached")
        box = visit["#write-hands"].bounding_box()
        bottom = box["y"] + box["height"]
        cards = [card.bounding_box() for card in visit["#write-hands .hand"].all()]
        whole = [card for card in cards if card["y"] + card["height"] <= bottom]
        partly = [card for card in cards if card["y"] + 12 < bottom < card["y"] + card["height"]]
        assert len(whole) == 9
        assert partly
        assert visit.text("#write-count") == f"{len(cards)} to choose from"
        visit["#write-hands input[value=ada]"].check()
        assert visit.text("#write-hand") != ""
