"""A page put together from its events."""

import json

from clients.page import Page


def _page() -> Page:
    page = Page("json")
    page.add({"lines": ["an", "even", "keel"], "seed": 1})
    return page


def test_a_line_begins_with_a_stroke_of_its_own_though_the_pen_was_down_before() -> None:
    page = _page()
    page.add({"line": 0, "points": [[0, 0, 1], [1, 1, 0]], "finish_reason": "length"})
    page.add({"line": 1, "points": [[2, 2, 0]]})
    page.add({"line": 1, "points": [[3, 3, 1], [4, 4, 1]], "finish_reason": "stop"})
    page.add({"usage": {}})
    lines = json.loads(page.content())["lines"]
    strokes = [[[[0, 0]], [[1, 1]]], [[[2, 2], [3, 3]], [[4, 4]]], []]
    assert [line["strokes"] for line in lines] == strokes


def test_it_is_as_far_as_the_characters_that_have_been_written() -> None:
    page = _page()
    told = []
    for event in ({"line": 0, "character": 1}, {"line": 1, "character": 3}, {"line": 2}, {}):
        page.add(event)
        told.append((page.written, page.characters))
    assert told == [(1, 10), (5, 10), (6, 10), (10, 10)]


def test_all_that_is_told_of_the_end_of_a_line_is_of_the_page() -> None:
    page = _page()
    end = {"finish_reason": "unreadable", "legibility": -3.1, "candidate": 2, "candidates": [2, 0]}
    page.add({"line": 0, "points": [], **end})
    page.add({"usage": {}})
    assert json.loads(page.content())["lines"][0] == {"text": "an", "strokes": [], **end}
    assert (page.unreadable, page.unfinished) == (["an"], [])
