"""Ink of several lines is told apart, and read line by line."""

import asyncio
import json
import logging
from typing import cast

import numpy as np
import pytest

from contract.pieces import PIECE
from contract.reader import Read
from contract.strokes import Points
from service.engine.engine import Engine
from service.errors import Overloaded
from service.http import record
from service.ink.upright import upright
from service.reader.lines import (
    _KEPT,
    _MOST_SAMPLES,
    _arcs,
    _level,
    _Line,
    _sampled,
    _x_height,
    lines_of,
)
from service.reader.online import OnlineReader
from service.reader.routes import _read_in_turn
from tests.service.reader.lines import MODEL, ReaderService, Strokes, line

_HEIGHT = 30.0  # px, of the ink of a line
_SAID = ("Dear Anna,", "this is the second line of it,", "if not the last!", "Yours, Jim")


def _page(
    *said: str, pitch: float = 2 * _HEIGHT, indent: float = 0.0, climb: float = 0.0
) -> list[Strokes]:
    """Lines below one another, in the order they are written; all of it turned."""
    cosine, sine = np.cos(climb), np.sin(climb)
    turn = np.array([[cosine, -sine], [sine, cosine]])
    page = []
    for number, text in enumerate(said):
        strokes = [np.array(stroke) for stroke in line(text, seed=number)]
        every = np.concatenate(strokes)
        px = _HEIGHT / np.ptp(every[:, 1])
        place = np.array([indent * (number % 2), number * pitch])
        page.append([((s - every.min(0)) * px + place) @ turn for s in strokes])
    return [[stroke.tolist() for stroke in strokes] for strokes in page]


def _parts(strokes: Strokes) -> list[int]:
    """How many strokes each line has."""
    return [len(line) for line in lines_of(upright(strokes))]


def _flat(page: list[Strokes]) -> Strokes:
    return [stroke for line in page for stroke in line]


@pytest.mark.parametrize("climb", [-0.2, 0.0, 0.2])
@pytest.mark.parametrize("pitch", [1.3, 2.0, 4.0])
@pytest.mark.parametrize("indent", [0.0, 90.0])
def test_lines_below_one_another_are_told_apart(pitch: float, indent: float, climb: float) -> None:
    page = _page(*_SAID, pitch=pitch * _HEIGHT, indent=indent, climb=climb)
    assert _parts(_flat(page)) == [len(line) for line in page]


@pytest.mark.parametrize("text", [*_SAID, 'Wait; why? "No!" (i.e. 100%)', "it", "T", "=", "j", "!"])
def test_a_line_stays_one(text: str) -> None:
    for seed in range(8):
        ink = line(text, seed)
        for climb in (-0.2, 0.0, 0.2):
            turned = [[[x + climb * y, y - climb * x] for x, y in stroke] for stroke in ink]
            assert _parts(turned) == [len(ink)]


def test_strokes_keep_their_order_and_their_numbers() -> None:
    page = _page(*_SAID)
    told = lines_of(upright(_flat(page)))
    for strokes, line_of_page in zip(told, page, strict=True):
        for mine, theirs in zip(strokes, upright(line_of_page), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_a_dot_that_was_forgotten_goes_to_the_line_above() -> None:
    first, second = _page("one line of ink", "another line")
    above = np.concatenate([np.array(stroke) for stroke in first])
    dot = [[float(above[:, 0].mean()), float(above[:, 1].min())]]
    dot.append([dot[0][0] + 1, dot[0][1] + 1])
    assert _parts([*first, *second, dot]) == [len(first) + 1, len(second)]


def test_a_comma_ends_its_own_line() -> None:
    """It hangs far below the letters, left of the last, as what begins the next line does."""
    first, second = _page("one line of ink", "another line", pitch=1.5 * _HEIGHT)
    right = max(x for stroke in first for x, _ in stroke)
    comma = [[right + 3, 34.0], [right + 2, 40.0], [right - 4, 50.0]]
    assert _parts([*first, comma, *second]) == [len(first) + 1, len(second)]
    in_one = [point for stroke in second for point in stroke]
    assert _parts([*first, comma, in_one]) == [len(first) + 1, 1]


@pytest.mark.parametrize("pitch", [1.9, 3.0])
def test_letters_below_one_another_are_lines(pitch: float) -> None:
    page = _page("a", "b", "c", pitch=pitch * _HEIGHT)
    assert _parts(_flat(page)) == [len(line) for line in page]


def test_letters_far_apart_are_no_bar() -> None:
    page = _page("I am 1", "the 2nd", "or 3")
    spread = [[[x + 12 * stroke[0][0], y] for x, y in stroke] for stroke in _flat(page)]
    assert _parts(spread) == [len(line) for line in page]


@pytest.mark.parametrize("right", [-12, -4])
def test_a_word_that_falls_goes_on_on_its_line(right: float) -> None:
    page = _page("it is quite", "happy", pitch=_HEIGHT)
    right += max(x for stroke in page[0] for x, _ in stroke)
    falls = [[[x + right, y] for x, y in stroke] for stroke in page[1]]
    assert _parts([*page[0], *falls]) == [len(page[0]) + len(falls)]


def test_a_line_that_was_put_back_together_keeps_the_order_of_its_strokes() -> None:
    """Its last stroke, a dot, had come to its first part."""
    page = _page("it is quite", "happy", pitch=_HEIGHT)
    right = max(x for stroke in page[0] for x, _ in stroke) - 12
    falls = [[[x + right, y] for x, y in stroke] for stroke in page[1]]
    dot = [[40.0, -20.0], [41.0, -19.0]]
    ink = upright([*page[0], *falls, dot])
    (told,) = lines_of(ink)
    assert [id(stroke) for stroke in told] == [id(stroke) for stroke in ink]


def test_a_word_that_falls_twice_goes_on_on_its_line() -> None:
    ink, right = list[list[list[float]]](), 0.0
    for number, word in enumerate(_page("it is quite", "happy", "about it", pitch=0.0)):
        ink += [[[x + right, y + number * _HEIGHT] for x, y in stroke] for stroke in word]
        right += max(x for stroke in word for x, _ in stroke) - 8
    assert _parts(ink) == [len(ink)]


def test_a_bar_that_was_drawn_first_is_of_the_line_below_it() -> None:
    first, second = _page(*_SAID[:2])
    bar = [[0.0, -25.0], [200.0, -25.0]]
    assert _parts([bar, *first, *second]) == [len(first) + 1, len(second)]


def test_a_stroke_that_reaches_above_the_line_before_leaves_the_order_of_lines() -> None:
    first, second = _page(*_SAID[:2])
    x, y = np.concatenate(second).max(axis=0)
    tall = [[x + 8, y], [x + 9, -20.0]]
    assert _parts([*first, *second, tall]) == [len(first), len(second) + 1]


def test_how_far_a_line_is_over_ink_is_told_where_most_of_that_ink_is() -> None:
    slope = _Line()
    slope.add([0], np.linspace((0.0, 0.0), (100.0, 10.0), 401))
    ink = np.array([[0.0, 0.0], [80, 0], [81, 0]])
    assert slope.over(ink) == pytest.approx(8, abs=0.6)


def test_arcs_go_on_where_the_pen_goes_level() -> None:
    assert _arcs(np.array([0.0, 1, 1, 2, 2, 1])).tolist() == [2, 1]


def test_one_arc_far_too_tall_makes_no_letter_small() -> None:
    letters = np.array([[i, i % 2] for i in range(60)], float)
    assert _x_height([letters, np.array([[60.0, 0.0], [60.0, 30.0]])]) == 1


def test_points_that_are_apart_are_ink_and_turned_with_it() -> None:
    assert [p.tolist() for p in upright([[[0, 0]], [[5, 2]]])] == [[[0, 0]], [[5, -2]]]
    assert upright([[[5, 2]], [[5, 2]]]) == []


def test_a_heading_may_be_written_last() -> None:
    heading, *page = _page(*_SAID)
    assert _parts([*_flat(page), *heading]) == [len(line) for line in (heading, *page)]


def test_a_line_over_a_heading_that_was_written_last_is_one_of_its_own() -> None:
    heading, *page = _page(*_SAID)
    over = [[[x, y - 200] for x, y in stroke] for stroke in page[1]]
    expected = [len(line) for line in (over, heading, *page)]
    assert _parts([*_flat(page), *heading, *over]) == expected


def test_a_heading_beside_all_that_stands_below_is_a_line() -> None:
    """As a date in the corner, which may be written last."""
    heading, *page = _page(*_SAID[:3])
    beside = [[[x + 600, y] for x, y in stroke] for stroke in heading]
    assert _parts([*_flat(page), *beside]) == [len(line) for line in (heading, *page)]


def test_a_dot_above_all_lines_is_no_heading() -> None:
    first, second = _page(*_SAID[:2])
    x, y = np.concatenate(first).min(axis=0)
    dot = [[x + 60, y - 2 * _HEIGHT], [x + 61, y - 2 * _HEIGHT + 1]]
    parts = [len(first) + 1, len(second)]
    assert _parts([*first, *second, dot]) == parts
    assert _parts([*first, *second[:-3], dot, *second[-3:]]) == parts  # the pen goes on below


def test_an_accent_belongs_to_the_letter_below_it() -> None:
    """Though it may be nearer to the letters of the line above."""
    first, second = _page("one line of ink", "another line", pitch=2.5 * _HEIGHT)
    above, below = (np.median(np.concatenate(line), axis=0) for line in (first, second))
    x, y = below + 0.55 * (above - below)
    accent = [[x, y], [x + 3, y + 2]]
    assert _parts([*first, *second, accent]) == [len(first), len(second) + 1]


def test_where_on_the_page_ink_stands_does_not_matter() -> None:
    """A wave below words is a line or a bar, and nearly the other, wherever all of it stands."""
    (words,) = _page(_SAID[0])
    below = 3 * _HEIGHT
    for wide in range(20, 60, 8):
        wave = [[x, below + 4 * (x // 4 % 2)] for x in range(0, wide, 4)]
        ink = [*words, wave]
        moved = [[[[x + by, y] for x, y in stroke] for stroke in ink] for by in range(30)]
        assert len({tuple(_parts(page)) for page in moved}) == 1


@pytest.mark.parametrize("factor", [1e-4, 1.0, 1e4])
def test_any_unit_will_do(factor: float) -> None:
    page = _page(*_SAID)
    scaled = [[[x * factor, y * factor] for x, y in stroke] for stroke in _flat(page)]
    assert _parts(scaled) == [len(line) for line in page]


@pytest.mark.parametrize(
    "ink",
    [
        [],
        [np.zeros((1, 2))],
        [np.zeros((2, 2)), np.zeros((1, 2))],
        [np.array([[0.0, 0.0], [40.0, 0.0]])],
        [np.array([[0.0, 0.0], [0.0, 1e6]]), np.array([[0.0, 0.0], [1e-3, 1e-3], [0.0, 0.0]])],
    ],
    ids=["none", "point", "points", "flat", "scribble"],
)
def test_ink_without_letters_is_a_line_at_most(ink: list[Points]) -> None:
    assert lines_of(ink) == ([ink] if ink else [])


def test_a_scribble_has_as_many_samples_as_all_ink_may_have() -> None:
    """Nearly flat, its arcs say nothing of the height of letters."""
    (ink,) = _sampled([np.array([[0.0, 0.0], [1e3, 1e-3], [2e3, 0.0]])])
    assert len(ink) <= _MOST_SAMPLES + 2


def test_where_a_line_is_its_latest_ink_says() -> None:
    long = _Line()
    for number in range(2):
        long.add([number], np.full((_KEPT, 2), float(number)))
    assert (long.height, len(long.ink)) == (1.0, _KEPT)


def test_a_page_is_read_line_by_line(reader: ReaderService) -> None:
    page = _page(*_SAID)
    whole = reader.read(strokes=_flat(page))
    alone = [reader.read(strokes=strokes) for strokes in page]
    assert whole["text"] == "\n".join(answer["text"] for answer in alone)
    line_break = {"character": "\n", "confidence": 1.0, "settled": True}
    expected = alone[0]["characters"]
    for answer in alone[1:]:
        expected += [line_break, *answer["characters"]]
    assert whole["characters"] == expected
    assert whole["usage"]["pieces"] == sum(answer["usage"]["pieces"] for answer in alone)


@pytest.mark.in_process
def test_a_page_costs_what_its_lines_cost(
    reader: ReaderService, caplog: pytest.LogCaptureFixture
) -> None:
    page = _page(*_SAID)
    with caplog.at_level(logging.INFO, logger=record.log.name):
        for strokes in (*page, _flat(page)):
            reader.read(strokes=strokes)
    logged = [json.loads(r.message) for r in caplog.records if r.name == record.log.name]
    *alone, whole = (line["steps"] for line in logged)
    assert whole == sum(alone)


@pytest.mark.parametrize(
    ("climb", "levelled"), [(-0.31, False), (-0.29, True), (0.29, True), (0.31, False)]
)
def test_what_climbs_as_no_line_does_is_left_as_it_is(climb: float, levelled: bool) -> None:
    ink = np.linspace((0.0, 0.0), (30.0, 30 * climb), 120)
    (level,) = _level([ink])
    assert (np.ptp(level[:, 1]) < 1e-6) == levelled
    assert levelled or level is ink


def test_a_line_in_which_nothing_is_read_is_a_line() -> None:
    class Silent:
        async def read(self, pieces: object, *, admitted: bool) -> list[Read]:
            return []

        async def ahead(self, *, admitted: bool) -> list[Read]:
            return []

    pieces, silent = np.zeros((1, PIECE), np.float32), cast(OnlineReader, Silent())
    told = asyncio.run(_read_in_turn([silent] * 3, [pieces] * 3))
    assert [each["character"] for each in told] == ["\n"] * 2


def test_what_stands_on_one_ruled_line_is_one_line(reader: ReaderService) -> None:
    assert "\n" not in reader.read(strokes=_flat(_page(*_SAID)), line_height=64)["text"]


def test_the_lines_of_a_page_are_together_no_longer_than_a_message(reader: ReaderService) -> None:
    zigzag = [[5 * i, 20 * (i % 2)] for i in range(400)]
    page = [[[x, y + 80 * number] for x, y in zigzag] for number in range(14)]
    assert reader.read(strokes=page[:4])["text"].count("\n") == 3
    refused = reader.client.post("/v1/read", json={"strokes": page})
    assert refused.status_code == 400
    assert "at most 4096" in refused.json()["error"]["message"]


@pytest.mark.in_process
def test_once_a_line_is_read_the_others_are(
    reader: ReaderService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where others wait, a page is refused whole or not at all."""
    page = _flat(_page(*_SAID))
    engine: Engine = reader.app.state.models[MODEL].engine
    expected = reader.read(strokes=page)["text"]
    let_in = list[bool]()

    def full(jobs: object, *, admitted: bool = False) -> object:
        let_in.append(admitted)
        if len(let_in) > 1 and not admitted:
            raise Overloaded("too much to do", 1)
        return submit(jobs, admitted=admitted)

    submit = engine.submit
    monkeypatch.setattr(engine, "run_now", lambda job: False)
    monkeypatch.setattr(engine, "submit", full)
    assert reader.read(strokes=page)["text"] == expected
    assert let_in == [False] + [True] * 7
