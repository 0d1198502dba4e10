"""The sheets of a visit: each comes back as it was, and none while the pen writes."""

from typing import Any

import pytest

from tests.page.answers import HEAD, USAGE, ink, stream
from tests.page.conftest import Open
from tests.page.taken import download
from tests.page.visit import Visit

_LOOK = """() => {
  const sheet = document.querySelector("#write-sheet");
  const echo = document.querySelector("#write-echo").textContent;
  const [nib, color] = ["nib", "color"].map((f) => document.querySelector(`#write-${f}`).value);
  const { strokeWidth } = sheet.style;
  return [sheet.ariaLabel, echo, sheet.style.getPropertyValue("--pen"), strokeWidth, nib, color];
}"""


def _answer(visit: Visit, points: int = 9) -> None:
    """Have whatever is asked for answered at once, by so many points."""

    def drawn(route: Any) -> None:
        body = route.request.post_data_json
        same = {name: body[name] for name in ("color", "stroke_width", "seed") if name in body}
        head = HEAD | same | {"lines": [body["text"]]}
        route.fulfill(**stream(head, ink(points), USAGE))

    visit.page.unroute_all()
    visit.page.route("**/v1/handwriting", drawn)


@pytest.fixture
def writing(handwriting: str, opened: Open) -> Any:
    """A visit of the Write tab without the ink of its opening."""
    with opened(handwriting, "lab") as visit:
        _answer(visit)
        visit["#write-tab"].click()
        visit.open_sizes()
        yield visit


def test_a_sheet_comes_back_in_its_colour_and_nib_and_with_its_words(writing: Visit) -> None:
    looks = []
    for text, nib, color in (("one", "3", "#aa0000"), ("two", "1.5", "#00aa00")):
        writing["#write-nib"].fill(nib)
        writing["#write-color"].fill(color)
        writing.write(text)
        looks.append(writing.page.evaluate(_LOOK))
    for number in (1, 0):
        writing["#write-sheets button"].nth(number).click()
        assert writing.page.evaluate(_LOOK) == looks[1 - number]


def test_a_sheet_that_was_stopped_comes_back_as_one(writing: Visit) -> None:
    _answer(writing, points=6000)
    writing.begin_writing("one", speed="0.5", seed=1)
    writing.wait("#write-sheet path", "attached")
    writing.page.keyboard.press("Escape")
    writing.wait_done("write")
    _answer(writing)
    writing.write("two", seed=2)
    writing["#write-sheets button"].last.click()
    assert writing.text("#write-progress") == "Stopped\nseed 1"


def test_no_sheet_is_put_under_a_pen_that_writes(writing: Visit) -> None:
    for seed in (1, 2):
        writing.write("before", seed=seed)
    _answer(writing, points=6000)
    writing.begin_writing("now", speed="0.5", seed=3)
    writing.wait("#write-sheet path", "attached")
    writing["#write-sheets button"].first.click()
    assert writing["#write-sheet"].get_attribute("aria-label") == "Handwriting: now"
    for kind in ("svg", "png", "pdf", "curl", "python", "link"):
        assert writing[f"#write-{kind}"].get_attribute("aria-disabled") == "true"


def test_what_is_taken_away_is_what_is_shown_and_not_what_is_typed_since(writing: Visit) -> None:
    writing.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    writing.write("mine", seed=11)
    writing["#write-text"].fill("another")
    writing["#write-seed"].fill("12")
    with writing.page.expect_request("**/v1/handwriting") as asked:
        writing.press("#write-pdf")
    assert (asked.value.post_data_json["text"], asked.value.post_data_json["seed"]) == ("mine", 11)
    writing.wait("#write-error")  # for what answers here makes no PDF
    for kind in ("curl", "python", "link"):
        writing.press(f"#write-{kind}")
        writing.wait_done("write")
        copied = writing.page.evaluate("navigator.clipboard.readText()")
        assert "mine" in copied
        assert "another" not in copied


def test_a_print_that_nobody_heard_the_end_of_is_not_printed_twice(writing: Visit) -> None:
    writing.write("ho")
    writing["#write-text"].fill("another")
    for _ in range(2):
        writing.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert writing[".lines"].count() == 1
    writing.page.emulate_media(media="print")
    assert (
        writing["#write-sheet.stale"].evaluate("(sheet) => getComputedStyle(sheet).opacity") == "1"
    )


def test_a_dot_is_seen_on_the_sheet_and_in_the_file(writing: Visit) -> None:
    """A line of no length is drawn by its round ends alone; a ball pen has one width for all."""
    writing.write("ho")
    cap = "(sheet) => getComputedStyle(sheet).strokeLinecap"
    assert writing["#write-sheet"].evaluate(cap) == "round"
    drawing = writing.page.evaluate(
        """async () => {
          const { toSvg } = await import("/static/save.js");
          return toSvg(document.querySelector("#write-sheet"), "ho");
        }"""
    )
    assert 'stroke-width="2.5"' in drawing
    assert 'stroke-linecap="round"' in drawing


def test_a_line_ends_with_a_lifted_pen(writing: Visit) -> None:
    writing.page.unroute_all()
    lines = [ink(9), {"finish_reason": "stop"}, ink(9) | {"line": 1}, {"finish_reason": "stop"}]
    answer = stream(HEAD | {"lines": ["a", "b"]}, *lines, USAGE)
    writing.page.route("**/v1/handwriting", lambda route: route.fulfill(**answer))
    writing.write("a\nb")
    assert len(writing.ink("#write-sheet")) == 2
    assert writing["#write-sheet"].get_attribute("aria-label") == "Handwriting: a b"
    assert "<title>a\nb</title>" in download(writing, "svg").decode()
    writing.write("c")
    writing["#write-sheets button"].last.click()
    assert writing["#write-sheet"].get_attribute("aria-label") == "Handwriting: a b"


def test_the_letter_that_is_written_is_in_sight_above(writing: Visit) -> None:
    writing.page.unroute_all()
    answer = stream(HEAD | {"lines": ["ho"] * 30}, ink(9) | {"line": 29}, USAGE)
    writing.page.route("**/v1/handwriting", lambda route: route.fulfill(**answer))
    writing.write("ho")
    echo = writing["#write-echo"].bounding_box()
    letter = writing["#write-echo .line >> nth=29"].bounding_box()
    assert echo["y"] <= letter["y"] < echo["y"] + echo["height"]


def test_on_a_phone_what_is_written_comes_into_sight(handwriting: str, opened: Open) -> None:
    """But nobody is taken there who has not asked."""
    phone = {"width": 390, "height": 664}
    with opened(handwriting, "write", viewport=phone) as visit:
        paper, form = (visit[f"#write-{part}"].bounding_box()["y"] for part in ("paper", "form"))
        assert paper < form  # ink is what is looked for first
        visit.wait("#write-link[aria-disabled=false]")
        assert visit.page.evaluate("scrollY") == 0
        _answer(visit)
        visit["#write-text"].fill("ho")
        visit["#write-seed"].scroll_into_view_if_needed()
        assert visit["#write-paper"].bounding_box()["y"] < -200
        visit.press("#write-start")
        visit.wait_done("write")
        assert 0 < visit["#write-sheet"].bounding_box()["y"] < 300


@pytest.mark.parametrize("tab", ["write", "text"])
def test_zero_is_a_seed(writing: Visit, tab: str) -> None:
    writing.page.unroute_all()
    writing[f"#{tab}-tab"].click()
    if tab == "write":
        writing.write("a", seed=0)
    else:
        writing["#text-length"].fill("5")
        writing["#text-seed"].fill("0")
        writing.press("#text-start")
        writing.wait_done("text")
    assert writing.shown_seed(tab) == 0


def test_ink_of_the_opening_that_does_not_come_is_nobody_s_error(
    handwriting: str, opened: Open
) -> None:
    with opened(handwriting, "lab") as visit:
        visit.page.route("**/v1/handwriting", lambda route: route.fulfill(status=503, json={}))
        with visit.page.expect_response("**/v1/handwriting"):
            visit.go("write")
        visit.wait_done("write")
        assert visit["#write-opening"].is_visible()
        assert visit["#write-empty"].is_hidden()
        visit.expect_error("503")


def test_who_scrolls_away_is_not_fetched_back_by_each_point_of_the_pen(
    handwriting: str, opened: Open
) -> None:
    with opened(handwriting, "lab", viewport={"width": 390, "height": 664}) as visit:
        _answer(visit, points=6000)
        visit["#write-tab"].click()
        visit.begin_writing("ho", speed="0.5", seed=1)
        visit.wait("#write-sheet path", "attached")
        away = "() => (scrollTo(0, document.body.scrollHeight), scrollY)"
        place = visit.page.evaluate(away)
        assert visit["#write-sheet"].bounding_box()["y"] < -200
        visit.page.wait_for_timeout(500)
        assert visit.page.evaluate("scrollY") == place
