"""The Proof tab: verdicts and findings of every model, and a new check on demand."""

import json
from urllib.request import urlopen

from tests.page.conftest import Open


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
            assert ("Served without proof" in said) == (model["unproved"] is not None)
            findings = model["parity"] or []
            rows = card.locator("tbody tr")
            assert rows.count() == len(findings)
            for i, finding in enumerate(findings):
                row = rows.nth(i).text_content()
                assert finding["name"] in row
                assert finding["detail"] in row
                assert ("✓ holds" if finding["holds"] else "✗ broken") in row


def test_check_it_now_replays_the_golden_vectors(site: str, opened: Open) -> None:
    with opened(site, "proof") as visit:
        card = visit["article >> nth=0"]
        assert "replayed at its start" in card.locator(".verdict").text_content()
        card.locator("button").click()
        card.locator(".verdict.good", has_text="replayed at ").wait_for()
        visit.wait("article >> nth=0 >> button:not([aria-disabled=true])")
        assert "at its start" not in card.locator(".verdict").text_content()
