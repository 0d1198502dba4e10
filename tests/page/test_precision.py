"""The lists of models say which are of eight bits, and begin with what the service would take."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.page.answers import listing
from tests.page.conftest import Open
from tests.page.visit import Visit
from tests.service.serving import listening, settings

_TABS = {"text": "letters", "write": "scrawl", "draw": "scrawl"}


@pytest.fixture(scope="module")
def both(in_both: Callable[[str, Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of text and a pen, each in both precisions."""
    folder = tmp_path_factory.mktemp("both")
    for name in set(_TABS.values()):
        in_both(name, folder)
    return folder


@pytest.fixture(scope="module", params=["exact", "int8"])
def chosen(request: pytest.FixtureRequest, browser: Any, both: Path) -> Iterator[tuple[str, str]]:
    """The setting, and the URL of a service that has it."""
    with listening(settings(both, precision=request.param)) as (url, _):
        yield request.param, url


def _listed(visit: Visit, tab: str) -> list[tuple[str, str]]:
    options = visit[f"#{tab}-model option"]
    told = options.evaluate_all("options => options.map((o) => [o.text, o.value])")
    return [(text, value) for text, value in told]


@pytest.mark.parametrize("tab", _TABS)
def test_a_list_says_what_is_of_eight_bits_and_begins_with_the_default(
    chosen: tuple[str, str], opened: Open, tab: str
) -> None:
    wanted, url = chosen
    name = _TABS[tab]
    with opened(url, tab) as visit:
        eight = f"{name}-int8"
        assert _listed(visit, tab) == [(name, name), (f"{eight}, 8 bits", eight)]
        assert visit[f"#{tab}-model"].input_value() == (eight if wanted == "int8" else name)


@pytest.mark.parametrize("again", ["reload", "go_back"])
def test_what_was_chosen_is_chosen_still(handwriting: str, opened: Open, again: str) -> None:
    """A browser fills in the fields it knows, and no list that a script fills."""
    with opened(handwriting, "write") as visit:
        visit["#write-model"].select_option("handwriting-int8")
        hand = visit["#write-hands label"].nth(3).locator("input")
        hand.check()
        wanted = hand.get_attribute("value")
        visit["#text-tab"].click()
        visit["#text-model"].select_option("shakespeare-int8")
        if again == "go_back":
            visit.page.goto(f"{handwriting}/docs")
        getattr(visit.page, again)()
        visit.until("() => document.querySelector('#proof-models').children.length > 0")
        assert visit["#text-model"].input_value() == "shakespeare-int8"
        assert visit["#write-model"].input_value() == "handwriting-int8"
        assert visit["#draw-model"].input_value() == "handwriting"
        visit["#write-tab"].click()
        visit.until("() => document.querySelectorAll('#write-hands input').length > 3")
        assert visit["#write-hands input:checked"].get_attribute("value") == wanted


def test_proof_says_what_is_of_eight_bits(chosen: tuple[str, str], opened: Open) -> None:
    with opened(chosen[1], "proof") as visit:
        cards = visit["#proof-models article"].all_inner_texts()
        assert [", 8 bits" in card for card in cards] == [False, True, False, True]
        # Text in eight bits is folded.
        assert ["in a table" in card for card in cards] == [False, True, False, False]


def test_what_a_link_says_is_looked_at_for_its_own_model(handwriting: str, opened: Open) -> None:
    """The pen that a link names may write other characters than the one chosen before."""

    def of_less(route: Any) -> None:
        told = route.fetch().json()
        for model in told["data"]:
            if model["id"] == "handwriting-int8":
                model["writes"]["characters"] = "a"
                model |= {"ready": False, "failed": "this is a test"}
        route.fulfill(json=told)

    with opened(handwriting) as visit:
        visit.page.route("**/v1/models", of_less)
        visit.go("write")
        assert "Ready" in visit.text("#verdict")
        told = "handwriting-int8, 8 bits, not served"
        assert (told, "handwriting-int8") in _listed(visit, "write")
        visit.page.evaluate(
            """async () => {
              const { note } = await import("/static/models.js");
              note("handwriting", { ready: false, failed: "this too" });
            }"""
        )
        assert ("handwriting, not served", "handwriting") in _listed(visit, "write")
        visit.page.evaluate(
            """async () => {
              const { fill } = await import("/static/request.js");
              await fill({ model: "handwriting-int8", text: "za" });
            }"""
        )
        assert visit.text("#write-wrong") == "The pen cannot write z"
        assert visit.page.evaluate("history.state['write-model']") == "handwriting-int8"
        assert visit.text("#verdict") == "Not served: this is a test."
        assert visit["#verdict"].get_attribute("class") == "verdict bad"
        visit["#write-model"].select_option("handwriting")
        assert visit["#write-wrong"].is_hidden()


def test_of_two_that_can_read_the_one_is_asked_that_was_chosen_while_it_can(
    handwriting: str, opened: Open
) -> None:
    """The service would not know which is meant."""
    with opened(handwriting, "draw") as visit:
        asked = visit.page.evaluate(
            """async () => {
              const { bestOf, note, ofKind } = await import("/static/models.js");
              const { choose } = await import("/static/chosen.js");
              const judges = [bestOf().judge];
              note("another", { ...ofKind("reader")[0], id: "another" });
              judges.push(bestOf().judge);
              choose("draw-reader", "another");
              judges.push(bestOf().judge);
              note("another", { ready: false, failed: "this is a test" });
              return [...judges, bestOf().judge];
            }"""
        )
    assert asked == ["reader", "reader", "another", "reader"]


def test_a_list_begins_with_what_answers_in_eight_bits_where_that_is_so(
    site: str, opened: Open
) -> None:
    def eight(model: dict[str, Any]) -> None:
        model["default"] = model["id"] == "shakespeare-int8"

    with opened(site, "lab") as visit:
        visit.page.route("**/v1/models", listing(eight))
        visit.go("text")
        assert visit["#text-model"].input_value() == "shakespeare-int8"


def test_a_list_begins_with_the_one_worth_reading_unless_another_was_chosen(
    site: str, opened: Open
) -> None:
    def first(route: Any) -> None:
        told = route.fetch().json()
        other = next(model for model in told["data"] if model["id"] == "shakespeare")
        told["data"].insert(0, other | {"id": "aaa", "default": True})
        other["default"] = False
        route.fulfill(json=told)

    with opened(site, "lab") as visit:
        visit.page.route("**/v1/models", first)
        visit.go("text")
        assert visit["#text-model"].input_value() == "shakespeare"
