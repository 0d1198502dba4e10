"""Where the service wants an API key, the page asks for it once and sends it with everything."""

from pathlib import Path
from typing import Any

import pytest

from service.http.keys import new_key
from tests.page.conftest import Open
from tests.page.visit import HANDWRITING, Visit
from tests.service.serving import listening, settings

_ARTIFACTS = Path(__file__).parents[2] / "artifacts"


@pytest.mark.parametrize("concurrency", [None, 3])
def test_a_key_is_asked_for_kept_and_sent(
    browser: Any, tmp_path: Path, concurrency: int | None
) -> None:
    if not (_ARTIFACTS / HANDWRITING).exists():
        pytest.skip(f"artifacts/{HANDWRITING} is not there")
    key = new_key(tmp_path / "keys.toml", "visitor", concurrency=concurrency)
    with listening(settings(_ARTIFACTS, keys=tmp_path / "keys.toml")) as (url, _):
        visit = Visit(browser.new_page(), url)
        visit.page.goto(url)
        # As they come from a letter: the second with a space of no width before it.
        for typed, told in (("ek-wrong", ""), (f"\u200b{key} ", "that key is not known")):
            visit.wait("#key-field")
            visit.until("(told) => document.querySelector('#key-field').placeholder === told", told)
            visit["#key-field"].fill(typed)
            visit["#key-field"].press("Enter")
        visit.until("() => document.querySelector('#proof-models').children.length > 0")
        assert visit["#key"].is_hidden()
        kept = "[sessionStorage, localStorage].map((store) => store.getItem('evenkeel-key'))"
        assert visit.page.evaluate(kept) == [key, None]  # until the tab is closed
        visit.write("a")
        refused = len(visit.errors)
        visit.page.reload()
        visit.until("() => document.querySelector('#proof-models').children.length > 0")
        assert visit["#key"].is_hidden()
        visit.until("""() => {
          const images = [...document.querySelectorAll("#write-hands img")];
          images.forEach((image) => image.scrollIntoView());
          return images.length > 0 && images.every((image) => image.naturalWidth > 0);
        }""")
        opened = visit.page.evaluate(
            """async () => {
              const socket = (await import("/static/service.js")).openOnline();
              await new Promise((opened, failed) => {
                socket.onopen = opened;
                socket.onerror = failed;
              });
              return socket.protocol;
            }"""
        )
        assert opened == "evenkeel"
        # One question is refused without a key and one with a wrong one, whatever the page wants.
        assert len(visit.errors) == refused == 2  # and nothing once the key is kept
        assert all("401" in error for error in visit.errors), visit.errors
        visit.page.close()


def test_whoever_is_asked_for_a_key_is_led_to_the_field_and_back(site: str, opened: Open) -> None:
    focused = "document.activeElement.id"
    ask = "async () => { (await import('/static/key.js')).askKey(); }"
    with opened(site, "text") as visit:
        visit["#text-prompt"].focus()
        visit.page.evaluate(ask)
        assert visit.page.evaluate(focused) == "key-field"
        visit["#text-prompt"].focus()  # and on to something else
        visit.page.evaluate(ask)
        assert visit.page.evaluate(focused) == "key-field"
        visit["#key-field"].fill("ek-any")
        visit["#key-field"].press("Enter")
        assert visit.page.evaluate(focused) == "text-prompt"


@pytest.mark.parametrize("tab", ["proof", "lab"])
def test_a_key_is_asked_for_where_there_is_no_status_too(site: str, opened: Open, tab: str) -> None:
    with opened(site, tab) as visit:
        visit.page.evaluate("async () => { (await import('/static/key.js')).askKey(); }")
        visit["#write-tab"].click()
        visit[f"#{tab}-tab"].click()
        assert visit["#key-field"].is_visible()
        assert visit["#key-field"].get_attribute("type") == "password"


def test_a_task_that_waits_for_a_key_says_so(site: str, opened: Open) -> None:
    def refuse(route: Any) -> None:
        known = "authorization" in route.request.headers
        route.continue_() if known else route.fulfill(status=401, json={})

    with opened(site, "text") as visit:
        visit.page.route("**/v1/completions", refuse)
        visit["#text-length"].fill("5")
        visit.press("#text-start")
        visit.wait("#key-field")
        assert visit.text("#text-progress") == "Waiting for the API key, asked for below…"
        visit["#key-field"].fill("ek-any")
        visit["#key-field"].press("Enter")
        visit.wait_done("text")
        assert "Waiting" not in visit.text("#text-progress")
        visit.expect_error("401")


def test_who_is_asked_for_a_key_may_stop_instead(site: str, opened: Open) -> None:
    with opened(site, "text") as visit:
        visit.page.route("**/v1/completions", lambda route: route.fulfill(status=401, json={}))
        visit.press("#text-start")
        visit.wait("#key-field")
        visit.press("#text-stop")
        visit.wait("#text-start[aria-disabled=false]")
        visit.expect_error("401")


def test_a_key_that_cannot_be_kept_lasts_as_long_as_the_page(site: str, opened: Open) -> None:
    """And in no field."""
    with opened(site, "text") as visit:
        visit.page.evaluate(
            """async () => {
              Storage.prototype.setItem = () => { throw new DOMException("No."); };
              (await import("/static/key.js")).askKey();
            }"""
        )
        visit["#key-field"].fill("ek-any")
        visit["#key-field"].press("Enter")
        sent = visit.page.evaluate("async () => (await import('/static/key.js')).headers()")
        assert sent == {"Authorization": "Bearer ek-any"}
        assert visit["#key-field"].input_value() == ""
