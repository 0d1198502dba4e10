"""The hand a person drew: this browser keeps it, and forgets one that is refused."""

import json
import time
from typing import Any

import pytest

from tests.page.answers import HEAD, USAGE, ink, stream
from tests.page.conftest import DRAWN, Open
from tests.page.visit import Strokes, Visit

_MINE = "#write-hands label:has-text('My hand')"
_KEPT = {"token": "mine", "strokes": [[[0, 0], [9, 9]]], "model": "handwriting"}


@pytest.fixture
def drawn(handwriting: str, opened: Open, strokes: Strokes) -> Any:
    """A visit in which a hand was drawn, and the page loaded again."""
    with opened(handwriting, "draw") as visit:
        visit.go_on_from(strokes, DRAWN, "ho")
        visit.page.reload()
        visit.until("() => document.querySelector('#proof-models').children.length > 0")
        yield visit


def _kept(visit: Visit) -> Any:
    return visit.page.evaluate("localStorage.getItem('evenkeel-hand')")


def test_the_hand_is_there_after_a_reload(drawn: Visit, strokes: Strokes) -> None:
    drawn.press("#draw-use")
    drawn.wait(_MINE)
    assert drawn[f"{_MINE} input"].is_checked()
    assert drawn[f"{_MINE} path"].count() == len(strokes)
    with drawn.page.expect_request("**/v1/handwriting") as asked:
        drawn.write("heave")
    token = drawn[f"{_MINE} input"].get_attribute("value")
    assert asked.value.post_data_json["style"] == token
    assert drawn.ink("#write-sheet")


def test_a_sheet_of_it_put_back_is_what_the_form_asks_for(drawn: Visit) -> None:
    drawn.press("#draw-use")
    drawn.wait(_MINE)
    drawn.write("one")
    drawn["#write-model"].select_option("handwriting-int8")
    drawn.wait(_MINE, "detached")
    drawn.write("two")
    drawn.page.route("**/v1/styles", lambda route: (time.sleep(0.3), route.continue_()))
    drawn["#write-sheets button"].last.click()
    drawn.wait(_MINE)
    assert drawn["#write-text"].input_value() == "one"
    for text, is_other in (("one more", True), ("one", False)):
        drawn["#write-text"].fill(text)
        assert drawn["#write-stale"].is_visible() == is_other


def test_it_does_not_leave_in_a_link(drawn: Visit) -> None:
    drawn.press("#draw-use")
    drawn.wait(_MINE)
    drawn.write("heave", seed=3)
    drawn.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    for forgotten in (False, True):
        if forgotten:
            drawn["#write-forget"].click()
            drawn.wait(_MINE, "detached")
        drawn.press("#write-link")
        drawn.wait_done("write")
        link = drawn.page.evaluate("navigator.clipboard.readText()")
        assert "hand=" not in link
        assert len(link) < 300
        assert "stays here" in drawn.text("#write-progress")


def test_one_of_a_model_that_is_not_served_is_told_of_and_can_be_forgotten(drawn: Visit) -> None:
    other = """() => {
      const hand = JSON.parse(localStorage.getItem("evenkeel-hand"));
      localStorage.setItem("evenkeel-hand", JSON.stringify({ ...hand, model: "gone" }));
    }"""
    drawn.page.evaluate(other)
    drawn.go("draw")
    assert drawn["#draw-use"].get_attribute("aria-disabled") == "true"
    drawn.go("write")
    drawn.wait("#write-hands input >> nth=2", "attached")
    drawn["#write-hands"].evaluate("node => node.closest('details')?.setAttribute('open', '')")
    assert "of gone, which is not served" in drawn.text("#write-hand")
    drawn["#write-forget"].click()
    assert _kept(drawn) is None


def test_a_hand_that_is_refused_is_forgotten_with_a_word(drawn: Visit) -> None:
    spoiled = """() => {
      const hand = JSON.parse(localStorage.getItem("evenkeel-hand"));
      hand.token = hand.token.slice(0, -8) + "AAAAAAAA";
      localStorage.setItem("evenkeel-hand", JSON.stringify(hand));
    }"""
    drawn.page.evaluate(spoiled)
    drawn.go("draw")
    drawn.press("#draw-use")
    drawn.wait(_MINE)
    held: list[Any] = []
    drawn.page.route("**/v1/styles", lambda route: held.append(route))
    drawn["#write-text"].fill("heave")
    drawn.press("#write-start")
    drawn.wait("#write-error")
    assert "no longer knows the hand you drew" in drawn.text("#write-error")
    drawn.expect_error("400")
    drawn.wait(_MINE, "detached")  # whenever the service says which others there are
    assert _kept(drawn) is None
    for route in held:
        route.continue_()
    drawn.write("heave ho")  # in another hand
    drawn["#draw-tab"].click()
    assert drawn["#draw-use"].get_attribute("aria-disabled") == "true"


def test_a_person_has_it_forgotten(drawn: Visit) -> None:
    assert _kept(drawn)
    assert drawn["#write-forget"].is_hidden()
    drawn.press("#draw-use")
    drawn.wait(_MINE)
    drawn["#write-forget"].press("Enter")
    drawn.wait(_MINE, "detached")
    assert _kept(drawn) is None
    assert drawn["#write-hands input:focus"].input_value() == ""  # "Any" has the keyboard
    drawn.go("write")
    drawn.wait("#write-hands input >> nth=2", "attached")
    assert drawn[_MINE].count() == 0


def test_another_page_of_the_browser_hears_of_it(drawn: Visit) -> None:
    other = Visit(drawn.page.context.new_page(), drawn.site)
    other.go("draw")
    other.wait(_MINE, "attached")
    other.wait("#draw-use[aria-disabled=false]")
    drawn.press("#draw-use")
    drawn.wait(_MINE)
    drawn["#write-forget"].click()
    other.wait("#draw-use[aria-disabled=true]")
    other.wait(_MINE, "detached")
    assert other.errors == []


def test_a_hand_that_another_page_draws_anew_is_the_one_that_is_chosen(
    handwriting: str, opened: Open
) -> None:
    with opened(handwriting, "lab") as visit:
        _with_hand(visit, "write")
        visit.wait(_MINE)
        visit[f"{_MINE} input"].check()
        other = visit.page.context.new_page()
        other.goto(f"{handwriting}/docs")
        anew = json.dumps(_KEPT | {"token": "anew"})
        other.evaluate("(kept) => localStorage.setItem('evenkeel-hand', kept)", anew)
        visit.wait(f"{_MINE} input[value=anew]", "attached")
        assert visit["#write-hands input:checked"].get_attribute("value") == "anew"


def test_what_is_not_of_this_page_is_no_hand(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "draw") as visit:
        for other in (
            "{", "null", '{"token": 5}', '{"token": "t", "strokes": []}',
            '{"token": "t", "strokes": [[[1, 2]]]}',
            *(json.dumps(_KEPT | other) for other in (
                {"token": 5}, {"model": ["m"]}, {"strokes": [[[n % 900, 9] for n in range(9000)]]},
            )),
            *(f'{{"token": "t", "model": "m", "strokes": {strokes}}}'
              for strokes in ('"ink"', "[[1, 2]]", "[[[1, 2]], []]", '[[["1", 2]]]', "[[[1]]]")),
        ):  # fmt: skip
            visit.page.evaluate("(kept) => localStorage.setItem('evenkeel-hand', kept)", other)
            visit.go("draw")
            assert visit["#draw-use"].get_attribute("aria-disabled") == "true"
            visit.wait("#write-hands input >> nth=3", "attached")
            assert visit.text("#write-hand") == "Another of these hands with each seed"


def test_a_place_that_keeps_none_forgets_none(drawn: Visit) -> None:
    """Of the two places of one origin the device forgets its hands with the page."""
    kept = _kept(drawn)
    assert kept
    drawn.page.evaluate(
        """async () => {
          (await import("/static/service.js")).answerBy({ forgetful: true });
          (await import("/static/own.js")).forgetOwn();
        }"""
    )
    assert _kept(drawn) == kept


def _with_hand(visit: Visit, tab: str) -> None:
    """Open a tab of a browser that keeps a hand."""
    kept = json.dumps(_KEPT)
    visit.page.evaluate("(kept) => localStorage.setItem('evenkeel-hand', kept)", kept)
    visit.go(tab)


def test_another_hand_that_is_refused_costs_nobody_their_own(
    handwriting: str, opened: Open
) -> None:
    error = {"error": {"message": "This is a test.", "param": "style"}}
    with opened(handwriting, "lab") as visit:
        _with_hand(visit, "write")
        visit.wait("#write-hands input[value=ben]", "attached")
        visit["#write-hands input[value=ben]"].check()
        visit.page.route("**/v1/handwriting", lambda route: route.fulfill(status=400, json=error))
        visit.press("#write-start")
        visit.wait("#write-error")
        assert visit.text("#write-error") == "This is a test."
        assert _kept(visit)
        visit.expect_error("400")


def test_a_command_of_ones_own_has_ones_hand(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "lab", permissions=["clipboard-read", "clipboard-write"]) as visit:
        _with_hand(visit, "lab")
        answer = stream(HEAD, ink(3), USAGE)
        visit.page.route("**/v1/handwriting", lambda route: route.fulfill(**answer))
        visit["#write-tab"].click()
        visit.wait(_MINE, "attached")
        visit[f"{_MINE} input"].check()
        visit.write("ho")
        visit.press("#write-curl")
        visit.wait_done("write")
        assert '"style":"mine"' in visit.page.evaluate("navigator.clipboard.readText()")


def test_a_browser_that_is_emptied_has_no_hand(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "lab") as visit:
        _with_hand(visit, "write")
        visit.wait(_MINE, "attached")
        other = visit.page.context.new_page()
        other.goto(f"{handwriting}/docs")
        other.evaluate("localStorage.clear()")
        visit.wait(_MINE, "detached")


def test_a_hand_drawn_anew_is_still_the_one_that_is_chosen(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "lab") as visit:
        _with_hand(visit, "lab")
        visit["#write-tab"].click()
        visit.wait(_MINE, "attached")
        visit[f"{_MINE} input"].check()
        visit.page.evaluate(
            "async (hand) => (await import('/static/hands.js')).offerMine(hand)",
            _KEPT | {"token": "anew"},
        )
        assert visit["#write-hands input:checked"].get_attribute("value") == "anew"


def test_its_picture_shows_all_of_it(handwriting: str, opened: Open) -> None:
    """Wherever on the paper it was drawn."""
    strokes = [[[300, 40], [320, 60]], [[340, 50], [380, 90]]]
    with opened(handwriting, "lab") as visit:
        kept = json.dumps(_KEPT | {"strokes": strokes})
        visit.page.evaluate("(kept) => localStorage.setItem('evenkeel-hand', kept)", kept)
        visit.go("lab")
        visit.wait(f"{_MINE} svg", "attached")
        assert visit[f"{_MINE} svg"].get_attribute("viewBox") == "292 32 96 66"
