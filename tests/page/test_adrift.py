"""A page that got only half of itself or of an answer, that is refused for a while, that has
another service under it than it came from, or whose browser translates it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.page.conftest import Open
from tests.page.visit import Visit
from tests.service.altered import copy_of
from tests.service.serving import listening, settings

_ARTIFACTS = Path(__file__).parents[2] / "artifacts"

_SAYS = "([where, what]) => document.querySelector(where).innerText.includes(what)"
_BREAKS_OFF = """async () => {
  const half = (stream) => stream.enqueue(new TextEncoder().encode('{"ok": '));
  const lost = (stream) => stream.error(new TypeError("whatever the browser calls it"));
  const reach = async () => new Response(new ReadableStream({ start: half, pull: lost }));
  (await import("/static/service.js")).answerBy({ reach });
}"""
# As a translator does: all texts but those that are not to be, each in an element of its own.
_TRANSLATE = """() => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (texts.nextNode()) found.push(texts.currentNode);
  for (const text of found.filter((node) => node.parentElement.translate && node.data.trim())) {
    const other = document.createElement("font");
    text.replaceWith(other);
    other.append(text.data.toUpperCase());
  }
}"""


@pytest.mark.parametrize(
    "fate",
    [{"status": 404}, {"body": "export const other = 1;", "content_type": "text/javascript"}],
    ids=["lost", "of another version"],
)
def test_a_page_that_has_not_all_of_its_parts_says_so(
    site: str, opened: Open, fate: dict[str, Any]
) -> None:
    with opened(site, "text") as visit:
        visit.page.route("**/static/fold.js", lambda route: route.fulfill(**fate))
        visit.page.reload()
        visit.until(_SAYS, ["#verdict", "of another version. Load it again"])
        visit.page.unroute("**/static/fold.js")
        visit.page.reload()
        visit.until(_SAYS, ["#verdict", "Ready"])
        visit.errors.clear()  # of the part


def test_an_answer_that_breaks_off_is_told_in_plain_words(site: str, opened: Open) -> None:
    with opened(site, "proof") as visit:
        visit.page.evaluate(_BREAKS_OFF)
        visit.press("#proof-models article:first-child button")
        visit.until(_SAYS, ["#proof-models", "The connection broke off."])


def test_who_is_refused_for_a_while_hears_how_long(site: str, opened: Open) -> None:
    error = {"message": "this key has used up its 600 bytes a minute", "code": "rate_limited"}
    with opened(site, "text") as visit:
        answer = {"status": 429, "json": {"error": error}, "headers": {"Retry-After": "37"}}
        visit.page.route("**/v1/completions", lambda route: route.fulfill(**answer))
        visit.press("#text-start")
        visit.wait("#text-error")
        assert visit.text("#text-error") == f"{error['message']}; try again in 37 s"
        # A proxy's, whose error has no words of the service, may be told by the clock.
        answer |= {"status": 503, "json": {}, "headers": {"Retry-After": "Sat, 1 Jan 2050"}}
        visit.press("#text-start")
        visit.until(_SAYS, ["#text-error", "503"])
        assert visit.text("#text-error") == "The service answers 503."
        # Whether a model that is not served will be is not known.
        answer["json"] = {"error": {"message": "it cannot be loaded", "code": "not_ready"}}
        answer["headers"] = {"Retry-After": "2"}
        visit.press("#text-start")
        visit.until(_SAYS, ["#text-error", "loaded"])
        assert visit.text("#text-error") == "it cannot be loaded"
        visit.errors.clear()  # of the refusals


def _called(name: str, told: dict[str, Any]) -> dict[str, Any]:
    """A list of models, of which one of a kind is left, under another name."""
    first = {model["kind"]: model for model in reversed(told["data"])}
    return {"data": [model | {"id": f"{name}-{kind}"} for kind, model in first.items()]}


@pytest.mark.parametrize(("tab", "kind"), [("text", "language"), ("write", "handwriting")])
def test_a_model_that_came_in_place_of_another_can_be_chosen(
    handwriting: str, opened: Open, tab: str, kind: str
) -> None:
    """As where a service of other models was put in place of the one that the page is of."""

    def of(name: str) -> Any:
        return lambda route: route.fulfill(json=_called(name, route.fetch().json()))

    error = {"error": {"message": f"there is no model 'old-{kind}'", "param": "model"}}
    with opened(handwriting, "lab") as visit:
        visit.page.route("**/v1/styles", lambda route: route.fulfill(json={"data": []}))
        visit.page.route("**/v1/models", of("old"))
        visit.go(tab)
        visit.page.unroute("**/v1/models")
        visit.page.route("**/v1/models", of("new"))
        for path in ("completions", "handwriting"):
            visit.page.route(f"**/v1/{path}", lambda r: r.fulfill(status=404, json=error))
        visit.press(f"#{tab}-start")
        visit.wait(f"#{tab}-error")
        visit.until(_SAYS, ["#verdict", "not served any more"])
        visit[f"#{tab}-model"].select_option(f"new-{kind}")
        assert visit.text("#verdict").startswith("Ready")
        visit.errors.clear()  # of the refusals


def _whole(site: str, length: int) -> str:
    body = {"model": "shakespeare", "prompt": "KING", "max_tokens": length, "seed": 4}
    data = json.dumps(body | {"temperature": 0.6}).encode()
    headers = {"content-type": "application/json"}
    with urlopen(Request(f"{site}/v1/completions", data, headers)) as answer:
        text: str = json.load(answer)["choices"][0]["text"]
        return text


@pytest.fixture
def anew(tmp_path: Path) -> Iterator[Callable[[Any], None]]:
    """Has a request answered by a service of the same model that signs with another key."""
    copy_of(_ARTIFACTS / "shakespeare", tmp_path)
    with listening(settings(tmp_path, state_key="the key of another start")) as (url, _):
        headers = {"content-type": "application/json"}

        def handle(route: Any) -> None:
            answer = route.fetch(url=f"{url}/v1/completions", headers=headers)
            route.fulfill(response=answer)

        yield handle


def _begun(visit: Visit) -> None:
    visit["#text-prompt"].fill("KING")
    visit["#text-length"].fill("30")
    visit["#text-seed"].fill("4")
    visit.press("#text-start")
    visit.wait_done("text")


def test_a_text_is_gone_on_with_though_the_service_was_started_anew(
    site: str, opened: Open, anew: Callable[[Any], None]
) -> None:
    """Its tokens are no longer known there, but the same request gives the same text again."""
    with opened(site, "text") as visit:
        _begun(visit)
        visit.page.route("**/v1/completions", anew)
        visit.press("#text-goon")
        visit.wait_done("text")
        assert visit.text("#text-passage") == f"KING{_whole(site, 60)}"
        visit.expect_error("400")


def test_a_text_that_cannot_be_gone_on_with_says_why(
    site: str, opened: Open, anew: Callable[[Any], None]
) -> None:
    """One that went on from a token is not to be had again without it."""
    with opened(site, "text") as visit:
        _begun(visit)
        visit.press("#text-goon")
        visit.wait_done("text")
        before = visit.text("#text-passage")
        visit.page.route("**/v1/completions", anew)
        visit.press("#text-goon")
        visit.wait("#text-error")
        assert "was started anew" in visit.text("#text-error")
        assert visit.text("#text-passage") == before
        visit.errors.clear()  # of the tokens


def test_a_translator_leaves_what_a_model_wrote_as_it_is(site: str, opened: Open) -> None:
    with opened(site, "text") as visit:
        _begun(visit)
        visit.page.evaluate(_TRANSLATE)
        assert visit.text("#text-tab") == "TEXT"
        assert visit.text("#text-passage") == f"KING{_whole(site, 30)}"


def test_a_task_that_failed_is_not_under_way_for_who_has_the_page_translated(
    site: str, opened: Open
) -> None:
    held: list[Any] = []
    with opened(site, "text") as visit:
        visit.page.route("**/v1/completions", lambda route: held.append(route))
        with visit.page.expect_request("**/v1/completions"):
            visit.press("#text-start")
        visit.page.evaluate(_TRANSLATE)
        held[0].fulfill(status=503, json={})
        visit.wait("#text-error")
        assert visit.text("#text-progress") == ""
        visit.expect_error("503")
