"""The best of several draws beside one: what is counted, and that goals can be missed."""

from collections.abc import Iterator

import pytest

from lab.legibility.chosen import Drawn, judge
from lab.legibility.reading import Reader

_TEXTS = {"invented": ["even keel", "a keel"], "plain": ["sails"]}


def _drawn(seconds: float, finish_reason: str = "stop") -> Drawn:
    return Drawn([[[30.0, 20.0], [60.0, 40.0]]], None, finish_reason, seconds)


def _says(*readings: str) -> Reader:
    said: Iterator[str] = iter(readings)
    return lambda png: next(said)


def _pair(count: int, slower: float, reason: str = "stop") -> tuple[list[Drawn], list[Drawn]]:
    return [_drawn(1.0)] * count, [_drawn(slower, reason)] * count


def test_errors_and_times_are_those_of_the_best_over_those_of_one() -> None:
    drawn = {"invented": _pair(2, 1.5, "unreadable"), "plain": _pair(1, 1.0)}
    # One draw of every text, then the best of several.
    reader = _says("eXXX keel", "a kXel", "eXen keel", "a keel", "sails", "sails?")
    with pytest.raises(ZeroDivisionError):  # nothing misread in one draw has no ratio
        judge(_TEXTS, drawn, [(1.0, 1.2)], reader)
    reader = _says("eXXX keel", "a kXel", "eXen keel", "a keel", "sXils", "sails")
    content, goals = judge(_TEXTS, drawn, [(1.0, 1.2), (1.0, 1.4), (1.0, 9.0)], reader)
    assert (content["invented"]["one"]["edits"], content["invented"]["best"]["edits"]) == (4, 1)
    assert content["invented"]["ratio"] == 0.25
    assert (content["invented"]["unreadable"], content["plain"]["unreadable"]) == (2, 0)
    assert [(goal.value, goal.met) for goal in goals] == [(0.25, True), (1.5, True), (1.4, True)]


def test_each_goal_can_be_missed() -> None:
    drawn = {"invented": _pair(2, 2.5), "plain": _pair(1, 1.0)}
    reader = _says("eXen keel", "a kXel", "even keXl", "a keXl", "sXils", "sails")
    _, goals = judge(_TEXTS, drawn, [(1.0, 1.6)], reader)
    assert [goal.met for goal in goals] == [False, False, False]
