"""What has changed since the page was loaded, or was lost on its way: the page finds out."""

import json
import shutil
import time
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from bench.step import random_artifact
from tests.page.answers import HEAD, LOST, USAGE, failing, ink, listing, stream, unready
from tests.page.conftest import Open
from tests.page.visit import HANDWRITING, Visit
from tests.service.altered import copy_of
from tests.service.serving import listening, settings

_ARTIFACTS = Path(__file__).parents[2] / "artifacts"
_HANDS_ARE_DRAWN = """() => {
  const images = [...document.querySelectorAll("#write-hands img")];
  return images.length && images.every((image) => image.naturalWidth);
}"""
_SAYS = "([where, what]) => document.querySelector(where).innerText.includes(what)"
_STROKE = [(60, 60), (80, 120)]


def _until(visit: Visit, heard: list[Any]) -> None:
    """Wait for a request that a test answers later."""
    for _ in range(3000):
        if heard:
            return
        visit.page.wait_for_timeout(20)
    raise AssertionError("nothing was asked")


def _post(url: str) -> None:
    urlopen(Request(url, method="POST")).close()


def _models(folder: Path, *names: str) -> Path:
    for name in names:
        if not (_ARTIFACTS / name).exists():
            pytest.skip(f"artifacts/{name} is not there")
        copy_of(_ARTIFACTS / name, folder)
    return folder


def test_proof_tells_of_the_artifact_that_is_served_now(browser: Any, tmp_path: Path) -> None:
    folder = _models(tmp_path / "artifacts", "shakespeare")
    (tmp_path / "other").mkdir()
    random_artifact(tmp_path / "other" / "shakespeare", 64)
    chosen = settings(folder, watch_s=0)
    with listening(chosen) as (url, _), Visit.begun(browser, url, "proof") as visit:
        visit.until(_SAYS, ["#proof-models", "Attested on this machine"])
        rows = visit["#proof-models tbody tr"].count()
        assert rows > 5
        shutil.rmtree(folder / "shakespeare")
        (tmp_path / "other" / "shakespeare").rename(folder / "shakespeare")
        _post(f"{url}/v1/models/shakespeare/reload")
        now = json.load(urlopen(f"{url}/v1/models/shakespeare"))
        visit.press("#proof-models article button")
        visit.until(_SAYS, ["#proof-models", now["digest"][:12]])
        assert visit["#proof-models article"].count() == 1
        assert visit["#proof-models tbody tr"].count() == 0
        assert "Served without proof" in visit["#proof-models"].inner_text()
        visit["#text-tab"].click()
        assert f"{now['parameters']:,} parameters" in visit["#text-facts"].inner_text()


def test_a_model_that_was_unloaded_is_called_ready_no_more(browser: Any, tmp_path: Path) -> None:
    folder = _models(tmp_path, HANDWRITING, "shakespeare")
    chosen = settings(folder, watch_s=0)
    with listening(chosen) as (url, _), Visit.begun(browser, url, "write") as visit:
        visit.until(_SAYS, ["#verdict", "Ready: "])
        visit.until(_HANDS_ARE_DRAWN)  # what is asked for later is not there
        _post(f"{url}/v1/models/{HANDWRITING}/unload")
        visit["#write-text"].fill("even")
        visit.press("#write-start")
        visit.until(_SAYS, ["#verdict", "Not served: it is not served any more."])
        visit["#proof-tab"].click()
        card = visit[f"article:has(#proof-of-{HANDWRITING})"]
        assert "Not served: it is not served any more." in card.inner_text()
        assert card.locator(".verdict.bad").count() == 1
        visit.expect_error("404")


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_model_that_is_gone_after_an_outage_is_asked_for_once(
    handwriting: str, opened: Open, is_ours: bool
) -> None:
    """But one that a 404 of whoever stands between is told of comes back."""
    asked = 0

    def gone(route: Any) -> None:
        nonlocal asked
        asked += 1
        if is_ours:
            told = {"message": "no such model", "param": "model"}
            route.fulfill(status=404, json={"error": told})
        elif asked == 1:
            route.fulfill(status=404, body="not here")
        else:
            route.continue_()

    with opened(handwriting, "write") as visit:
        visit.wait_done("write")
        visit.page.route(f"**/v1/models/{HANDWRITING}", gone)
        visit.page.route("**/v1/models", lambda route: route.abort())
        visit.page.evaluate("document.dispatchEvent(new Event('unanswered'))")
        if is_ours:
            visit.until(_SAYS, ["#verdict", "Not served: it is not served any more."])
            visit.page.wait_for_timeout(2500)
            assert asked == 1
            visit.page.unroute(f"**/v1/models/{HANDWRITING}")
            visit.write("ho")  # which it answers all the same
        visit.until(_SAYS, ["#verdict", "Ready: "])
        assert asked == 2 - is_ours
        visit.errors.clear()  # of requests that were answered like that


def test_a_model_that_is_found_getting_ready_is_asked_for_until_it_is(
    handwriting: str, opened: Open
) -> None:
    held = list[Any]()
    with opened(handwriting, "write") as visit:
        visit.wait_done("write")
        visit.page.route("**/v1/models", listing(unready))
        visit.page.route(f"**/v1/models/{HANDWRITING}", lambda route: held.append(route))
        visit.page.evaluate("document.dispatchEvent(new Event('unserved'))")
        visit.until(_SAYS, ["#verdict", "Getting ready"])
        _until(visit, held)
        held.pop().continue_()
        visit.until(_SAYS, ["#verdict", "Ready: "])


def test_of_a_model_that_failed_proof_says_why(handwriting: str, browser: Any) -> None:
    def failed(model: dict[str, Any]) -> None:
        unready(model)
        model["failed"] = "its files <i>have</i> changed"

    visit = Visit(browser.new_page(), handwriting)
    visit.page.route("**/v1/models", listing(failed))
    visit.go("proof")
    first = visit["#proof-models article"].first
    assert "Not served: its files <i>have</i> changed." in first.inner_text()
    assert first.locator(".verdict.bad").count() == 1
    visit.page.close()


def test_hands_that_are_lost_on_their_way_come_all_the_same(handwriting: str, opened: Open) -> None:
    cut, asked = failing(LOST, LOST)
    with opened(handwriting) as visit:
        visit.page.route("**/v1/styles", cut)
        visit.go("write")
        visit.until("() => document.querySelectorAll('#write-hands input').length > 8")
        assert len(asked) == 3
        # And those that are there stay where they cannot be had again.
        visit["#write-hands input[value=ben]"].check(force=True)
        asked.clear()
        relisted = "async () => (await import('/static/hands.js')).listHands('handwriting')"
        visit.page.evaluate(f"void ({relisted})()")
        visit.until("() => document.querySelector('#write-count').innerText.includes('looked at')")
        assert visit["#write-hands input"].count() > 8
        visit.until("() => document.querySelector('#write-count').innerText.includes('choose')")
        assert visit["#write-hands input:checked"].get_attribute("value") == "ben"
        visit.errors.clear()


def test_a_hand_that_was_forgotten_goes_where_the_others_cannot_be_had(
    handwriting: str, opened: Open
) -> None:
    hand = {"token": "mine", "strokes": [[[60, 60], [80, 120]]], "model": HANDWRITING}
    with opened(handwriting, "write") as visit:
        visit.page.evaluate(
            "(kept) => localStorage.setItem('evenkeel-hand', kept)", json.dumps(hand)
        )
        visit.go("write")
        visit.wait("#write-hands input[value=mine]", "attached")
        visit["#write-hands input[value=mine]"].check(force=True)
        visit.page.route("**/v1/styles", lambda route: route.abort())
        visit.press("#write-forget")
        visit.wait("#write-hands input[value=mine]", "detached")
        assert visit["#write-hands input"].count() > 8
        visit.errors.clear()


def test_of_a_text_that_came_all_at_once_no_pace_is_judged(site: str, opened: Open) -> None:
    """As through whoever keeps a stream until it has ended."""
    with opened(site, "text") as visit:
        visit.page.route("**/v1/completions", lambda route: route.fulfill(response=route.fetch()))
        visit["#text-length"].fill("300")
        visit.press("#text-start")
        visit.wait_done("text")
        rate = visit["#text-progress"].inner_text().split(" s: ")[1].split(" bytes/s")[0]
        assert float(rate.replace(",", "")) < 20_000


def test_a_picture_of_a_hand_that_is_refused_is_asked_for_once_more(
    handwriting: str, opened: Open
) -> None:
    asked = list[str]()

    def busy(route: Any) -> None:
        asked.append(route.request.url)
        first = asked.count(route.request.url) == 1
        route.fulfill(status=503, body="{}") if first else route.continue_()

    with opened(handwriting) as visit:
        visit.page.route("**/preview.svg*", busy)
        visit.go("write")
        there = (
            "() => [...document.querySelectorAll('#write-hands img')].filter((i) => i.naturalWidth)"
        )
        visit.until(f"{there.replace('() =>', '() => (')}).length >= 4")
        assert max(map(asked.count, asked)) == 2
        visit.errors.clear()


def test_a_refusal_of_another_hand_leaves_one_s_own(handwriting: str, opened: Open) -> None:
    hand = {"token": "mine", "strokes": [[[60, 60], [80, 120]]], "model": HANDWRITING}
    refused = {"error": {"message": "style is 'ada'; there is none", "param": "style"}}
    with opened(handwriting) as visit:
        visit.page.evaluate(
            "(hand) => localStorage.setItem('evenkeel-hand', hand)", json.dumps(hand)
        )
        visit.go("write")
        visit.wait_done("write")
        held = list[Any]()
        visit.page.route("**/v1/handwriting", lambda route: held.append(route))
        visit["#write-hands input[value=ada]"].check(force=True)
        visit["#write-text"].fill("ho")
        visit.press("#write-start")
        visit.until("() => document.querySelector('#write-stop').ariaDisabled === 'false'")
        _until(visit, held)
        visit["#write-hands input[value=mine]"].check(force=True)
        held[0].fulfill(status=400, json=refused)
        visit.until(_SAYS, ["#write-error", "there is none"])
        assert json.loads(visit.page.evaluate("localStorage.getItem('evenkeel-hand')")) == hand
        visit.expect_error("400")


def test_a_stream_that_breaks_off_has_the_service_asked_after(
    handwriting: str, opened: Open
) -> None:
    answer = stream(HEAD, ink(40))
    answer["body"] = answer["body"].removesuffix("data: [DONE]\n\n")
    with opened(handwriting, "write") as visit:
        visit.wait_done("write")
        visit.page.route(f"**/v1/models/{HANDWRITING}", lambda route: route.abort())
        visit.page.route("**/v1/handwriting", lambda route: route.fulfill(**answer))
        visit["#write-text"].fill("ho")
        visit.press("#write-start")
        visit.until(_SAYS, ["#verdict", "The service does not answer."])
        visit.page.unroute(f"**/v1/models/{HANDWRITING}")
        visit.until(_SAYS, ["#verdict", "Ready: "])
        visit.errors.clear()


def test_a_reading_that_comes_in_the_midst_of_a_stroke_loses_none_of_it(
    handwriting: str, opened: Open
) -> None:
    """A new session is told of the stroke from its beginning."""
    told, held = list[dict[str, Any]](), list[Any]()
    with opened(handwriting) as visit:
        visit.page.route_web_socket(
            "**/v1/online", lambda socket: socket.on_message(lambda m: told.append(json.loads(m)))
        )
        visit.page.route("**/v1/read", lambda route: held.append(route))
        visit.go("draw")
        visit.scribble([_STROKE])
        visit.until("() => document.querySelectorAll('#draw-pad path').length === 1")
        _until(visit, held)
        box = visit["#draw-pad"].bounding_box()
        mouse = visit.page.mouse
        mouse.move(box["x"] + 200, box["y"] + 60)
        mouse.down()
        mouse.move(box["x"] + 230, box["y"] + 100)
        held[0].fulfill(json={"text": "k"})
        visit.until("() => document.querySelector('#draw-text').value === 'k'")
        told.clear()
        mouse.move(box["x"] + 260, box["y"] + 60)
        mouse.up()
        lifted = [260, 1]
        while [round(told[-1]["point"][0]), told[-1]["point"][2]] != lifted if told else True:
            visit.page.wait_for_timeout(20)
    points = [message["point"] for message in told if "point" in message]
    assert [round(x) for x, _, _ in points][:2] == [60, 80]
    assert round(points[2][0]) == 200
    assert round(points[-1][0]) == 260
    assert [up for _, _, up in points] == [0, 1, *[0] * (len(points) - 3), 1]


def test_a_long_sheet_in_one_s_own_hand_is_printed_line_by_line(
    handwriting: str, opened: Open
) -> None:
    answer = stream(HEAD | {"lines": ["ho"] * 3, "height": 900}, ink(20), USAGE)
    with opened(handwriting, "draw") as visit:
        visit.page.route("**/v1/handwriting", lambda route: route.fulfill(**answer))
        visit.page.route("**/v1/read", lambda route: route.fulfill(json={"text": "ho"}))
        visit.go_on_from([_STROKE], "ho", "ho ho ho")
        visit.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert visit["#draw-panel .lines svg"].count() > 1


def test_escape_that_ends_a_composition_does_not_stop_the_pen(
    handwriting: str, opened: Open
) -> None:
    pressed = (
        "(told) => document.querySelector('#write-text').dispatchEvent("
        "new KeyboardEvent('keydown', { key: 'Escape', bubbles: true, ...told }))"
    )
    with opened(handwriting, "write") as visit:
        visit.wait_done("write")
        visit.begin_writing("a long line that takes its time", speed="1", seed=1)
        visit.until("() => document.querySelectorAll('#write-sheet path').length > 0")
        visit.page.evaluate(pressed, {"isComposing": True})
        visit.page.evaluate(pressed, {"keyCode": 229})  # as Safari tells it
        visit.page.wait_for_timeout(300)
        assert visit["#write-stop"].get_attribute("aria-disabled") == "false"
        visit.page.evaluate(pressed, {})
        visit.until(_SAYS, ["#write-progress", "Stopped"])


def test_of_a_text_with_a_long_prompt_the_rate_is_that_of_writing(site: str, opened: Open) -> None:
    """The prompt was read before the first byte."""
    with opened(site, "text") as visit:
        visit["#text-length"].fill("2000")  # a fifth of a second where 200 came at once
        visit["#text-prompt"].fill("It is the east, and Juliet is the sun. " * 300)
        began_s = time.monotonic()
        visit.press("#text-start")
        visit.wait_done("text")
        took_s = time.monotonic() - began_s
        told = visit["#text-progress"].inner_text()
        seconds, rate = (
            float(told.split(a)[1].split(b)[0].replace(",", ""))
            for a, b in (("Wrote 2,000 bytes in ", " s"), (" s: ", " bytes/s"))
        )
        assert seconds < took_s / 2
        assert rate == pytest.approx(2000 / seconds, rel=0.1)


def test_what_is_typed_after_another_tab_was_opened_stays(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "write") as visit:
        kept = visit.page.evaluate(
            """async () => {
              const link = document.createElement("a");
              link.href = "#";
              const place = document.createElement("div");
              place.id = "place";
              place.append(link);
              document.body.append(place);
              link.addEventListener("click", (event) => event.preventDefault());
              (await import("/static/place.js")).offerPlaces();
              const found = [];
              for (const held of ["ctrlKey", "metaKey", "shiftKey", "none"]) {
                sessionStorage.clear();
                link.dispatchEvent(new MouseEvent("click", { cancelable: true, [held]: true }));
                found.push(sessionStorage.length);
              }
              sessionStorage.clear();
              return found;
            }"""
        )
    assert kept == [0, 0, 0, 1]


def test_what_was_measured_is_asked_for_again_when_the_lab_is_shown_again(
    site: str, opened: Open
) -> None:
    cut, asked = failing(LOST, 503)
    with opened(site) as visit:
        visit.page.route("**/lab/plots.json", cut)
        visit.go("lab")
        visit.until("() => document.querySelector('#lab-numbers').children.length > 0")
        assert visit["#lab-measured"].is_hidden()
        for _ in range(2):
            visit["#proof-tab"].click()
            visit["#lab-tab"].click()
        visit.until("() => !document.querySelector('#lab-measured').hidden")
        visit["#proof-tab"].click()
        visit["#lab-tab"].click()
        assert len(asked) == 3
        visit.errors.clear()


@pytest.mark.parametrize("status", [None, 503])
def test_the_api_s_page_says_that_its_document_could_not_be_had(
    browser: Any, site: str, status: int | None
) -> None:
    visit = Visit(browser.new_page(), site)
    visit.page.route(
        "**/openapi.json",
        lambda route: route.fulfill(status=status, json={}) if status else route.abort(),
    )
    visit.page.goto(f"{site}/docs")
    visit.until(_SAYS, ["#api", "The service does not answer"])
    visit.page.close()
