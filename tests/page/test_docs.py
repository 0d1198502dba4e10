"""The page of the API's document: all from this service, and its requests work."""

from typing import Any

from tests.page.visit import Visit


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


def test_a_request_can_be_tried_out(browser: Any, site: str) -> None:
    visit = _visit(browser, site)
    visit["#operations-service-list_models_v1_models_get .opblock-summary"].click()
    visit[".try-out__btn"].click()
    visit[".execute"].click()
    visit.wait(".live-responses-table .response")
    said = visit.text(".live-responses-table .response")
    assert "200" in said
    assert '"owned_by"' in said
    assert visit.errors == []
    assert visit.elsewhere == []
    visit.page.close()
