"""The Proof tab: verdicts and findings of every model, and a new check on demand."""

import json
import re
from urllib.request import urlopen

import pytest

from tests.page.conftest import Open


def _figure(told: str) -> float:
    return float(told.replace(",", ""))


def test_every_model_shows_its_verdict_and_findings(site: str, opened: Open) -> None:
    with urlopen(f"{site}/v1/models") as answer:
        models = json.load(answer)["data"]
    with opened(site, "proof") as visit:
        assert visit["#proof-models article"].count() == len(models)
        for model in models:
            card = visit[f"article:has(#proof-of-{model['id']})"]
            said = card.text_content()
            assert "Attested on this machine" in said
            assert model["digest"] in said
            assert model["runtime"] in said
            network, norms = model["hyperparameters"], model["layer_normalizations"]
            assert f"{network['layers']} \u00d7 {network['units']} units" in said
            assert f"{model['parameters']:,} parameters" in said
            assert re.search(rf"layer norms{norms}\D", said)
            attested = model["attestation"]
            assert f"{attested['steps']:,} steps replayed" in said
            told = re.search(
                r"largest error ([^,]+), allowed ([^,]+?)$",
                card.locator(".verdict").first.text_content(),
            )
            assert told
            for figure, name in zip(told.groups(), ("max_error", "bound"), strict=True):
                assert float(figure) == pytest.approx(attested[name], rel=0.05)
            assert ("Served without proof" in said) == (model["unproved"] is not None)
            findings = model["parity"] or []
            rows = card.locator("tbody tr")
            assert rows.count() == len(findings)
            for i, finding in enumerate(findings):
                row = rows.nth(i).text_content()
                assert finding["name"] in row
                assert finding["detail"] in row
                value, bound = rows.nth(i).locator("td").all_text_contents()[:2]
                assert _figure(value) == pytest.approx(finding["value"], rel=0.05)
                assert _figure(bound) == pytest.approx(finding["bound"], rel=0.05)
                assert ("✓ holds" if finding["holds"] else "✗ broken") in row


def test_check_it_now_replays_the_golden_vectors(site: str, opened: Open) -> None:
    with opened(site, "proof") as visit:
        card = visit["article >> nth=0"]
        assert "replayed at its start" in card.locator(".verdict").text_content()
        card.locator("button").click()
        card.locator(".verdict.good", has_text="replayed at ").wait_for()
        visit.wait("article >> nth=0 >> button:not([aria-disabled=true])")
        assert "at its start" not in card.locator(".verdict").text_content()


def test_a_check_that_fails_says_why_and_may_be_tried_again(site: str, opened: Open) -> None:
    with opened(site, "proof") as visit:
        visit.page.route("**/attest", lambda route: route.fulfill(status=503, json={}), times=1)
        card = visit["article >> nth=0"]
        button = card.locator("button")
        title = card.locator("h2").get_attribute("id")
        assert button.get_attribute("aria-describedby") == title  # of several such buttons
        assert card.locator(f"#{title} + button").is_visible()  # what it is about comes first
        button.click()
        card.locator(".verdict.bad", has_text="answers 503").wait_for()
        visit.press("article >> nth=0 >> button")
        card.locator(".verdict.good", has_text="replayed at ").wait_for()
        visit.expect_error("503")


def test_when_a_model_was_checked_last_is_said_beside_it_too(site: str, opened: Open) -> None:
    with opened(site, "text") as visit:
        visit["#text-model"].select_option("shakespeare")
        assert "checked on this machine at its start" in visit.text("#verdict")
        visit["#proof-tab"].click()
        card = visit["article:has(#proof-of-shakespeare)"]
        card.locator("button").click()
        card.locator(".verdict.good", has_text="replayed at ").wait_for()
        visit["#text-tab"].click()
        assert re.search(r"checked on this machine at [\d:]+", visit.text("#verdict"))
