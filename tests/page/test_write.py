"""The Write tab: a sentence becomes ink, live, and the same ink can be downloaded."""

import json
import re
import shlex
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.page.conftest import Open
from tests.page.visit import HANDWRITING, Visit

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def _download(visit: Visit, kind: str) -> bytes:
    with visit.page.expect_download() as download:
        visit.press(f"#write-{kind}")
    assert download.value.suggested_filename == f"evenkeel-{visit.shown_seed('write')}.{kind}"
    content = Path(download.value.path()).read_bytes()
    visit.wait_done("write")
    return content


def _numbers(data: str) -> list[float]:
    return [float(number) for number in _NUMBER.findall(data)]


def test_a_sentence_becomes_ink_and_ends(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "write") as visit:
        visit["#write-text"].fill("all is well")
        visit["#write-text"].press("Control+Enter")
        visit.wait("#write-sheet .tip", "attached")
        visit.wait("#write-echo .now")
        first = visit.ink("#write-sheet")
        visit.until("(n) => document.querySelectorAll('#write-sheet path').length > n", len(first))
        visit.wait_done("write")
        assert visit["#write-sheet .tip"].count() == 0
        assert visit["#write-echo .now"].count() == 0
        assert len(visit.ink("#write-sheet")) > len(first)
        assert visit["#write-sheet"].get_attribute("aria-label") == "Handwriting: all is well"
        assert visit.text("#write-progress").startswith("11 characters, ")


def test_the_pen_follows_the_text(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "write") as visit:
        visit.begin_writing("to and fro", speed="5", seed=3)
        seen = visit.page.evaluate(
            """async () => {
              const seen = [];
              const now = () => document.querySelector("#write-echo .now");
              while (document.querySelector("#write-start").ariaDisabled === "true") {
                const place = now() ? [...now().parentNode.children].indexOf(now()) : -1;
                if (place >= 0 && place !== seen.at(-1)) seen.push(place);
                await new Promise(requestAnimationFrame);
              }
              return seen;
            }"""
        )
        assert seen == sorted(seen)
        assert seen[-1] > 5


def test_the_download_is_what_was_watched(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "write") as visit:
        visit.write("Fair winds", seed=11)
        drawn = visit.ink("#write-sheet")
        svg = _download(visit, "svg").decode()
        saved = re.findall(r'<path d="([^"]+)"', svg)
        assert len(saved) == len(drawn)
        for ours, theirs in zip(drawn, saved, strict=True):
            assert _numbers(ours) == pytest.approx(_numbers(theirs), abs=0.05)
        assert _download(visit, "png").startswith(b"\x89PNG")
        assert _download(visit, "pdf").startswith(b"%PDF-")


def test_again_writes_with_another_seed(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "write") as visit:
        visit.write("anew", seed=11)
        assert visit.shown_seed("write") == 11
        first = visit.ink("#write-sheet")
        visit.press("#write-again")
        visit.wait_done("write")
        assert visit.shown_seed("write") != 11
        assert visit.ink("#write-sheet") != first


def test_escape_stops_the_pen(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "write") as visit:
        visit.begin_writing("a long sentence that nobody waits for", speed="0.5", seed=None)
        visit.wait("#write-sheet path", "attached")
        visit.page.keyboard.press("Escape")
        visit.wait_done("write")
        assert visit.text("#write-progress").startswith("Stopped")
        left = visit.ink("#write-sheet")
        visit.page.wait_for_timeout(300)
        assert visit.ink("#write-sheet") == left


def test_what_is_chosen_is_what_is_asked_for(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "write") as visit:
        asked: list[dict[str, Any]] = []
        visit.page.on(
            "request", lambda r: asked.append(r.post_data_json) if r.method == "POST" else None
        )
        visit.wait("#write-hands input", "attached")
        chosen = visit["#write-hands input"].last
        chosen.check()
        visit["#write-bias"].fill("2.5")
        visit["summary >> visible=true"].click()
        visit["#write-size"].fill("80")
        visit["#write-nib"].fill("3")
        visit["#write-color"].fill("#204060")
        visit.write("so", seed=5)
        assert asked[0] | {"width": 0, "model": ""} == {
            "model": "",
            "text": "so",
            "bias": 2.5,
            "seed": 5,
            "style": chosen.get_attribute("value") or None,
            "format": "json",
            "stream": True,
            "width": 0,
            "line_height": 80,
            "stroke_width": 3,
            "color": "#204060",
            "best_of": 4,
        }


def test_without_a_reader_one_draw_is_asked_for(
    site_with: Callable[[str], AbstractContextManager[str]], opened: Open
) -> None:
    with site_with(HANDWRITING) as site, opened(site, "write") as visit:
        with visit.page.expect_request("**/v1/handwriting") as asked:
            visit.write("so", seed=5)
        assert "best_of" not in asked.value.post_data_json
        assert visit.ink("#write-sheet")


def test_quotes_of_a_phone_are_written_as_typed_ones(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "write") as visit:
        visit.write("\u201cit\u2019s\u201d")
        assert visit["#write-sheet"].get_attribute("aria-label") == 'Handwriting: "it\'s"'


def test_a_refusal_is_said_in_words(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "write") as visit:
        visit["#write-text"].fill("\u6f22")
        visit.press("#write-start")
        visit.wait("#write-error")
        assert "\u6f22" in visit.text("#write-error")
        visit.expect_error("400")


def test_reduced_motion_shows_ink_without_a_moving_pen(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "write", reduced_motion="reduce") as visit:
        visit.begin_writing("still", speed="0.5", seed=1)
        visit.wait("#write-sheet path", "attached")
        assert visit["#write-sheet .tip:visible"].count() == 0
        visit.wait_done("write")


def test_a_wrong_value_that_is_folded_away_is_shown(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "write") as visit:
        visit["#write-size"].evaluate("(field) => { field.value = 5 }")
        visit.press("#write-start")
        visit.wait("#write-size")
        assert visit.ink("#write-sheet") == []


def test_the_command_that_is_copied_asks_for_this_ink(handwriting: str, opened: Open) -> None:
    permissions = ["clipboard-read", "clipboard-write"]
    with opened(handwriting, "write", permissions=permissions) as visit:
        visit.write("it's curled", seed=11)
        visit.press("#write-curl")
        visit.wait_done("write")
        command = shlex.split(visit.page.evaluate("navigator.clipboard.readText()"))
        assert command[:2] == ["curl", f"{handwriting}/v1/handwriting"]
        body = json.loads(command[command.index("-d") + 1])
        assert (body["text"], body["seed"]) == ("it's curled", 11)
        saved = re.findall(r'<path d="([^"]+)"', _download(visit, "svg").decode())
        data = json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        with urlopen(Request(command[1], data, headers)) as answer:
            assert re.findall(r'<path d="([^"]+)"', answer.read().decode()) == saved


def test_what_is_printed_is_the_ink_alone(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "write") as visit:
        visit.write("on paper")
        visit.page.emulate_media(media="print")
        assert visit["#write-sheet"].is_visible()
        for other in ("header", "#write-form", ".tools >> visible=true", "footer"):
            assert visit[other].count() == 0 or visit[other].first.is_hidden()
