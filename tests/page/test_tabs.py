"""The tabs: by keyboard, by address, and what stands in one without its model."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from tests.page.conftest import Open
from tests.page.visit import HANDWRITING, Visit

_TABS = ["write", "text", "draw", "proof", "lab"]


def _shown(visit: Visit) -> list[str]:
    return [tab for tab in _TABS if visit[f"#{tab}-panel"].is_visible()]


def _assert_at(visit: Visit, tab: str) -> None:
    assert _shown(visit) == [tab]
    assert visit.page.evaluate("document.activeElement.id") == f"{tab}-tab"
    assert visit.page.evaluate("location.hash") == f"#{tab}"
    selected = visit["[role=tab][aria-selected=true]"]
    assert selected.get_attribute("id") == f"{tab}-tab"
    # One stop of the Tab key for all tabs together.
    assert visit["[role=tab]:not([tabindex='-1'])"].count() == 1


def test_arrows_home_and_end_walk_the_tabs(site: str, opened: Open) -> None:
    with opened(site, "write") as visit:
        visit["#write-tab"].focus()
        walk = [("ArrowRight", "text"), ("ArrowRight", "draw"), ("End", "lab")]
        walk += [("ArrowRight", "write"), ("ArrowLeft", "lab"), ("Home", "write")]
        for key, tab in walk:
            visit.page.keyboard.press(key)
            _assert_at(visit, tab)


@pytest.mark.parametrize("key", ["Alt", "Control", "Meta"])
def test_an_arrow_with_another_key_is_the_browsers(site: str, opened: Open, key: str) -> None:
    """With Alt it goes back a page."""
    with opened(site, "text") as visit:
        visit["#text-tab"].focus()
        visit.page.keyboard.press(f"{key}+ArrowRight")
        _assert_at(visit, "text")


def test_to_leave_takes_one_step_back_however_many_tabs_were_looked_at(
    site: str, opened: Open
) -> None:
    with opened(site, "write") as visit:
        steps = visit.page.evaluate("history.length")
        for tab in _TABS:
            visit[f"#{tab}-tab"].click()
        assert visit.page.evaluate("history.length") == steps


def test_a_name_that_a_tab_had_once_still_opens_it(site: str, opened: Open) -> None:
    with opened(site, "read") as visit:
        assert _shown(visit) == ["text"]


def test_a_history_that_takes_no_more_changes_holds_up_nothing(
    handwriting: str, opened: Open
) -> None:
    """WebKit takes a hundred in ten seconds, which an arrow key that is held down comes to."""
    with opened(handwriting, "write") as visit:
        visit.until("() => document.querySelectorAll('#write-hands input').length > 3")
        refuse = "() => { throw new Error('no more changes'); }"
        visit.page.evaluate(f"() => {{ history.replaceState = {refuse}; }}")
        visit["#write-hands label"].nth(2).click()
        hand = visit["#write-hands label"].nth(2).get_attribute("title")
        assert hand
        assert visit.text("#write-hand") == hand
        visit["#write-tab"].press("End")
        visit["#lab-tab"].press("ArrowLeft")
        assert _shown(visit) == ["proof"]
        assert visit["#status"].is_hidden()


def test_the_tab_key_goes_from_the_tabs_into_the_panel(site: str, opened: Open) -> None:
    with opened(site, "text") as visit:
        visit["#text-tab"].focus()
        visit.page.keyboard.press("Tab")
        assert visit.page.evaluate("document.activeElement.id") == "text-prompt"


@pytest.mark.parametrize("tab", _TABS)
def test_the_address_opens_its_tab(site: str, opened: Open, tab: str) -> None:
    with opened(site, tab) as visit:
        assert _shown(visit) == [tab]
        visit.page.evaluate("location.hash = '#text'")
        visit.wait("#text-panel")
        assert _shown(visit) == ["text"]


def test_write_is_shown_first(handwriting: str, opened: Open) -> None:
    with opened(handwriting) as visit:
        assert _shown(visit) == ["write"]


SiteWith = Callable[[str], AbstractContextManager[str]]


def test_without_a_handwriting_model_text_is_shown(site_with: SiteWith, opened: Open) -> None:
    asked: list[str] = []
    with site_with("shakespeare") as site, opened(site) as visit:
        visit.page.on("request", lambda request: asked.append(request.url))
        visit.go("")
        assert _shown(visit) == ["text"]
        for tab in ("write", "draw"):
            visit[f"#{tab}-tab"].click()
            assert "no handwriting model" in visit.text(f"#{tab}-missing")
            assert visit[f"#{tab}-form"].is_hidden()
    assert not [url for url in asked if "/v1/styles" in url]  # of a pen that is not there


def test_without_a_language_model_text_says_so(site_with: SiteWith, opened: Open) -> None:
    with site_with(HANDWRITING) as site, opened(site) as visit:
        assert _shown(visit) == ["write"]
        visit["#text-tab"].click()
        assert "no language model" in visit.text("#text-missing")
        assert visit["#text-form"].is_hidden()
