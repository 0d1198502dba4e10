"""The Draw tab: a hand drawn with the mouse is gone on with, kept, and used in Write."""

from tests.page.conftest import DRAWN, Open
from tests.page.visit import Strokes


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
        assert len(visit.ink("#draw-pad")) == 3
        visit.press("#draw-undo")
        assert len(visit.ink("#draw-pad")) == 2
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
        assert asked.value.post_data_json["style"]["text"] == visit["#draw-text"].input_value()
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
