"""The page of the API's document: all from this service, and its requests work."""

from pathlib import Path
from typing import Any

from service.http.keys import new_key
from tests.page.visit import Visit
from tests.service.serving import listening, settings

_ARTIFACTS = Path(__file__).parents[2] / "artifacts"


def _visit(browser: Any, site: str) -> Visit:
    visit = Visit(browser.new_page(), site)
    visit.page.goto(f"{site}/docs")
    visit.wait(".opblock")
    return visit


def test_it_shows_every_operation_and_asks_nobody_else(browser: Any, site: str) -> None:
    visit = _visit(browser, site)
    paths = {
        text.replace("\u200b", "") for text in visit[".opblock-summary-path"].all_inner_texts()
    }
    assert {"/v1/completions", "/v1/handwriting", "/v1/models", "/readyz"} <= paths
    assert visit.errors == []
    assert visit.elsewhere == []
    visit.page.close()


def try_out(visit: Visit) -> str:
    """What the list of models is answered with."""
    visit["#operations-service-list_models .opblock-summary"].click()
    visit[".try-out__btn"].click()
    visit[".execute"].click()
    visit.wait(".live-responses-table .response")
    return visit.text(".live-responses-table .response")


def test_a_request_can_be_tried_out(browser: Any, site: str) -> None:
    visit = _visit(browser, site)
    said = try_out(visit)
    assert "200" in said
    assert '"owned_by"' in said
    assert visit.errors == []
    assert visit.elsewhere == []
    visit.page.close()


def test_a_key_is_asked_for_and_sent_with_what_is_tried_out(browser: Any, tmp_path: Path) -> None:
    key = new_key(tmp_path / "keys.toml", "visitor")
    with listening(settings(_ARTIFACTS, keys=tmp_path / "keys.toml")) as (url, _):
        visit = Visit(browser.new_page(), url)
        # As it comes from a letter: with a space of no width before it, and a line end after it.
        visit.page.on("dialog", lambda dialog: dialog.accept(f"\u200b{key}\n"))
        visit.page.goto(f"{url}/docs")
        visit.wait(".opblock")
        visit.expect_error("401")
        assert '"owned_by"' in try_out(visit)
        assert visit.errors == []
        visit.page.close()
