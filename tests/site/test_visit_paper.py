"""The paper of the Draw tab visited without a browser: what a pointer draws, and what comes off."""

from tests.site.drawing import (
    ASKED,
    ERROR,
    MAY,
    ONE,
    PATHS,
    QUIET,
    START,
    STROKES,
    TWO,
    TYPED,
    draw,
    may,
)
from tests.site.visiting import Visitor, point, stroke


def test_only_the_pointer_that_began_a_stroke_draws_it(visit: Visitor) -> None:
    found = draw(
        visit, QUIET, point("down", 10, 10), point("down", 300, 10, pointerId=2),
        point("move", 300, 90, pointerId=2),
        point("up", 300, 90, pointerId=2), point("move", 30, 40), point("up", 30, 40),
        point("move", 90, 90), PATHS,
        point("down", 50, 50, button=2), PATHS, *stroke((50, 50), (90, 90)), PATHS,
    )  # fmt: skip
    assert [len(paths) for paths in found] == [1, 1, 2]
    assert found[0][0].startswith("M10,10 C")
    assert found[0][0].endswith(" 30,40")


def test_a_stroke_is_taken_back_and_all_are(visit: Visitor) -> None:
    found = draw(
        visit, QUIET, *ONE, *TWO, *TYPED, ["press", "#draw-undo"], PATHS, START, ASKED,
        *TWO,
        ["all", ".invitation", "textContent"], ["press", "#draw-clear"], PATHS,
        ["look", "#draw-text", "value"],
        ["look", "#draw-sheet", "hidden"], ["look", "#draw-progress"],
        ["look", "#draw-stale", "hidden"], MAY,
        ["all", ".invitation", "textContent"], *ONE, point("down", 80, 80),
        point("move", 99, 99),
        ["pointer", "#draw-pad", "pointercancel", {"pointerId": 1}], PATHS,
        point("move", 120, 120), PATHS,
        ["pointer", "#draw-pad", "pointercancel", {"pointerId": 2}], PATHS,
    )  # fmt: skip
    undone, asked, none, *cleared, stale, buttons, invitation = found[:10]
    assert len(undone) == 1
    assert [one["body"]["style"]["strokes"] for one in asked] == [STROKES[:1]]
    assert [none, *cleared, stale] == [[], [], "", True, "", True]
    assert may(buttons) == ["start", "use"]
    assert invitation == ["Write here"]
    assert [len(paths) for paths in found[10:]] == [1, 1, 1]


def test_every_place_that_a_pointer_was_at_is_drawn(visit: Visitor) -> None:
    between = [{"clientX": x, "clientY": y} for x, y in ((20, 30), (30, 20), (10.05, 10))]
    moved = point("move", 10, 10, between=between)
    found = draw(
        visit, QUIET, point("down", 10, 10), moved, point("up", 10, 10), *TYPED, START, ASKED
    )
    strokes = [[[10, 10], [20, 30], [30, 20], [10.05, 10]]]
    assert [one["body"]["style"]["strokes"] for one in found[0]] == [strokes]


def test_a_stroke_that_was_taken_back_goes_on_no_more(visit: Visitor) -> None:
    begun = [point("down", 80, 80), point("move", 99, 99)]
    for back in (["press", "#draw-undo"], point("cancel", 99, 99)):
        found = draw(
            visit, QUIET, *ONE, *begun, back, point("move", 120, 120), *TYPED, START, ASKED
        )
        assert [one["body"]["style"]["strokes"] for one in found[0]] == [STROKES[:1]]


def test_a_paper_takes_so_many_points(visit: Visitor) -> None:
    between = [{"clientX": i, "clientY": i % 50} for i in range(8001)]
    long = [point("down", 0, 0), point("move", 1, 1, between=between), point("up", 1, 1)]
    found = draw(visit, QUIET, *long, *TYPED, START, ASKED, *ONE, ERROR)
    assert [len(*one["body"]["style"]["strokes"]) for one in found[0]] == [8000]
    assert found[1] == "The paper is full: Undo or Clear makes room."


def test_a_full_paper_says_so(visit: Visitor) -> None:
    dots = [stroke((i, 5)) for i in range(201)]
    found = draw(
        visit,
        QUIET,
        *(step for dot in dots[:199] for step in dot),
        *dots[199],
        ERROR,
        *dots[200],
        ERROR,
        PATHS,
        ["press", "#draw-undo"],
        *dots[200],
        PATHS,
    )
    assert found[:2] == ["", "The paper is full: Undo or Clear makes room."]
    assert [len(paths) for paths in found[2:]] == [200, 200]
