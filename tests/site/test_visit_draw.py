"""The Draw tab visited without a browser: what a pointer draws, what is read, the hand it makes."""

import json
from typing import Any

import pytest

from tests.site.drawing import (
    ASKED,
    ERROR,
    MAY,
    ONE,
    PATHS,
    QUIET,
    ROUTE,
    START,
    STROKES,
    TWO,
    TYPED,
    draw,
    may,
)
from tests.site.visiting import (
    HEAD,
    PEN,
    READER,
    TEXT,
    WRITTEN,
    Visitor,
    model,
    serving,
    stroke,
)

_DOT = "A dot shows no hand: write a word or two on the line first."


def test_what_a_pointer_draws_is_asked_to_go_on(visit: Visitor) -> None:
    found = draw(
        visit, QUIET, MAY, *ONE, *TWO, *TYPED, ["fill", "#draw-bias", "0.5"],
        ["look", "#draw-neat"], MAY, PATHS, ["asked"],
        START, ASKED, ["look", "#draw-progress"], ["kept", "localStorage"], MAY,
        ["all", "#draw-sheet path", "@d"], ["look", "#draw-sheet", "hidden"],
        ["press", "#draw-use"], ["at"], ["where"], ["all", "#write-hands input:checked", "value"],
    )  # fmt: skip
    before, neat, drawn, paths, _, asked, progress, kept, written, sheet, hidden, *used = found
    assert may(before) == ["start"]
    assert (neat, may(drawn)) == ("0.5", ["start", "undo", "clear"])
    assert [path.count("C") for path in paths] == [2, 1]
    (body,) = [one["body"] for one in asked]
    assert body == {
        "model": "pen", "text": "and on", "bias": 0.5, "style": {"strokes": STROKES, "text": "ho"},
        "format": "json", "stream": True, "width": 640, "line_height": 133, "color": "#1b2a49",
        "best_of": 4, "best_by": "word", "judge": "reads",
    }  # fmt: skip
    assert progress == "2 characters in your hand\nseed 3"
    hand = {"token": "token", "strokes": STROKES, "model": "pen"}
    assert json.loads(kept["evenkeel-hand"]) == hand
    assert may(written) == ["start", "undo", "clear", "use"]
    assert (len(sheet), hidden) == (1, False)
    assert used == ["write-tab", "#write", ["token"]]


def test_what_is_missing_of_ink_in_ones_own_hand_is_told(visit: Visitor) -> None:
    ends = [{"finish_reason": reason} for reason in ("length", "unreadable")]
    answers = serving(**{ROUTE: {"events": [*WRITTEN[:2], *ends, *WRITTEN[3:]]}})
    found = draw(visit, QUIET, *ONE, *TYPED, START, ["look", "#draw-progress"], answers=answers)
    missed = "1 line not finished; 1 line hard to read"
    assert found == [f"2 characters in your hand; {missed}\nseed 3"]


@pytest.mark.parametrize(
    ("ys", "line_px"), [((100, 101), 32), ((100, 112, 124, 100), 60), ((60, 130), 160)]
)
def test_the_ink_is_as_large_as_what_was_drawn(
    visit: Visitor, ys: tuple[float, ...], line_px: int
) -> None:
    drawn = stroke(*((10 + 20 * i, y) for i, y in enumerate(ys)))
    found = draw(visit, QUIET, *drawn, *TYPED, START, ASKED)
    assert [one["body"]["line_height"] for one in found[0]] == [line_px]


@pytest.mark.parametrize(("room", "size"), [(320, (300, 75)), (1000, (900, 160))])
def test_a_page_is_some_line_heights_wide_at_least(
    visit: Visitor, room: int, size: tuple[int, int]
) -> None:
    wide = [["sets", "#draw-desk", "clientWidth", room], ["press", "#draw-clear"], ["resized"]]
    tall = stroke((10, 20), (40, 180))
    found = draw(visit, QUIET, *wide, *tall, *TYPED, START, ASKED)
    assert [(one["body"]["width"], one["body"]["line_height"]) for one in found[0]] == [size]


@pytest.mark.parametrize(
    ("strokes", "told"),
    [
        ([], "The line is empty: write a word or two on it first."),
        (stroke((10, 10)), _DOT),
        (stroke((10, 10), (17.9, 17.9)), _DOT),
        (stroke((10, 10), (18, 10)), ""),
        (stroke((10, 10), (10, 18)), ""),
    ],
)  # fmt: skip
def test_without_a_word_of_ink_nothing_is_asked(
    visit: Visitor, strokes: list[Any], told: str
) -> None:
    hidden = ["look", "#draw-error", "hidden"]
    found = draw(visit, QUIET, *strokes, *TYPED, START, ERROR, ASKED, hidden, *ONE, hidden)
    assert (found[0], len(found[1])) == (told, not told)
    assert found[2:] == [not told, True]  # it was of the ink before


def test_before_a_model_is_known_none_is_asked_nor_waited_for(visit: Visitor) -> None:
    answers = serving(**{"/v1/models": {"lost": True}})
    told = [["look", "#draw-error", "hidden"], ["look", "#draw-progress"], ["sockets"]]
    found = draw(visit, *ONE, *TYPED, START, *told, MAY, answers=answers)
    assert found[:3] == [True, "", []]
    assert may(found[3]) == ["undo", "clear"]


_READ = {"/v1/read": {"body": {"text": " he\nllo "}}}


def test_what_was_drawn_is_read_after_a_pause(visit: Visitor) -> None:
    text, asked = ["look", "#draw-text", "value"], ["asked", "/v1/read"]
    found = draw(
        visit, QUIET, *ONE, ["passes", 349], asked, *TWO, ["passes", 349], asked, ["passes", 1],
        asked, text,
        ["look", "#draw-text", "placeholder"], answers=serving(**_READ),
    )  # fmt: skip
    assert found[:2] == [[], []]
    assert [one["body"] for one in found[2]] == [{"model": "reads", "strokes": STROKES}]
    assert found[3:] == ["he llo", "read as you write, or typed"]


def test_who_types_the_words_knows_better_than_a_reader(visit: Visitor) -> None:
    text, asked = ["look", "#draw-text", "value"], ["asked", "/v1/read"]
    held = {"/v1/read": {"held": True, "body": {"text": "read"}}}
    found = draw(
        visit, QUIET, *ONE, ["passes", 350], ["type", "#draw-text", "mine"], ["says", None], text,
        asked, *TWO,
        ["passes", 350], asked, ["type", "#draw-text", " "], *ONE, ["passes", 350], ["says", None],
        text, asked,
        answers=serving(**held),
    )  # fmt: skip
    assert found[0] == "mine"
    assert [len(asked) for asked in (found[1], found[2], found[4])] == [1, 0, 1]
    assert found[3] == "read"


def test_it_is_read_again_when_all_is_cleared_and_by_a_reader_that_is_chosen(
    visit: Visitor,
) -> None:
    two = serving(PEN, TEXT, READER, model("looks", "reader"), **_READ)
    asked = [["passes", 350], ["asked", "/v1/read"]]
    anew = [["type", "#draw-text", "mine"], ["press", "#draw-clear"], *ONE]
    found = draw(
        visit, QUIET, *ONE, *anew, *asked, ["fill", "#draw-reader", "looks"], *asked, answers=two
    )  # fmt: skip
    assert [[one["body"]["model"] for one in read] for read in found] == [["reads"], ["looks"]]


def test_what_is_asked_for_waits_until_the_ink_is_read(visit: Visitor) -> None:
    held = {"/v1/read": {"held": True, "body": {"text": "read"}}, ROUTE: {"events": WRITTEN}}
    found = draw(
        visit, QUIET, *ONE, START, ASKED, ["look", "#draw-start", "ariaDisabled"],
        ["passes", 350], ["says", None], ASKED,
        answers=serving(**held),
    )  # fmt: skip
    assert found[:2] == [[], "true"]
    assert [one["body"]["style"]["text"] for one in found[2]] == ["read"]
    stopped = [["press", "#draw-stop"], ["look", "#draw-start", "ariaDisabled"], ["says", None]]
    asked = [*ONE, START, ["passes", 350], *stopped, ASKED]
    assert draw(visit, QUIET, *asked, answers=serving(**held)) == ["false", []]


def test_what_was_read_of_the_ink_before_is_passed_over(visit: Visitor) -> None:
    """And of many words as many as the field has room for."""
    late = {"held": True, "body": {"text": "one"}}
    answers = serving(**{"/v1/read": [late, {"body": {"text": 70 * "x"}}]})
    steps = [*ONE, ["passes", 350], *TWO, ["passes", 350], ["says", None]]
    found = draw(visit, QUIET, *steps, ["look", "#draw-text", "value"], answers=answers)
    assert found == [60 * "x"]


def test_what_cannot_be_read_is_said(visit: Visitor) -> None:
    note = ["look", "#draw-wrote"]
    lost = {"/v1/read": {"status": 500}}
    found = draw(
        visit,
        QUIET,
        *ONE,
        ["passes", 350],
        note,
        ["look", "#draw-wrote", "hidden"],
        ["type", "#draw-text", "a"],
        ["look", "#draw-wrote", "hidden"],
        answers=serving(**lost),
    )
    assert found == ["This could not be read: say yourself what you wrote.", False, True]
    found = draw(
        visit,
        QUIET,
        *ONE,
        ["passes", 350],
        ["asked", "/v1/read"],
        ["look", "#draw-text", "placeholder"],
        answers=serving(PEN, TEXT),
    )
    assert found == [[], "the words you wrote"]


def test_the_reader_that_is_chosen_reads_and_chooses(visit: Visitor) -> None:
    two = serving(
        PEN, TEXT, READER, model("looks", "reader"), **_READ, **{ROUTE: {"events": WRITTEN}}
    )
    choose = ["fill", "#draw-reader", "looks"]
    found = draw(
        visit,
        ["look", "#draw-readers", "hidden"],
        QUIET,
        *ONE,
        choose,
        ["passes", 350],
        ["asked", "/v1/read"],
        START,
        ASKED,
        ["history"],
        answers=two,
    )
    assert found[0] is False
    assert [one["body"]["model"] for one in found[1]] == ["looks"]
    assert [one["body"]["judge"] for one in found[2]] == ["looks"]
    assert found[3] == {"draw-reader": "looks"}
    assert draw(visit, ["look", "#draw-readers", "hidden"], ["look", "#draw-models", "hidden"]) == [
        True,
        True,
    ]


def test_ink_of_before_the_last_change_is_marked(visit: Visitor) -> None:
    stale = ["look", "#draw-stale", "hidden"]
    sheet = ["look", "#draw-sheet", "className"]
    for field, before, after in (
        ("text", "ho", "no"),
        ("next", "and on", "or"),
        ("bias", "1", "2"),
    ):
        change, back = (["type", f"#draw-{field}", text] for text in (after, before))
        found = draw(
            visit,
            QUIET,
            *ONE,
            *TYPED,
            stale,
            START,
            stale,
            change,
            stale,
            sheet,
            back,
            stale,
            sheet,
        )
        assert found == [True, True, False, "sheet stale", True, "sheet"]
    found = draw(visit, QUIET, *ONE, *TYPED, START, *TWO, stale, ["press", "#draw-undo"], stale)
    assert found == [False, True]


def test_what_is_typed_before_the_ink_comes_marks_it(visit: Visitor) -> None:
    """And until it has come nothing can be taken off the paper."""
    held = serving(**{ROUTE: {"events": [], "open": True}})
    typed = ["type", "#draw-next", "or"]
    found = draw(
        visit, QUIET, *ONE, *TYPED, START, MAY, ["press", "#draw-undo"], ["press", "#draw-clear"],
        PATHS, typed, ["says", HEAD], ["look", "#draw-stale", "hidden"], answers=held,
    )  # fmt: skip
    writing, paths, fresh = found
    assert (may(writing), len(paths), fresh) == (["stop"], 1, False)


def test_a_hand_that_was_drawn_anew_is_the_one_that_was_chosen(visit: Visitor) -> None:
    hand = {"token": "old", "strokes": STROKES, "model": "pen"}
    checked = ["all", "#write-hands input:checked", "value"]
    chosen = ["press", "#write-hands input[value=old]"]
    anew = [["press", "#draw-tab"], QUIET, *ONE, *TYPED, START, ["press", "#write-tab"]]
    local = {"evenkeel-hand": json.dumps(hand)}
    assert draw(visit, *anew, checked, local=local, address="#write")[0] == [""]
    assert draw(visit, chosen, *anew, checked, local=local, address="#write")[0] == ["token"]
    assert may(*draw(visit, MAY, local=local)) == ["start", "use"]
    local = {"evenkeel-hand": json.dumps(hand | {"model": "gone"})}
    assert may(*draw(visit, MAY, local=local)) == ["start"]


def test_what_the_pen_cannot_write_is_said_at_both_fields(visit: Visitor) -> None:
    found = draw(
        visit, QUIET, *ONE, ["fill", "#draw-text", "\u0434"], ["fill", "#draw-next", "\u0436"],
        ["look", "#draw-wrote"],
        ["look", "#draw-wrong"], START, ASKED, ["fill", "#draw-text", "a"], START, ASKED,
        ["fill", "#draw-next", "b"], START, ASKED,
    )  # fmt: skip
    assert found[:2] == ["The pen cannot write \u0434", "The pen cannot write \u0436"]
    assert [len(asked) for asked in found[2:]] == [0, 0, 1]


# --- The layer below the pen ----------------------------------------------------------------------

_MIXTURE = {
    "mixture": [{"weight": 0.5, "mean": [7, 8], "sigma": [2, 1], "rho": 0}],
    "pen_up": 0.256,
}


def test_points_are_told_as_they_are_drawn_and_where_the_next_is_expected(visit: Visitor) -> None:
    shade, told = ["all", "#draw-pad .shade ellipse", "@opacity"], ["look", "#draw-expected"]
    found = draw(
        visit, ["fill", "#draw-text", "ho"], *ONE, ["sockets"], ["socket"], ["sockets"], shade,
        ["socket", {"error": {"message": "later"}}], shade, ["socket", _MIXTURE], shade, told,
        ["passes", 14999], shade, ["passes", 1], shade, told, ["sockets"], *TWO, ["socket"],
        ["sockets"],
    )  # fmt: skip
    assert found[0] == [
        {"address": "ws://127.0.0.1:8000/v1/online", "protocols": [], "sent": [], "closed": False}
    ]
    opening = {"model": "pen", "text": "ho", "line_height": 110, "origin": [10, 130]}
    points = [[10, 100, 0], [40, 60, 0], [70, 100, 0], [70, 100, 1]]
    assert found[1][0]["sent"] == [opening, *({"point": point} for point in points)]
    assert found[2:5] == [[], [], ["0.65"]]
    assert found[5] == "Shaded: the next point. The pen lifts there with 26 %."
    assert found[6:9] == [["0.65"], [], "Shaded while you write: the darker, the likelier."]
    assert [socket["closed"] for socket in found[9]] == [True]
    # The next stroke begins a session anew, which is told of what is there.
    opened, *told_then = found[10][1]["sent"]
    assert opened == opening | {"line_height": 117, "origin": [10, 130]}
    then = [*points[:2], points[3], [80, 70, 0], [110, 130, 0], [110, 130, 1]]
    assert told_then == [{"point": point} for point in then]


def test_nothing_is_expected_where_nobody_wants_it(visit: Visitor) -> None:
    assert draw(visit, QUIET, *ONE, ["sockets"]) == [[]]
    found = draw(
        visit,
        *ONE,
        ["socket"],
        ["socket", _MIXTURE],
        QUIET,
        ["all", "#draw-pad ellipse"],
        ["sockets"],
    )
    assert (found[0], found[1][0]["closed"]) == ([], True)
    found = draw(visit, *TYPED, *ONE, ["socket"], ["sockets"], START, ["sockets"])
    assert [sockets[0]["closed"] for sockets in found] == [False, True]  # whose ink is written
    shade = ["all", "#draw-pad ellipse"]
    found = draw(visit, *ONE, ["socket"], ["socket", _MIXTURE], ["socket", "close"], shade)
    assert found == [[]]  # where the service has ended it
    used = [["passes", 14000], *TWO, ["passes", 14000]]
    assert draw(visit, *ONE, ["socket"], *used, ["sockets"])[0][0]["closed"] is False


def test_a_session_has_the_key_as_a_protocol(visit: Visitor) -> None:
    found = draw(visit, *ONE, ["sockets"], session={"evenkeel-key": "ek"})
    assert found[0][0]["protocols"] == ["evenkeel", "bearer.ek"]
