"""Models that are attested but not served: what the page says of them, and does without."""

import shutil
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.page.visit import HANDWRITING, Visit
from tests.service.altered import copy_of, edit_manifest
from tests.service.serving import eventually, listening, settings

_ARTIFACTS = Path(__file__).parents[2] / "artifacts"


def _folder(folder: Path, unproved: str) -> Path:
    """The pen and the reader, one of them without a parity report."""
    for name in (HANDWRITING, "reader"):
        if not (_ARTIFACTS / name).exists():
            pytest.skip(f"artifacts/{name} is not there")
        copy_of(_ARTIFACTS / name, folder)
    edit_manifest(folder / unproved, lambda manifest: manifest.pop("parity"))
    return folder


def test_where_the_reader_is_not_served_lines_are_drawn_once(browser: Any, tmp_path: Path) -> None:
    chosen = settings(_folder(tmp_path, "reader"), allow_unproved=False)
    with listening(chosen) as (url, _), Visit.begun(browser, url, "write") as visit:
        visit.write("a")
        assert "draws of each" not in visit["#write-progress"].inner_text()
        assert visit["#draw-text"].get_attribute("placeholder") == "the words you wrote"
        visit.go("proof")
        visit.until("() => document.body.innerText.includes('Not served, as it is without proof')")


def test_where_the_reader_goes_lines_are_drawn_once(browser: Any, tmp_path: Path) -> None:
    chosen = settings(_folder(tmp_path, "reader"), watch_s=0.1)
    with listening(chosen) as (url, _), Visit.begun(browser, url, "write") as visit:
        visit.until("() => document.querySelectorAll('#proof-models .verdict.good').length === 2")
        visit.write("a")
        assert "draws of each" in visit["#write-progress"].inner_text()
        said = visit["#draw-text"].get_attribute("placeholder")
        assert said == "read as you write, or typed"
        shutil.rmtree(tmp_path / "reader")
        assert eventually(lambda: '"reader"' not in urlopen(f"{url}/v1/models").read().decode())
        visit.write("b")
        assert "draws of each" not in visit["#write-progress"].inner_text()
        visit["#draw-tab"].click()
        assert visit["#draw-text"].get_attribute("placeholder") == "the words you wrote"
        visit.expect_error("400")


def test_a_pen_that_is_not_served_is_said_to_be(browser: Any, tmp_path: Path) -> None:
    chosen = settings(_folder(tmp_path, HANDWRITING), allow_unproved=False)
    with listening(chosen) as (url, _):
        visit = Visit(browser.new_page(), url)
        visit.go("write")
        visit.until("() => document.querySelector('#status').innerText.includes('Not served: ')")
        visit.page.close()
