"""What is for research alone is told wherever the licence is."""

import re
from pathlib import Path

import pytest

from contract.manifests import read_manifest
from lab.measured.page import SHIPPED

_ROOT = Path(__file__).parents[1]
_SHIPPED = [read_manifest(path.parent) for path in (_ROOT / "artifacts").glob("*/manifest.json")]
_OF_UNIPEN = sorted(m.name for m in _SHIPPED if m.provenance["data"]["name"].startswith("unipen"))


def test_what_else_was_learned_from_is_in_the_public_domain() -> None:
    """Whoever ships a model of other data has its terms told in its card, and asked for here."""
    readme = (_ROOT / "README.md").read_text()
    assert "tiny-shakespeare, a text in the public domain" in " ".join(readme.split())
    (free,) = re.findall(r"^echo '(\w{64}) ", readme, re.M)
    others = [m for m in _SHIPPED if m.name in set(SHIPPED) - set(_OF_UNIPEN)]
    assert {m.provenance["data"]["sha256"] for m in others} == {free}


def test_the_pens_and_the_reader_learned_from_unipen() -> None:
    assert {"handwriting", "handwriting-int8", "reader"} <= set(_OF_UNIPEN)


@pytest.mark.parametrize("name", _OF_UNIPEN)
def test_the_readme_says_whose_weights_are_for_research(name: str) -> None:
    licence = (_ROOT / "README.md").read_text().partition("## Licence\n")[2]
    assert f"`{name}`" in licence


@pytest.mark.parametrize("name", _OF_UNIPEN)
def test_a_card_in_the_licence_has_both_notices_of_its_data(name: str) -> None:
    licence = (_ROOT / "README.md").read_text().partition("## Licence\n")[2]
    cards = [
        (_ROOT / path).read_text() for path in re.findall(r"\((docs/model-card-\S+\.md)\)", licence)
    ]
    card = next(card for card in cards if f"`{name}`" in card and "Research only" in card)
    assert "UNIPEN train_r01_v07" in card
