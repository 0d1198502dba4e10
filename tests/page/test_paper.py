"""The paper of the Draw tab: what stands on it, the session that follows it, and what is read."""

import json
from typing import Any

import pytest

from tests.page.answers import HEAD, USAGE, ink, stream
from tests.page.conftest import Open
from tests.page.test_draw import _STROKE, _followed
from tests.page.visit import Visit

_OTHER = [(200.0, 60.0), (220.0, 120.0)]
_MINE = "#write-hands label:has-text('My hand')"


@pytest.fixture
def paper(handwriting: str, opened: Open) -> Any:
    """A visit of the Draw tab in which no model follows the pen or reads."""
    with opened(handwriting, "lab") as visit:
        answer = stream(HEAD, ink(3), USAGE)
        visit.page.route("**/v1/handwriting", lambda route: route.fulfill(**answer))
        visit.page.route("**/v1/read", lambda route: route.fulfill(json={"text": "ho"}))
        visit["#draw-tab"].click()
        visit["#draw-live"].uncheck()
        yield visit


def _go_on(visit: Visit) -> None:
    visit["#draw-text"].fill("ho")
    visit.scribble([_STROKE])
    visit.press("#draw-start")
    visit.wait_done("draw")


def test_a_sheet_of_other_words_or_of_another_model_is_marked(paper: Visit) -> None:
    _go_on(paper)
    said = paper["#draw-next"].input_value()
    for text, marked in (("other", True), (said, False)):
        paper["#draw-next"].fill(text)
        assert paper["#draw-stale"].is_visible() == marked
    paper["#draw-model"].select_option("handwriting-int8")
    assert paper["#draw-stale"].is_visible()
    paper.press("#draw-clear")
    assert paper["#draw-stale"].is_hidden()  # there is no sheet any more


def test_ink_stays_on_the_paper_of_a_window_that_becomes_narrow(paper: Visit) -> None:
    """And who draws on then draws where the pointer is."""
    paper.scribble([_STROKE])
    paper.page.set_viewport_size({"width": 390, "height": 844})
    paper.page.evaluate(
        "() => new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen)))"
    )
    assert len(paper.ink("#draw-pad")) == 1
    pad = paper["#draw-pad"]
    shown, ruled = pad.bounding_box()["width"], pad.evaluate("(pad) => pad.viewBox.baseVal.width")
    assert shown < 0.8 * ruled
    paper.scribble([[(0.9 * shown, 40)]])
    drawn = paper.ink("#draw-pad")[-1]
    assert float(drawn[1:].partition(",")[0]) == pytest.approx(0.9 * ruled, abs=3)


def test_paper_that_is_empty_again_has_no_words(paper: Visit) -> None:
    paper.scribble([_STROKE])
    paper.until("() => document.querySelector('#draw-text').value === 'ho'")
    paper.press("#draw-undo")
    paper.until("() => document.querySelector('#draw-text').value === ''")
    assert paper["#draw-wrote"].is_hidden()


def test_a_word_that_could_not_be_read_is_forgiven_once_one_is(paper: Visit) -> None:
    refused: dict[str, Any] = {"status": 503, "json": {}}
    paper.page.route("**/v1/read", lambda route: route.fulfill(**refused), times=1)
    paper.scribble([_STROKE])
    paper.wait("#draw-wrote")
    paper.scribble([_OTHER])
    paper.until("() => document.querySelector('#draw-text').value === 'ho'")
    assert paper["#draw-wrote"].is_hidden()
    paper.expect_error("503")


def test_what_was_read_of_the_ink_before_is_not_put_over_what_is_read_of_it_now(
    paper: Visit,
) -> None:
    held: list[Any] = []
    paper.page.route("**/v1/read", lambda route: held.append(route))
    for count, stroke in enumerate((_STROKE, _OTHER), 1):
        paper.scribble([stroke])
        while len(held) < count:
            paper.page.wait_for_timeout(20)
    held[1].fulfill(json={"text": "now"})
    paper.until("() => document.querySelector('#draw-text').value === 'now'")
    with paper.page.expect_response("**/v1/read"):
        held[0].fulfill(json={"text": "before"})
    paper.page.wait_for_timeout(100)
    assert paper["#draw-text"].input_value() == "now"


def test_the_hand_that_is_kept_is_what_was_sent_and_not_what_is_drawn_since(paper: Visit) -> None:
    _go_on(paper)
    paper.scribble([_OTHER])
    relisted = "async () => (await import('/static/hands.js')).listHands('handwriting')"
    paper.page.evaluate(relisted)
    assert paper[f"{_MINE} path"].count() == 1


def test_another_model_that_is_chosen_is_the_one_that_goes_on(paper: Visit) -> None:
    _go_on(paper)  # of which there is a hand of the first model now
    paper["#draw-model"].select_option("handwriting-int8")
    paper["#draw-bias"].fill("2.5")
    with paper.page.expect_request("**/v1/handwriting") as asked:
        paper.press("#draw-start")
    body = asked.value.post_data_json
    assert (body["model"], body["bias"]) == ("handwriting-int8", 2.5)
    paper.wait_done("draw")


def test_who_takes_the_hand_to_write_has_the_keyboard_there(paper: Visit) -> None:
    _go_on(paper)
    paper["#draw-use"].focus()
    paper.page.keyboard.press("Enter")
    assert paper.page.evaluate("document.activeElement.id") == "write-tab"


@pytest.fixture
def following(handwriting: str, opened: Open) -> Any:
    """A visit in which a model follows the stroke that is on the paper, and what it is told."""
    with opened(handwriting) as visit:
        told = _followed(visit)
        visit.scribble([_STROKE])
        yield visit, told


def test_a_session_begins_where_the_ink_does_and_is_of_the_model_that_is_chosen(
    following: tuple[Visit, list[Any]],
) -> None:
    visit, told = following
    visit["#draw-model"].select_option("handwriting-int8")
    visit.scribble([_OTHER])
    visit.until("() => document.querySelector('#draw-expected').textContent.includes('25 %')")
    opening = [message for message in told if "origin" in message]
    assert [message["model"] for message in opening] == ["handwriting", "handwriting-int8"]
    for message in opening:
        assert message["origin"] == pytest.approx([60, 130], abs=1)
    # Until there is ink to measure a line is as high as most people write.
    assert [message["line_height"] == 110 for message in opening] == [True, False]


def test_after_a_stroke_is_taken_back_what_is_expected_begins_anew(
    following: tuple[Visit, list[Any]],
) -> None:
    visit, told = following
    visit.press("#draw-undo")
    visit.scribble([_OTHER])
    visit.wait("#draw-pad .shade ellipse", "attached")
    points = [message.get("point") for message in told]
    *_, begun = (i for i, point in enumerate(points) if point is None)
    assert begun > 0
    assert min(x for x, _, _ in points[begun + 1 :]) > 150


@pytest.mark.parametrize("ended_by", ["service", "page"])
def test_of_a_session_that_has_ended_no_shading_is_left(
    handwriting: str, opened: Open, ended_by: str
) -> None:
    """The page ends it after a quarter of a minute without a stroke: it holds a place."""
    sockets: list[Any] = []
    mixture = [{"weight": 1, "mean": [90, 90], "sigma": [3, 3], "rho": 0}]
    answer = json.dumps({"mixture": mixture, "pen_up": 0.25})

    def hear(socket: Any) -> None:
        sockets.append(socket)
        socket.on_message(lambda said: socket.send(answer))

    with opened(handwriting) as visit:
        if ended_by == "page":
            soon = "window.setTimeout = (task, ms) => wait(task, ms > 9000 ? ms / 8 : ms)"
            visit.page.add_init_script(f"const wait = setTimeout; {soon}")
        visit.page.route_web_socket("**/v1/online", hear)
        visit.page.route("**/v1/read", lambda route: None)  # which is never answered
        visit.go("draw")
        visit.scribble([_STROKE])
        visit.wait("#draw-pad .shade ellipse", "attached")
        if ended_by == "service":
            sockets[0].close()
        visit.wait("#draw-pad .shade ellipse", "detached")
        assert visit.text("#draw-expected").startswith("Shaded while you write")
