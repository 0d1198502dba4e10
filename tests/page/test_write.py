"""The Write tab: a sentence becomes ink, live, as it was asked for."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from tests.page.answers import HEAD, USAGE, ink, stream
from tests.page.conftest import Open
from tests.page.taken import requests
from tests.page.visit import HANDWRITING


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
        assert len(seen) > 5


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
        visit.wait("#write-hands input", "attached")
        chosen = visit["#write-hands input"].last
        chosen.check()
        visit["#write-bias"].fill("2.5")
        visit.open_sizes()
        visit["#write-thinning"].fill("0.3")
        visit["#write-size"].fill("80")
        visit["#write-nib"].fill("3")
        visit["#write-color"].fill("#204060")
        asked = requests(visit)
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
            "thinning": 0.3,
            "color": "#204060",
            "best_of": 4,
            "best_by": "word",
            "judge": "reader",
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
        visit["#write-text"].fill("\n".join("line after line" for _ in range(125)))
        visit["#write-size"].evaluate("(field) => { field.value = 200 }")
        visit.press("#write-start")
        visit.wait("#write-error")
        # How many depends on the hand.
        said = r"text has (\d+) lines, a page of [\d,]+ px; at most 16,000,000"
        found = re.search(said, visit.text("#write-error"))
        assert found
        assert int(found[1]) >= 125
        visit.expect_error("400")


def test_reduced_motion_shows_ink_without_a_moving_pen(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "write", reduced_motion="reduce") as visit:
        visit.begin_writing("still", speed="0.5", seed=1)
        visit.wait("#write-sheet path", "attached")
        assert visit["#write-sheet .tip:visible"].count() == 0
        visit.wait_done("write")


def test_a_wrong_value_that_is_folded_away_is_shown(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "write") as visit:
        visit["#write-text"].fill("never written")
        visit["#write-size"].evaluate("(field) => { field.value = 5 }")
        visit.press("#write-start")
        visit.wait("#write-size")
        assert "never" not in visit["#write-sheet"].get_attribute("aria-label")


def test_what_is_printed_is_the_ink_alone(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "write") as visit:
        visit.write("on paper")
        visit.page.emulate_media(media="print")
        assert visit["#write-sheet"].is_visible()
        for other in ("header", "#write-form", ".tools >> visible=true", "footer"):
            assert visit[other].count() == 0 or visit[other].first.is_hidden()


_PRINTED = """() => {
  const sheets = [...document.querySelectorAll(".lines .sheet")];
  return sheets.map((sheet) => {
    const { y, height } = sheet.viewBox.baseVal;
    const boxes = [...sheet.children].map((path) => path.getBBox());
    return { y, height, middles: boxes.map((box) => box.y + box.height / 2) };
  });
}"""


def test_a_long_sheet_is_printed_line_by_line(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "write") as visit:
        visit["#write-speed"].select_option("Infinity")
        visit.write("a long letter of many words " * 20)
        ink = visit.ink("#write-sheet")
        height = visit["#write-sheet"].evaluate("(sheet) => sheet.viewBox.baseVal.height")
        visit.open_sizes()
        visit["#write-size"].fill("150")  # of what is to be written next
        visit.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        visit.page.emulate_media(media="print")
        assert visit["#write-sheet"].is_hidden()
        lines = visit.page.evaluate(_PRINTED)
        assert len(lines) == visit["#write-echo .line"].count() > 5
        assert sum(len(line["middles"]) for line in lines) == len(ink)
        below = 0.0
        for line in lines:
            assert line["y"] == pytest.approx(below)
            below += line["height"]
            assert all(line["y"] <= middle <= below for middle in line["middles"])
            assert len(line["middles"]) > 2
        look = "(sheet) => [sheet.style.strokeWidth, sheet.style.getPropertyValue('--pen')]"
        printed = [sheet.evaluate(look) for sheet in visit[".lines .sheet"].all()]
        assert printed == len(lines) * [visit["#write-sheet"].evaluate(look)]
        assert below == pytest.approx(height)
        visit.page.emulate_media(media="screen")
        visit.page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert visit["#write-sheet"].is_visible()
        assert visit[".lines"].count() == 0
        visit.page.evaluate("window.addEventListener('beforeprint', () => (window.printed = true))")
        visit.page.pdf(format="A4")
        assert visit.page.evaluate("window.printed")


def test_meta_and_enter_write_as_well(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "write") as visit:
        visit["#write-text"].fill("ho")
        with visit.page.expect_request("**/v1/handwriting") as asked:
            visit["#write-text"].press("Meta+Enter")
        assert asked.value.post_data_json["text"] == "ho"


@pytest.mark.parametrize(("width", "sizes"), [(390, ["44", "2"]), (1280, ["64", "2.5"])])
def test_lines_are_lower_where_one_would_hold_a_word(
    handwriting: str, opened: Open, width: int, sizes: list[str]
) -> None:
    with opened(handwriting, "write", viewport={"width": width, "height": 844}) as visit:
        assert [visit[f"#write-{name}"].input_value() for name in ("size", "nib")] == sizes


def test_a_page_is_as_wide_as_there_is_room_and_no_wider(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "write") as visit:
        asked = requests(visit)
        visit.write("ho")
        assert visit["#write-sheet"].bounding_box()["width"] == asked[-1]["width"]


def test_the_pen_takes_up_another_speed_at_once(handwriting: str, opened: Open) -> None:
    answer = stream(HEAD, ink(6000), USAGE)  # by a slow pen, minutes
    with opened(handwriting, "lab") as visit:
        visit.page.route("**/v1/handwriting", lambda route: route.fulfill(**answer))
        visit["#write-tab"].click()
        visit.begin_writing("ho", speed="0.5", seed=3)
        visit.wait("#write-sheet path", "attached")
        visit["#write-speed"].select_option("Infinity")
        visit.wait_done("write")
        assert visit.text("#write-progress").startswith("2 characters")


def test_what_became_of_lines_is_said(handwriting: str, opened: Open) -> None:
    ends = [{"finish_reason": reason} for reason in ("stop", "unreadable", "unreadable", "length")]
    answer = stream(HEAD, ink(3), *ends, {"usage": {"characters": 1, "points": 9}})
    with opened(handwriting, "lab") as visit:
        visit.page.route("**/v1/handwriting", lambda route: route.fulfill(**answer))
        visit["#write-tab"].click()
        visit.write("ho")
        said = visit.text("#write-progress")
    assert said.startswith("1 character, ")
    assert "; 1 line not finished; 2 lines hard to read" in said


@pytest.mark.parametrize(
    ("tab", "slider", "told"),
    [
        ("write", "bias", "neat"), ("write", "thinning", "thin"),
        ("draw", "bias", "neat"), ("text", "temperature", "heat"),
    ],
)  # fmt: skip
def test_what_a_slider_says_stands_beside_it(
    handwriting: str, opened: Open, tab: str, slider: str, told: str
) -> None:
    with opened(handwriting, tab) as visit:
        if tab == "write":
            visit.open_sizes()
        visit[f"#{tab}-{slider}"].fill("0.3")
        assert visit.text(f"#{tab}-{told}") == "0.3"
