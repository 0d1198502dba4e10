"""The paper of the Draw tab visited without a browser: what a pointer draws, and what comes off."""

from typing import Any

from tests.site.visiting import HEAD, INK, USAGE, Visitor, point, serving, stroke

_ROUTE = "/v1/handwriting"
_ASKED, _START = ["asked", _ROUTE], ["press", "#draw-start"]
_PATHS, _ERROR = ["all", "#draw-pad path", "@d"], ["look", "#draw-error"]
_TYPED = [["fill", "#draw-text", "ho"], ["fill", "#draw-next", "and on"]]
_QUIET = ["check", "#draw-live", False]
_ONE = stroke((10, 100), (40, 60), (70, 100))
_TWO = stroke((80, 70), (110, 130))
_STROKES = [[[10, 100], [40, 60], [70, 100]], [[80, 70], [110, 130]]]
_MAY = [
    ["look", f"#draw-{name}", "ariaDisabled"] for name in ("start", "stop", "undo", "clear", "use")
]


def _draw(visit: Visitor, *steps: list[Any]) -> list[Any]:
    answers = serving(**{_ROUTE: {"events": [HEAD, INK, USAGE]}})
    return visit(_QUIET, *steps, answers=answers, address="#draw")


def test_only_the_pointer_that_began_a_stroke_draws_it(visit: Visitor) -> None:
    strokes = ["all", "#draw-pad path", "@d"]
    found = _draw(
        visit, point("down", 10, 10), point("down", 300, 10, pointerId=2),
        point("move", 300, 90, pointerId=2),
        point("up", 300, 90, pointerId=2), point("move", 30, 40), point("up", 30, 40),
        point("move", 90, 90), strokes,
        point("down", 50, 50, button=2), strokes, *stroke((50, 50), (90, 90)), strokes,
    )  # fmt: skip
    assert [len(paths) for paths in found] == [1, 1, 2]
    assert found[0][0].startswith("M10,10 C")
    assert found[0][0].endswith(" 30,40")


def test_a_stroke_is_taken_back_and_all_are(visit: Visitor) -> None:
    found = _draw(
        visit, *_ONE, *_TWO, *_TYPED, ["press", "#draw-undo"], _PATHS, _START, _ASKED,
        *_TWO,
        ["all", ".invitation", "textContent"], ["press", "#draw-clear"], _PATHS,
        ["look", "#draw-text", "value"],
        ["look", "#draw-sheet", "hidden"], ["look", "#draw-progress"],
        ["look", "#draw-stale", "hidden"], *_MAY,
        ["all", ".invitation", "textContent"], *_ONE, point("down", 80, 80),
        point("move", 99, 99),
        ["pointer", "#draw-pad", "pointercancel", {"pointerId": 1}], _PATHS,
        point("move", 120, 120), _PATHS,
        ["pointer", "#draw-pad", "pointercancel", {"pointerId": 2}], _PATHS,
    )  # fmt: skip
    assert len(found[0]) == 1
    assert [one["body"]["style"]["strokes"] for one in found[1]] == [_STROKES[:1]]
    assert found[2:7] == [[], [], "", True, ""]
    assert found[7:13] == [True, "false", "true", "true", "true", "false"]
    assert found[13] == ["Write here"]
    assert [len(paths) for paths in found[14:]] == [1, 1, 1]


def test_every_place_that_a_pointer_was_at_is_drawn(visit: Visitor) -> None:
    between = [{"clientX": x, "clientY": y} for x, y in ((20, 30), (30, 20), (10.05, 10))]
    moved = point("move", 10, 10, between=between)
    found = _draw(visit, point("down", 10, 10), moved, point("up", 10, 10), *_TYPED, _START, _ASKED)
    strokes = [[[10, 10], [20, 30], [30, 20], [10.05, 10]]]
    assert [one["body"]["style"]["strokes"] for one in found[0]] == [strokes]


def test_a_stroke_that_was_taken_back_goes_on_no_more(visit: Visitor) -> None:
    begun = [point("down", 80, 80), point("move", 99, 99)]
    for back in (["press", "#draw-undo"], point("cancel", 99, 99)):
        found = _draw(visit, *_ONE, *begun, back, point("move", 120, 120), *_TYPED, _START, _ASKED)
        assert [one["body"]["style"]["strokes"] for one in found[0]] == [_STROKES[:1]]


def test_a_paper_takes_so_many_points(visit: Visitor) -> None:
    between = [{"clientX": i, "clientY": i % 50} for i in range(8001)]
    long = [point("down", 0, 0), point("move", 1, 1, between=between), point("up", 1, 1)]
    found = _draw(visit, *long, *_TYPED, _START, _ASKED, *_ONE, _ERROR)
    assert [len(*one["body"]["style"]["strokes"]) for one in found[0]] == [8000]
    assert found[1] == "The paper is full: Undo or Clear makes room."


def test_a_full_paper_says_so(visit: Visitor) -> None:
    dots = [stroke((i, 5)) for i in range(201)]
    found = _draw(
        visit,
        *(step for dot in dots[:199] for step in dot),
        *dots[199],
        _ERROR,
        *dots[200],
        _ERROR,
        ["all", "#draw-pad path", "@d"],
        ["press", "#draw-undo"],
        *dots[200],
        ["all", "#draw-pad path", "@d"],
    )
    assert found[:2] == ["", "The paper is full: Undo or Clear makes room."]
    assert [len(paths) for paths in found[2:]] == [200, 200]
