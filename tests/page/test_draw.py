"""The Draw tab: a hand drawn with the mouse is gone on with, kept, and used in Write."""

import json
from typing import Any

import pytest

from tests.page.answers import HEAD, USAGE, ink, stream
from tests.page.conftest import DRAWN, Open
from tests.page.visit import Strokes, Visit

_STROKE = [(60.0, 60.0), (80.0, 120.0)]
_MIXTURE = [{"weight": 1, "mean": [90, 90], "sigma": [3, 3], "rho": 0}]


def test_a_drawn_hand_is_gone_on_with(handwriting: str, opened: Open, strokes: Strokes) -> None:
    with opened(handwriting, "draw") as visit:
        visit.go_on_from(strokes, DRAWN, "we sail")
        assert len(visit.ink("#draw-pad")) == len(strokes)
        assert visit.ink("#draw-sheet")
        assert visit["#draw-sheet"].get_attribute("aria-label") == "Handwriting: we sail"
        assert visit.text("#draw-progress").startswith("7 characters in your hand")


def test_the_hand_is_kept_for_write(handwriting: str, opened: Open, strokes: Strokes) -> None:
    with opened(handwriting, "draw") as visit:
        visit.go_on_from(strokes, DRAWN, "we sail")
        visit.press("#draw-use")
        visit.wait("#write-panel")
        chosen = visit["#write-hands label:has(:checked)"]
        assert chosen.text_content() == "My hand"
        with visit.page.expect_request("**/v1/handwriting") as asked:
            visit.write("ho")
        token = chosen.locator("input").get_attribute("value")
        assert asked.value.post_data_json["style"] == token
        assert visit.ink("#write-sheet")


def test_the_model_says_where_it_expects_the_pen(
    handwriting: str, opened: Open, strokes: Strokes
) -> None:
    with opened(handwriting, "draw") as visit:
        visit["#draw-text"].fill(DRAWN)
        visit.scribble(strokes[:2])
        visit.wait("#draw-pad .shade ellipse", "attached")
        assert "The pen lifts there with" in visit.text("#draw-expected")
        visit["#draw-live"].uncheck()
        visit.wait("#draw-pad .shade ellipse", "detached")


def test_strokes_are_taken_back(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "draw") as visit:
        visit["#draw-live"].uncheck()
        visit.scribble([[(60, 60), (80, 120)], [(90, 60), (90, 130)], [(120, 90), (120, 90)]])
        drawn = visit.ink("#draw-pad")
        assert len(drawn) == 3
        visit.press("#draw-undo")
        assert visit.ink("#draw-pad") == drawn[:2]
        visit.press("#draw-clear")
        assert visit.ink("#draw-pad") == []
        assert visit["#draw-undo"].get_attribute("aria-disabled") == "true"


def test_what_is_cleared_while_it_is_drawn_goes_on_no_more(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "draw") as visit:
        visit["#draw-live"].uncheck()
        visit.scribble([[(60, 60), (80, 120)]])
        box, mouse = visit["#draw-pad"].bounding_box(), visit.page.mouse
        for button, left in (("undo", 1), ("clear", 0)):
            mouse.move(box["x"] + 100, box["y"] + 60)
            mouse.down()
            mouse.move(box["x"] + 110, box["y"] + 90)
            visit[f"#draw-{button}"].focus()
            visit.page.keyboard.press("Enter")
            mouse.move(box["x"] + 120, box["y"] + 60)
            mouse.up()
            assert len(visit.ink("#draw-pad")) == left


def test_a_sheet_of_other_ink_or_words_is_marked(
    handwriting: str, opened: Open, strokes: Strokes
) -> None:
    with opened(handwriting, "draw") as visit:
        visit.go_on_from(strokes, DRAWN, "we sail")
        assert visit["#draw-stale"].is_hidden()
        visit["#draw-text"].fill(f"{DRAWN}s")
        assert visit["#draw-stale"].is_visible()
        visit["#draw-text"].fill(DRAWN)
        assert visit["#draw-stale"].is_hidden()
        visit["#draw-bias"].fill("2.9")
        assert visit["#draw-stale"].is_visible()
        visit["#draw-bias"].fill("1")
        assert visit["#draw-stale"].is_hidden()
        visit.press("#draw-undo")
        visit.scribble([[(300, 60), (330, 120)]])  # as many strokes as before
        assert visit["#draw-stale"].is_visible()


def test_an_empty_line_is_not_sent(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "draw") as visit:
        visit["#draw-text"].fill("nothing")
        visit.press("#draw-start")
        visit.wait("#draw-error")
        assert "The line is empty" in visit.text("#draw-error")
        visit.scribble([[(300, 60), (303, 62)]])
        visit.press("#draw-start")
        visit.until("() => document.querySelector('#draw-error').textContent.includes('A dot')")


def test_a_keyboard_user_is_told(site: str, opened: Open) -> None:
    with opened(site, "draw") as visit:
        assert "needs a pointer" in visit.text("#draw-how")


def test_without_the_socket_drawing_goes_on(handwriting: str, opened: Open) -> None:
    with opened(handwriting) as visit:
        visit.page.route_web_socket("**/v1/online", lambda socket: socket.close(code=1008))
        visit.go("draw")
        visit.scribble([[(60, 60), (80, 120)], [(90, 60), (90, 130)]])
        assert len(visit.ink("#draw-pad")) == 2
        assert visit["#draw-pad .shade ellipse"].count() == 0


def test_what_is_drawn_is_read_and_gone_on_with(
    handwriting: str, opened: Open, strokes: Strokes
) -> None:
    with opened(handwriting, "draw") as visit:
        visit.scribble(strokes)
        visit["#draw-next"].fill("we sail")
        visit.until("() => document.querySelector('#draw-text').value.length > 5")
        read = visit["#draw-text"].input_value()
        assert len(set(read) & set(DRAWN)) >= 5, read
        with visit.page.expect_request("**/v1/handwriting") as asked:
            visit.press("#draw-start")
        body = asked.value.post_data_json
        assert body["style"]["text"] == visit["#draw-text"].input_value()
        assert 50 < body["line_height"] < 100  # about as large as it was drawn
        assert (body["best_of"], body["best_by"]) == (4, "word")
        visit.wait_done("draw")
        assert visit.ink("#draw-sheet")


def test_what_is_typed_is_not_read_over(handwriting: str, opened: Open, strokes: Strokes) -> None:
    with opened(handwriting, "draw") as visit:
        visit["#draw-text"].fill("my own words")
        visit.scribble(strokes)
        visit.page.wait_for_timeout(1000)
        assert visit["#draw-text"].input_value() == "my own words"


def test_who_goes_on_drawing_is_gone_on_with_all_the_same(
    handwriting: str, opened: Open, strokes: Strokes
) -> None:
    # A mouse that is moved from here takes longer than a pen between two strokes.
    slow = "const wait = setTimeout; window.setTimeout = (task, ms) => wait(task, 5 * ms)"
    with opened(handwriting) as visit:
        visit.page.add_init_script(slow)
        visit.go("draw")
        visit["#draw-live"].uncheck()
        visit["#draw-next"].fill("we sail")
        visit.scribble(strokes)
        with visit.page.expect_request("**/v1/handwriting") as asked:
            visit.page.keyboard.press("Control+Enter")
            visit.scribble([[(400, 120)]])  # before what was drawn has been read
        assert len(asked.value.post_data_json["style"]["strokes"]) == len(strokes) + 1
        visit.wait_done("draw")


def test_paper_that_is_empty_again_invites_again(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "draw") as visit:
        visit.scribble([[(60, 60), (80, 120)]])
        assert visit["#draw-pad .invitation"].count() == 0
        visit.press("#draw-undo")
        assert visit["#draw-pad .invitation"].is_visible()


def _followed(visit: Visit) -> list[dict[str, Any]]:
    """What the page tells the model of the pen, whose next point is then expected."""
    told: list[dict[str, Any]] = []

    def hear(socket: Any) -> None:
        def answer(said: str) -> None:
            told.append(json.loads(said))
            socket.send(json.dumps({"mixture": _MIXTURE, "pen_up": 0.25}))

        socket.on_message(answer)

    visit.page.route_web_socket("**/v1/online", hear)
    visit.page.route("**/v1/read", lambda route: None)  # which is never answered
    visit.go("draw")
    return told


def test_what_was_drawn_unfollowed_is_told_before_what_is_followed(
    handwriting: str, opened: Open
) -> None:
    with opened(handwriting) as visit:
        told = _followed(visit)
        visit["#draw-live"].uncheck()
        visit.scribble([_STROKE])
        visit["#draw-live"].check()
        visit.scribble([[(200, 60), (220, 120)]])
        visit.until("() => document.querySelector('#draw-expected').textContent.includes('25 %')")
        points = [message["point"] for message in told if "point" in message]
    expected = [[60, 60, 0], [80, 120, 1], [200, 60, 0], [220, 120, 1]]
    assert [[round(x), round(y), up] for x, y, up in (points[0], points[1])] == expected[:2]
    assert [points[2][2], points[-1][2]] == [0, 1]


def test_after_other_words_what_is_expected_begins_anew(handwriting: str, opened: Open) -> None:
    with opened(handwriting) as visit:
        told = _followed(visit)
        visit.scribble([_STROKE])
        visit["#draw-text"].fill("sea")
        visit["#draw-text"].blur()
        visit.scribble([[(200, 60), (220, 120)]])
        visit.wait("#draw-pad .shade ellipse", "attached")
    assert [message["text"] for message in told if "text" in message] == ["", "sea"]


@pytest.mark.parametrize("how", ["clear", "empty"])
def test_ink_is_read_again_once_what_was_typed_is_gone(
    handwriting: str, opened: Open, how: str
) -> None:
    with opened(handwriting, "draw") as visit:
        visit.page.route("**/v1/read", lambda route: route.fulfill(json={"text": "k" * 80}))
        visit["#draw-live"].uncheck()
        visit["#draw-text"].fill("mine")
        visit.scribble([_STROKE])
        visit.press("#draw-clear") if how == "clear" else visit["#draw-text"].fill("")
        visit.scribble([[(200, 60), (220, 120)]])
        visit.until("() => document.querySelector('#draw-text').value.startsWith('kk')")
        assert visit["#draw-text"].input_value() == "k" * 60  # as much as the field takes


def test_words_below_one_another_do_not_run_together(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "draw") as visit:
        visit.page.route("**/v1/read", lambda route: route.fulfill(json={"text": "even\nkeel"}))
        visit["#draw-live"].uncheck()
        visit.scribble([_STROKE])
        visit.until("() => document.querySelector('#draw-text').value === 'even keel'")


def test_clear_takes_what_was_continued_away_as_well(handwriting: str, opened: Open) -> None:
    with opened(handwriting, "draw") as visit:
        answer = stream(HEAD, ink(3), USAGE)
        visit.page.route("**/v1/handwriting", lambda route: route.fulfill(**answer))
        visit["#draw-live"].uncheck()
        visit["#draw-text"].fill("ho")
        visit.scribble([_STROKE])
        visit.press("#draw-start")
        visit.wait_done("draw")
        assert visit["#draw-sheet"].is_visible()
        visit.press("#draw-clear")
        assert visit["#draw-sheet"].is_hidden()
        assert visit.text("#draw-progress") == ""


def test_a_hand_is_used_with_the_model_it_is_of(handwriting: str, opened: Open) -> None:
    hand = {"token": "mine", "strokes": [_STROKE], "model": "handwriting-int8"}
    with opened(handwriting, "lab") as visit:
        kept = json.dumps(hand)
        visit.page.evaluate("(kept) => localStorage.setItem('evenkeel-hand', kept)", kept)
        visit.go("draw")
        visit.press("#draw-use")
        assert visit["#write-model"].input_value() == "handwriting-int8"
        visit.wait("#write-hands input[value=mine]:checked", "attached")


@pytest.mark.parametrize(("width", "is_open"), [(390, False), (1280, True)])
def test_neatness_is_folded_away_where_it_would_hide_the_paper(
    handwriting: str, opened: Open, width: int, is_open: bool
) -> None:
    with opened(handwriting, "draw", viewport={"width": width, "height": 844}) as visit:
        assert visit["#draw-more"].evaluate("(details) => details.open") == is_open


def test_large_letters_on_a_phone_leave_words_whole(
    handwriting: str, opened: Open, strokes: Strokes
) -> None:
    """A finger writes two letters that fill the paper of a phone."""
    [(left, _), *_] = strokes[0]
    large = [[(20 + 2 * (x - left), 130 + 2 * (y - 130)) for x, y in stroke] for stroke in strokes]
    fit = [stroke for stroke in large if max(x for x, _ in stroke) < 250]
    with opened(handwriting, "draw", viewport={"width": 320, "height": 740}) as visit:
        visit.go_on_from(fit, "even", "and in all weathers")
        assert visit["#draw-sheet"].get_attribute("aria-label").count("-") <= 1
