"""The hands to choose from: all come, however late, and what is checked is what is asked for."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.page.answers import HEAD, USAGE, failing, ink, listing, stream, unready
from tests.page.conftest import Open
from tests.page.taken import requests
from tests.page.visit import HANDWRITING, Visit
from tests.service.altered import copy_of
from tests.service.serving import listening, settings

_ARTIFACTS = Path(__file__).parents[2] / "artifacts"
_CHECKED = "#write-hands input:checked"
_CHOOSE = "async (hand) => (await import('/static/hands.js')).chooseHand(hand)"


@contextmanager
def _visit(browser: Any, folder: Path) -> Iterator[Visit]:
    """A page of a service of the pen alone, which may be told something else than it says."""
    if not (_ARTIFACTS / HANDWRITING).exists():
        pytest.skip(f"artifacts/{HANDWRITING} is not there")
    copy_of(_ARTIFACTS / HANDWRITING, folder)
    with listening(settings(folder)) as (url, _):
        visit = Visit(browser.new_page(), url)
        yield visit
        visit.page.close()


def test_a_link_s_hand_is_waited_for_where_the_list_comes_late(
    browser: Any, tmp_path: Path
) -> None:
    late, asked = failing(503)
    with _visit(browser, tmp_path) as visit:
        visit.page.route("**/v1/styles", late)
        visit.page.goto(f"{visit.site}/#write?text=Hi&hand=ada&seed=2")
        visit.until("() => document.querySelector('#write-progress').innerText.includes('seed 2')")
        visit.wait_done("write")
        assert visit.ink("#write-sheet")
        assert len(asked) > 1
        assert visit[_CHECKED].get_attribute("value") == "ada"


def test_hands_come_where_the_list_was_asked_for_before_the_pen_was_ready(
    browser: Any, tmp_path: Path
) -> None:
    """Another pen that is ready makes the list an answer, without those of this one."""
    asked = 0

    def early(route: Any) -> None:
        nonlocal asked
        asked += 1
        route.fulfill(json={"object": "list", "data": []}) if asked == 1 else route.continue_()

    with _visit(browser, tmp_path) as visit:
        visit.page.route("**/v1/styles", early)
        visit.page.route("**/v1/models", listing(unready))
        visit.go("write")
        visit.until("() => document.querySelectorAll('#write-hands input').length > 8")
        assert asked > 1
        assert visit.errors == []


def test_a_hand_that_is_not_there_leaves_no_other_checked(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "write") as visit:
        visit.wait("#write-hands input[value=ben]")
        visit.page.evaluate(_CHOOSE, "ben")
        assert visit[_CHECKED].get_attribute("value") == "ben"
        visit.page.evaluate(_CHOOSE, "nobody")
        assert visit[_CHECKED].get_attribute("value") == ""  # any, which is what is asked for


def test_a_sheet_is_marked_when_another_hand_is_chosen_for_a_person(
    handwriting: str, opened: Open
) -> None:
    with opened(handwriting, "write") as visit:
        visit.wait("#write-hands input[value=ben]")
        visit.write("a")
        for hand, marked in (("ben", True), (None, False)):
            visit.page.evaluate(_CHOOSE, hand)
            assert visit["#write-stale"].is_visible() == marked


def test_hands_that_are_listed_anew_keep_the_keyboard(handwriting: str, opened: Open) -> None:
    """As they are every two seconds while the service looks at its hands."""
    with opened(handwriting, "write") as visit:
        visit.wait("#write-hands input[value=ben]")
        visit["#write-hands input[value=ben]"].check()
        visit["#write-hands input[value=ben]"].focus()
        held = visit.page.evaluate(
            """async () => {
              const model = document.querySelector("#write-model").value;
              await (await import("/static/hands.js")).listHands(model);
              return document.activeElement.value;
            }"""
        )
    assert held == "ben"


def test_hands_that_come_late_are_not_those_of_another_pen(handwriting: str, opened: Open) -> None:
    """And a pen has no hands but its own."""
    asked: list[Any] = []
    with opened(handwriting, "write") as visit:
        visit.wait("#write-hands input[value=ben]", "attached")
        visit.page.route("**/v1/styles", lambda r: asked.append(r) if not asked else r.continue_())
        visit.page.evaluate(
            """async () => {
              const { listHands } = await import("/static/hands.js");
              window.late = listHands("handwriting");
              listHands("no such pen");
            }"""
        )
        visit.until("() => document.querySelectorAll('#write-hands input').length === 1")
        asked[0].continue_()
        visit.page.evaluate("window.late")
        values = visit["#write-hands input"].evaluate_all("fields => fields.map((f) => f.value)")
    assert values == ["made-up"]


def test_one_s_own_hand_is_chosen_by_a_person_alone(handwriting: str, opened: Open) -> None:
    """A pen that has no stored hands has no "Any" to begin with."""
    hand = {"token": "mine", "strokes": [[[60, 60], [80, 120]]], "model": HANDWRITING}
    with opened(handwriting, "lab") as visit:
        visit.page.evaluate(
            "(hand) => localStorage.setItem('evenkeel-hand', hand)", json.dumps(hand)
        )
        visit.page.route("**/v1/styles", lambda route: route.fulfill(json={"data": []}))
        visit.page.route("**/v1/handwriting", lambda r: r.fulfill(**stream(HEAD, ink(9), USAGE)))
        asked = requests(visit)
        visit.go("lab")
        visit["#write-tab"].click()
        visit.wait("#write-hands input[value=mine]", "attached")
        visit.write("ho")
        assert (visit[_CHECKED].get_attribute("value"), asked[-1]["style"]) == ("made-up", None)
        visit["#write-hands label:has-text('My hand')"].click()
        visit.write("ho")
        assert (visit[_CHECKED].get_attribute("value"), asked[-1]["style"]) == ("mine", "mine")


def test_a_hand_is_called_by_its_name_and_says_what_it_is_like(
    handwriting: str, opened: Open
) -> None:
    with urlopen(f"{handwriting}/v1/styles") as answer:
        likes = {style["id"]: style["description"] for style in json.load(answer)["data"]}
    with opened(handwriting, "write") as visit:
        visit.wait("#write-hands input[value=ben]")
        assert visit.text("#write-hands label:has(input[value=ben])") == "Ben"
        visit["#write-hands input[value=ben]"].check()
        assert visit.text("#write-hand") == likes["ben"]
