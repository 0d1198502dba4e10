"""Models that are attested but not served: what the page says of them, and does without."""

import shutil
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.page.answers import HEAD, listing, stream, unready
from tests.page.conftest import Open
from tests.page.taken import requests
from tests.page.visit import HANDWRITING, Strokes, Visit
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


def test_beside_a_reader_that_is_not_served_the_other_reads(
    browser: Any, tmp_path: Path, strokes: Strokes
) -> None:
    """The service counts both, so the page has to name the one it means."""
    folder = _folder(tmp_path / "artifacts", "reader")
    other = shutil.copytree(_ARTIFACTS / "reader", folder / "second")
    edit_manifest(other, lambda manifest: manifest.update(name="second"))
    chosen = settings(folder, allow_unproved=False, max_wait_s=60.0)
    with listening(chosen) as (url, _), Visit.begun(browser, url, "write") as visit:
        visit.until("() => document.querySelectorAll('#proof-models .verdict.good').length === 2")
        visit.write("a")
        assert "draws of each" in visit["#write-progress"].inner_text()
        visit["#draw-tab"].click()
        visit.scribble(strokes)
        visit.until("() => document.querySelector('#draw-text').value.length > 5")


def test_of_two_readers_the_chosen_one_reads_and_chooses(
    browser: Any, tmp_path: Path, strokes: Strokes
) -> None:
    folder = _folder(tmp_path, "reader")
    edit_manifest(folder / "reader", lambda manifest: manifest.update(name="first"))
    (folder / "reader").rename(folder / "first")
    other = shutil.copytree(folder / "first", folder / "second")
    edit_manifest(other, lambda manifest: manifest.update(name="second"))
    chosen = settings(folder, max_wait_s=60.0)
    with listening(chosen) as (url, _), Visit.begun(browser, url, "draw") as visit:
        visit.until("() => document.querySelectorAll('#proof-models .verdict.good').length === 3")
        visit.scribble(strokes)
        visit.until("() => document.querySelector('#draw-text').value.length > 5")
        asked = requests(visit)
        with visit.page.expect_response(lambda answer: answer.request.method == "POST"):
            visit["#draw-reader"].select_option("second")
        visit["#write-tab"].click()
        visit.write("a")
        assert "draws of each" in visit["#write-progress"].inner_text()
        assert [one.get("judge", one["model"]) for one in asked] == ["second", "second"]


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


@pytest.mark.parametrize("streams", [False, True])
def test_a_pen_that_answers_no_more_is_not_called_ready(
    handwriting: str, opened: Open, streams: bool
) -> None:
    """As after failures in a row, or where it is stuck; it is asked after in one place."""
    error = {"error": {"message": "the model is stuck", "param": None, "code": "not_ready"}}
    answer = stream(HEAD, error) if streams else {"status": 503, "json": error}
    asked: list[str] = []

    def unserved(route: Any) -> None:
        asked.append(route.request.url)
        model = route.fetch().json()
        model["ready"] = False
        route.fulfill(json=model)

    with opened(handwriting, "write") as visit:
        visit.wait_done("write")
        visit.page.route(f"**/v1/models/{HANDWRITING}", unserved)
        visit.page.route("**/v1/models", listing(unready))
        visit.page.route("**/v1/handwriting", lambda route: route.fulfill(**answer))
        for _ in range(4):
            visit.press("#write-start")
            visit.wait("#write-error")
            assert visit.text("#write-error") == "the model is stuck"
        visit.until("() => document.querySelector('#verdict').innerText.startsWith('Getting')")
        visit.page.wait_for_timeout(2500)
        assert 1 <= len(asked) <= 3
        visit.page.unroute_all(behavior="ignoreErrors")
        visit.until("() => document.querySelector('#verdict').innerText.startsWith('Ready: ')")
        visit.errors.clear()  # of requests that were answered like that
