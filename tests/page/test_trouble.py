"""What a person sees when an answer fails or is late, and that nothing of theirs is lost."""

import json
from typing import Any

from tests.page.answers import HEAD, ink, stream
from tests.page.conftest import DRAWN, Open
from tests.page.visit import Strokes, Visit

_FAILED = "Failed to load resource"


def _forgive(visit: Visit) -> None:
    """Take what the browser says of requests that were made to fail off the list."""
    visit.errors[:] = [error for error in visit.errors if _FAILED not in error]


def test_words_stay_where_ink_cannot_be_read(
    handwriting: str, opened: Open, strokes: Strokes
) -> None:
    with opened(handwriting, "draw") as visit:
        visit.page.route("**/v1/read", lambda route: route.fulfill(json={"text": "keel"}))
        visit.scribble(strokes[:2])
        visit.until("() => document.querySelector('#draw-text').value === 'keel'")
        visit.page.route("**/v1/read", lambda route: route.fulfill(status=503, json={}))
        visit.scribble([[(300, 60), (330, 120)]])
        visit.wait("#draw-wrote")
        assert "could not be read" in visit.text("#draw-wrote")
        assert visit["#draw-text"].input_value() == "keel"
        _forgive(visit)


def test_a_reading_that_is_late_can_be_stopped_and_typed_instead(
    handwriting: str, opened: Open, strokes: Strokes
) -> None:
    held: list[Any] = []
    with opened(handwriting, "draw") as visit:
        visit.page.route("**/v1/read", lambda route: held.append(route))
        visit["#draw-next"].fill("we sail")
        visit.scribble(strokes)
        visit.press("#draw-start")
        visit.press("#draw-stop")
        visit["#draw-text"].fill(DRAWN)
        visit.press("#draw-start")
        visit.wait_done("draw")
        assert visit.ink("#draw-sheet")
        for route in held:
            route.fulfill(json={"text": "late"})
        assert visit["#draw-text"].input_value() == DRAWN


def test_paper_that_is_full_says_so(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "draw") as visit:
        visit["#draw-live"].uncheck()
        visit["#draw-text"].fill("dots")
        dots = [(60 + 4 * (n % 50), 40 + 20 * (n // 50)) for n in range(200)]
        visit.scribble([[(x, y), (x + 1, y + 4)] for x, y in dots])
        assert len(visit.ink("#draw-pad")) == 200
        assert visit["#draw-error"].is_hidden()
        visit.scribble([[(60, 120), (80, 140)]])
        visit.wait("#draw-error")
        assert "The paper is full" in visit.text("#draw-error")
        visit.press("#draw-undo")
        assert visit["#draw-error"].is_hidden()


def test_again_keeps_the_seed_of_a_form_that_is_wrong(handwriting: str, opened: Open) -> None:
    with opened(handwriting) as visit:
        visit.write("ho")
        visit["#write-seed"].fill("33")
        visit["#write-text"].fill("kb \N{GRINNING FACE}")
        visit.press("#write-again")
        assert visit["#write-seed"].input_value() == "33"
        visit["#write-text"].fill("kb")
        visit.press("#write-again")
        visit.wait_done("write")
        assert visit["#write-seed"].input_value() == ""


def test_many_characters_that_cannot_be_written_are_counted(handwriting: str, opened: Open) -> None:
    with opened(handwriting) as visit:
        visit["#write-text"].fill("".join(chr(0x4E00 + n) for n in range(1900)))
        told = visit.text("#write-wrong")
        assert told.endswith("and 1,888 more")
        assert sum("\u4e00" <= letter <= "\u9fff" for letter in told) == 12


def test_a_service_that_answers_no_more_is_not_called_ready(handwriting: str, opened: Open) -> None:
    with opened(handwriting) as visit:
        visit.write("ho")
        visit.page.route("**/v1/**", lambda route: route.abort())
        visit.press("#write-start")
        visit.wait("#write-error")
        assert visit.text("#verdict") == "The service does not answer."
        visit.page.unroute("**/v1/**")
        visit.until("() => document.querySelector('#verdict').textContent.startsWith('Ready')")
        visit.write("hey")
        _forgive(visit)


def test_the_field_that_is_typed_in_stays_in_sight_while_lines_are_written(
    handwriting: str, opened: Open
) -> None:
    with opened(handwriting, viewport={"width": 390, "height": 664}) as visit:
        visit.begin_writing("one\ntwo\nthree\nfour\nfive\nsix", speed="5", seed=1)
        visit.wait("#write-sheet path", "attached")
        visit["#write-seed"].focus()
        visit["#write-seed"].scroll_into_view_if_needed()
        before_px = visit["#write-seed"].bounding_box()["y"]
        visit.wait_done("write")
        after_px = visit["#write-seed"].bounding_box()["y"]
        assert abs(after_px - before_px) < 1  # a page stands at parts of a px


def test_ink_that_came_before_an_error_is_drawn_at_once(handwriting: str, opened: Open) -> None:
    error = {"error": {"message": "This is a <i>test</i>."}}
    answer = stream(HEAD, ink(6000), error)  # by a slow pen, minutes
    with opened(handwriting, "lab") as visit:
        visit.page.route("**/v1/handwriting", lambda route: route.fulfill(**answer))
        visit["#write-tab"].click()
        visit.begin_writing("ho", speed="0.5", seed=3)
        visit.wait("#write-error")
        assert visit.text("#write-error") == "This is a <i>test</i>."
        (stroke,) = visit.ink("#write-sheet")
        assert stroke.count("C") == 5999


def test_what_was_said_of_a_sheet_stays_where_no_other_comes(
    handwriting: str, opened: Open
) -> None:
    with opened(handwriting, "lab") as visit:
        visit["#write-tab"].click()
        visit.write("ho")
        said = visit.text("#write-progress")
        visit.page.route("**/v1/handwriting", lambda route: route.fulfill(status=503, json={}))
        visit.press("#write-start")
        visit.wait("#write-error")
        assert visit.text("#write-progress") == said
        _forgive(visit)


def test_a_page_that_comes_before_its_service_says_so_and_waits(site: str, opened: Open) -> None:
    with opened(site, "text") as visit:
        visit.page.route("**/v1/models", lambda route: route.abort())
        visit.page.reload()
        visit.until("() => document.querySelector('#verdict').textContent.includes('not answer')")
        visit.page.unroute("**/v1/models")
        visit.until("() => document.querySelector('#verdict').textContent.startsWith('Ready')")
        _forgive(visit)


def test_who_stops_before_the_service_has_answered_is_told_of_no_outage(
    handwriting: str, opened: Open
) -> None:
    with opened(handwriting, "write") as visit:
        visit.wait("#write-link[aria-disabled=false]")  # the opening is written
        visit.page.route("**/v1/handwriting", lambda route: None)  # which is never answered
        visit.press("#write-start")
        visit.press("#write-stop")
        visit.wait_done("write")
        assert visit.text("#verdict").startswith("Ready: ")


_EVENTS = """async (pieces) => {
  const { events } = await import("/static/service.js");
  const body = new ReadableStream({
    start(stream) {
      for (const piece of pieces) stream.enqueue(new Uint8Array(piece));
      stream.close();
    },
  });
  const heard = [];
  for await (const event of events(new Response(body))) heard.push(event);
  return heard;
}"""


def test_what_is_not_of_the_service_is_told_in_plain_words(site: str, opened: Open) -> None:
    said = "() => document.querySelector('#verdict').textContent.includes('no answer of Evenkeel')"
    with opened(site, "text") as visit:
        visit.page.route("**/v1/completions", lambda r: r.fulfill(body="data: <p>no</p>\n\n"))
        visit.press("#text-start")
        visit.wait("#text-error")
        assert visit.text("#text-error") == "What came is no answer of Evenkeel."
        visit.page.route("**/v1/models", lambda route: route.fulfill(body="<p>Log in first</p>"))
        visit.page.reload()
        visit.until(said)


def test_events_are_whole_however_their_bytes_arrive(site: str, opened: Open) -> None:
    """And a comment of whoever stands between is none."""
    told = [{"text": "caf\u00e9"}, {"text": "\n\n"}]
    events = [f"data: {json.dumps(event, ensure_ascii=False)}" for event in told]
    sent = "\n\n".join([": wait", *events, "data: [DONE]", ""]).encode()
    with opened(site, "lab") as visit:
        for size in (1, 7, len(sent)):
            pieces = [list(sent[i : i + size]) for i in range(0, len(sent), size)]
            assert visit.page.evaluate(_EVENTS, pieces) == told
