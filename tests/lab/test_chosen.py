"""The best of several draws beside one: what is counted, and that goals can be missed."""

from collections.abc import Iterator

import pytest

from lab.legibility.chosen import ONE, WAYS, Drawn, Streamed, judge, misread
from lab.legibility.reading import Errors, Reader

_TEXTS = {"invented": ["even keel", "a keel"], "plain": ["sails"]}


def _drawn(seconds: float, finish_reason: str = "stop") -> Drawn:
    return Drawn([[[30.0, 20.0], [60.0, 40.0]]], None, finish_reason, seconds)


def _says(*readings: str) -> Reader:
    said: Iterator[str] = iter(readings)
    return lambda png: next(said)


def _ways(count: int, slower: float, reason: str = "stop") -> dict[str, list[Drawn]]:
    return {way: [_drawn(1.0 if way == ONE else slower, reason)] * count for way in WAYS}


def _streamed(*first_lines_s: float) -> list[dict[str, Streamed]]:
    return [{way: Streamed(0.5, 1.0 if way == ONE else s) for way in WAYS} for s in first_lines_s]


def test_errors_and_times_are_those_of_the_best_over_those_of_one() -> None:
    drawn = {"invented": _ways(2, 1.5, "unreadable"), "plain": _ways(1, 1.0)}
    # One draw of every text, then the best of several, then the best by words.
    nothing = ("eXXX keel", "a kXel", *("even keel", "a keel") * 2, *("sails",) * 3)
    with pytest.raises(ZeroDivisionError):  # nothing misread in one draw has no ratio
        judge(_TEXTS, drawn, _streamed(1.2), _says(*nothing))
    reader = _says("eXXX keel", "a kXel", "eXen keel", "a keel", "eXXn keel", "a keel",
                   "sXils", "sails", "sails")  # fmt: skip
    content, goals = judge(_TEXTS, drawn, _streamed(1.2, 1.4, 9.0), reader)
    assert [content["invented"][way]["edits"] for way in WAYS] == [4, 1, 2]
    assert [content["invented"][way]["ratio"] for way in list(WAYS)[1:]] == [0.25, 0.5]
    assert [content[name]["by word"]["unreadable"] for name in drawn] == [2, 0]
    assert content["streamed"]["by word"] == {"first_ink_s": 0.5, "first_line_s": 1.4}
    assert [(goal.value, goal.met) for goal in goals] == [
        (0.25, True), (1.5, True), (1.4, True), (0.5, True), (1.5, True), (1.4, True),
    ]  # fmt: skip


def test_a_line_without_ink_is_read_as_nothing() -> None:
    blank = Drawn([], None, "stop", 1.0)
    assert misread("keel", blank, _says("")) == Errors(4, 4)


def test_each_goal_can_be_missed() -> None:
    drawn = {"invented": _ways(2, 2.5), "plain": _ways(1, 1.0)}
    reader = _says(*("eXen keel", "a kXel") * 3, *("sXils",) * 3)
    _, goals = judge(_TEXTS, drawn, _streamed(1.6), reader)
    assert [goal.met for goal in goals] == [False] * 6
