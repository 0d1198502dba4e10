"""Marks stand where people put them, at letters as they were written."""

import math

import numpy as np
import pytest

from service.ink.marks import LineMarks, compose
from service.ink.pen import strokes


def _line(
    text: str, height: float = 10.0, ahead: int = 3, climb: float = 0.0
) -> tuple[LineMarks, np.ndarray]:
    """A line of upright letters, a stroke of eight points each, the foot at y = 100, or by `climb`
    higher from letter to letter; the window so many points ahead, until it waits at a space."""
    marks, points, pen_at = LineMarks(text, 4.0), [], []
    for place, letter in enumerate(text):
        if letter == " ":
            continue
        x = 20.0 * place + np.array([0, 0, 0, 5, 10, 10, 10, 10])
        y = 100 - climb * place - height * np.array([1, 0.5, 0, 0, 0, 0.3, 0.6, 1])
        points.append(np.column_stack([x, y, np.arange(8) == 7]))
        pen_at.append(np.full(8, place))
    placed, here = np.concatenate(points), np.concatenate(pen_at)
    window = np.concatenate([here[ahead:], here[-1:].repeat(ahead)])
    for i, (pen, seen) in enumerate(zip(here, window, strict=True)):
        if " " in text[pen:seen]:
            window[i] = text.index(" ", pen)
    offsets = np.diff(placed, axis=0, prepend=0) * (1, -1, 0) + placed * (0, 0, 1)
    marks.follow(offsets.astype(np.float32), placed, window)
    return marks, placed


@pytest.mark.parametrize("ahead", [2, 3, 4, 5])
def test_a_mark_at_the_edge_of_a_word_stands_at_its_letter(ahead: int) -> None:
    drawn = _line("no né énu", ahead=ahead)[0].drawn()
    ends, begins = np.split(drawn[:, 0], 2)
    assert (ends.mean(), begins.mean()) == pytest.approx((85, 125), abs=3)


@pytest.mark.parametrize("ahead", [2, 3, 4])
def test_a_word_of_one_letter_has_its_mark(ahead: int) -> None:
    drawn = _line("nu à un ø nu", ahead=ahead)[0].drawn()
    accent, bar = drawn[:3, 0], drawn[3:, 0]
    assert (accent.mean(), bar.mean()) == pytest.approx((65, 165), abs=3)
    assert np.ptp(bar) < 25


def test_a_word_begins_where_the_window_comes_to_it_though_a_gap_before_is_wider() -> None:
    letter = np.column_stack([
        np.array([0, 0, 0, 5, 10, 10, 10, 10]),
        100 - 10 * np.array([1, 0.5, 0, 0, 0, 0.3, 0.6, 1]),
        np.arange(8) == 7,
    ])  # fmt: skip
    # 20 px within the first word, 19 between the two.
    points = np.concatenate([letter + np.array([left, 0, 0]) for left in (20, 50, 79, 99)])
    drawn = compose("nš on", points, np.repeat([0, 1, 2, 3, 4], [5, 8, 3, 8, 8]), 0.0, 10.0)
    assert drawn[:, 0].mean() == pytest.approx(55, abs=3)


def test_a_mark_is_over_its_letter_on_a_line_that_climbs() -> None:
    drawn = _line("nununununé", climb=2.0)[0].drawn()
    assert drawn[:, 1].max() < 100 - 2.0 * 9 - 10


def test_strokes_that_join_a_letter_to_others_make_its_bar_no_longer() -> None:
    for width in (0.0, 40.0):
        marks = LineMarks("ø", 4.0)
        turn = np.linspace(0, 2 * np.pi, 10)
        x = np.concatenate([[-width], 5 * np.sin(turn), [width]])
        y = np.concatenate([[100.0], 95 - 5 * np.cos(turn), [100.0]])
        points = np.column_stack([x, y, np.arange(12) == 11])
        marks.follow(
            np.diff(points, axis=0, prepend=0).astype(np.float32), points, np.zeros(12, int)
        )
        bar = marks.drawn()[:, 0]
        assert np.abs(bar).max() < 9
        assert bar.mean() == pytest.approx(0, abs=1)


@pytest.mark.parametrize("letter", "éèêëñåçşąșạūŏżőčø")
def test_a_mark_stands_at_its_letter_and_is_as_large_as_the_writing(letter: str) -> None:
    for height in (10.0, 15.0):
        marks, _ = _line(f"nu{letter}no", height)
        drawn = marks.drawn()
        assert drawn[-1, 2] == 1
        assert 40 - height / 2 < drawn[:, 0].min() < drawn[:, 0].max() < 50 + height / 2
        assert drawn[:, 0].mean() == pytest.approx(45, abs=3)
        if letter in "çşąșạ":
            assert drawn[:, 1].min() > 100 - height / 2
            assert drawn[:, 1].max() > 100
        elif letter != "ø":
            assert drawn[:, 1].max() < 100 - height
            assert drawn[:, 1].min() > 100 - 2.5 * height


# Letters are ten px wide and high here.
@pytest.mark.parametrize(
    ("letters", "bar"),
    [
        ("Đ", [(-4.5, 95), (3.75, 95)]),
        ("ł", [(-3, 96.5), (3, 93.5)]),
        ("Ł", [(-3, 96.5), (3, 93.5)]),
        ("øØ", [(11.5, 88.5), (-1.5, 101.5)]),
    ],
)
def test_a_bar_goes_through_its_letter_where_people_put_it(
    letters: str, bar: list[tuple[float, float]]
) -> None:
    for letter in letters:
        drawn = _line(f"nu{letter}no")[0].drawn()[:, :2] - (40, 0)
        assert drawn.ravel().tolist() == pytest.approx([n for end in bar for n in end], abs=1)


def test_signs_of_money_are_capitals_crossed_at_their_first_ink() -> None:
    hook = [(0, 91), (0.4, 89), (1.8, 87.4), (3.6, 87.4), (4.6, 89.4)]
    for money, ends, heights in (
        ("€", 8, [94.2, 96.2]),
        ("£", 4.5, [95.5]),
        ("¥", 4.5, [96, 97.8]),
    ):
        expected = [[(-3.5, y), (ends, y)] for y in heights] + [hook] * (money == "£")
        drawn = strokes(_line(f"nu{money}no")[0].drawn() - (40, 0, 0))
        assert [len(stroke) for stroke in drawn] == [len(stroke) for stroke in expected]
        assert np.concatenate(drawn) == pytest.approx(np.concatenate(expected))


def test_a_capital_that_nothing_crosses_is_crossed_in_its_middle() -> None:
    """Of a line that was cut off."""
    points = np.array([[0, 90, 0], [4, 90, 0], [10, 90, 1]], float)
    crossed = compose("£", points, np.zeros(3, int), 0.0, 10.0)[:2]
    assert crossed[:, :2].ravel().tolist() == pytest.approx([1.5, 90, 9.5, 90], abs=0.5)


@pytest.mark.parametrize("lean", [-0.5, 0.0, 0.5])
@pytest.mark.parametrize("letter", "đł")
def test_a_bar_goes_through_the_stem_of_a_letter_that_is_joined(letter: str, lean: float) -> None:
    # A bowl if it has one, the stem up and down again, and a long way to the next letter.
    bowl = [(0.0, 5.0), (5.0, 0.0), (9.0, 3.0)] if letter == "đ" else [(0.0, 0.0), (8.0, 5.0)]
    drawn = np.array([*bowl, (10.0, 11.0), (10.0, 20.0), (10.0, 11.0), (10.0, 1.0), (30.0, 0.0)])
    small = np.array([(0.0, 0.0), (3.0, 10.0), (6.0, 0.0), (8.0, 9.0)])
    parts = [small, np.add(drawn, (10, 0)), np.add(small, (42, 0))]
    upright = np.concatenate(parts) * (1, -1) + (0, 100)
    leaning = upright - (upright[:, 1:] - 100) * (lean, 0)
    points = np.column_stack([leaning, np.arange(len(leaning)) == len(leaning) - 1])
    owner = np.repeat(np.arange(3), [len(part) for part in parts])
    window = np.concatenate([owner[3:], [2, 2, 2]])
    degrees = math.degrees(math.atan(lean))
    (x0, y0, _), (x1, y1, _) = compose(f"n{letter}n", points, window, degrees, 10.0)
    y = (y0 + y1) / 2
    stem = 20 - (y - 100) * lean
    assert x0 + 1 < stem < x1 - 1
    assert 82 < y < (88 if letter == "đ" else 92)  # that of a d is over its bowl


@pytest.mark.parametrize("lean", [-0.5, 0.0, 0.5])
@pytest.mark.parametrize(("letter", "foot", "over"), [("þ", 110.0, 9.0), ("Þ", 100.0, 8.0)])
@pytest.mark.parametrize("upward", [False, True])
def test_the_stem_of_a_thorn_goes_on_over_its_bowl(
    letter: str, foot: float, over: float, lean: float, upward: bool
) -> None:
    # A stroke that joins it to the letter before, the stem, its bowl, and on to the next letter.
    way = [(-9, 100), (-1, 90), (0, 91), (0, foot), (0, 92), (6, 90), (7, 95), (1, 99), (20, 100)]
    if upward:  # from its foot, the bowl of a large one no lower than its middle
        way = [(-3, foot), (0, foot), (0, 90), (6, 90), (7, 93), (1, 95.1), (6, 95)]
    upright = np.array([*[(x - 30, y) for x, y in [(0, 100), (3, 90), (6, 100), (8, 91)]], *way])
    leaning = upright - (upright[:, 1:] - 100) * (lean, 0)
    points = np.column_stack([leaning, np.arange(len(way) + 4) == len(way) + 3])
    window = np.repeat([0, 1], [1, len(way) + 3])  # three points ahead
    degrees = math.degrees(math.atan(lean))
    stem = compose(f"n{letter}", points, window, degrees, 10.0)
    assert stem[:, 1].tolist() == pytest.approx([92, 90 - over], abs=0.5)
    assert stem[:, 0].tolist() == pytest.approx(((100 - stem[:, 1]) * lean).tolist(), abs=0.5)
    assert stem[:, 2].tolist() == [0, 1]


@pytest.mark.parametrize("lean", [0.5, 0.0])
@pytest.mark.parametrize("ahead", [2, 3, 4])
def test_what_makes_a_dot_a_mark_turned_round_hangs_from_it_down_to_the_line(
    ahead: int, lean: float
) -> None:
    dot = np.column_stack([np.zeros(6), np.linspace(80, 86, 6), np.arange(6) == 5])
    _, word = _line("ano", ahead=0)
    points = np.concatenate([dot, word[8:]])
    points[:, 0] -= (points[:, 1] - 100) * lean
    degrees = math.degrees(math.atan(lean))
    here = np.repeat([0, 1, 2], [6, 8, 8])
    window = np.concatenate([here[ahead:], here[-1:].repeat(ahead)])
    for mark, left, right in (("¡", 0.0, 0.3), ("¿", -4.6, 1.4)):
        x, y, up = compose(f"{mark}no", points, window, degrees, 10.0).T
        x += (y - 100) * lean
        assert (y[0], y.max(), up.sum()) == (pytest.approx(89, abs=1.5), pytest.approx(100), 1)
        assert (x.min(), x.max()) == (pytest.approx(left, abs=0.5), pytest.approx(right, abs=0.5))


def test_a_mark_turned_round_that_stands_alone_hangs_below_its_dot() -> None:
    dot = np.array([[0, 80, 0], [0, 82, 0], [0, 86, 1]], float)
    hanging = compose("¡", dot, np.zeros(3, int), 0.0, 10.0)
    assert hanging[:, 1].tolist() == pytest.approx([89, 91.5, 94])


def test_a_mark_turned_round_that_a_line_was_cut_off_at_hangs_from_its_last_ink() -> None:
    _, points = _line("noo", ahead=0)
    window = np.append(np.repeat([0, 1], [8, 15]), 2)  # the pen is not there yet
    assert compose("no¡", points, window, 0.0, 10.0)[:, 0].min() > 20


def test_of_two_marks_the_second_stands_over_the_first() -> None:
    hat, acute, both = (_line(f"nu{letter}no")[0].drawn() for letter in "êéế")
    assert both[:3].tolist() == hat.tolist()
    assert both[3:].ravel().tolist() == pytest.approx((acute - (0, 5, 0)).ravel().tolist())


@pytest.mark.parametrize("lean", [0.5, -0.5])
def test_marks_lean_and_stand_as_the_letters_do(lean: float) -> None:
    def leaning(points: np.ndarray) -> np.ndarray:
        return points + (points[:, 1:2] - 100) * (-lean, 0, 0)

    text = "nuéşno"
    _, upright = _line(text)
    degrees, characters = math.degrees(math.atan(lean)), np.repeat(np.arange(len(text)), 8)
    expected = leaning(compose(text, upright, characters, 0.0, 10.0))
    drawn = compose(text, leaning(upright), characters, degrees, 10.0)
    assert drawn.ravel().tolist() == pytest.approx(expected.ravel().tolist(), abs=1.5)


def test_marks_lean_as_all_of_their_line_does() -> None:
    text = "nuéno"
    _, points = _line(text)
    points[:, 0] -= 0.5 * (points[:, 1] - 100)
    offsets = np.diff(points, axis=0, prepend=0) * (1, -1, 0) + points * (0, 0, 1)
    whole, parts = LineMarks(text, 4.0), LineMarks(text, 4.0)
    line = offsets.astype(np.float32), points, np.repeat(np.arange(len(text)), 8)
    whole.follow(*line)
    for part in (slice(38), slice(38, 40)):
        parts.follow(*(each[part] for each in line))
    assert parts.drawn().tolist() == whole.drawn().tolist()


def test_marks_lean_by_35_degrees_at_most() -> None:
    text = "nuéno"
    _, points = _line(text)
    for steep, steepest in ((60.0, 35.0), (-60.0, -35.0)):
        asked = text, points, np.repeat(np.arange(len(text)), 8)
        assert compose(*asked, steep, 10.0).tolist() == compose(*asked, steepest, 10.0).tolist()


@pytest.mark.parametrize(("height", "high"), [(2.0, 2.0), (10.0, 4.0), (60.0, 8.0)])
def test_a_mark_is_half_to_twice_as_large_as_is_usual(height: float, high: float) -> None:
    drawn = _line("nuéno", height)[0].drawn()
    assert np.ptp(drawn[:, 1]) == pytest.approx(high)


def test_a_letter_that_slips_off_the_line_makes_no_mark_larger() -> None:
    text = "nunué"
    _, points = _line(text)
    asked, slipped = (np.repeat(np.arange(len(text)), 8), 0.0, 10.0), points.copy()
    slipped[:8, 1] += 30
    assert compose(text, slipped, *asked).tolist() == compose(text, points, *asked).tolist()


def test_dots_over_the_letters_before_make_no_mark_larger() -> None:
    text = "nunué"
    points = np.repeat(_line(text)[1], 2, axis=0)
    asked, dotted = (np.repeat(np.arange(len(text)), 16), 0.0, 10.0), points.copy()
    dotted[5:64:16, 1] -= 20
    assert compose(text, dotted, *asked).tolist() == compose(text, points, *asked).tolist()


def test_what_hangs_below_a_letter_lowers_no_mark() -> None:
    text = "nuéno"
    _, points = _line(text)
    asked, joined = (np.repeat(np.arange(len(text)), 8), 0.0, 10.0), points.copy()
    joined[19, 1] += 8
    assert compose(text, joined, *asked)[:, 1] == pytest.approx(compose(text, points, *asked)[:, 1])


def test_a_bar_over_its_letter_moves_no_mark() -> None:
    """As that of a t before, which is drawn later."""
    alone, crossed = _line("nunué")[0], _line("nunué")[0]
    bar = np.array([[60.0, 70, 0], [70, 70, 0], [80, 70, 0], [90, 70, 1]])
    crossed.follow(bar.astype(np.float32) * (0, 0, 1), bar, np.full(4, 4))
    assert crossed.drawn().tolist() == alone.drawn().tolist()


def test_a_line_without_marks_has_none_and_two_have_theirs() -> None:
    assert _line("none")[0].drawn().shape == (0, 3)
    drawn = _line("été")[0].drawn()
    assert drawn[:, 2].sum() == 2
    assert np.ptp(drawn[:, 0]) > 30
    assert LineMarks("é", 4.0).drawn().shape == (0, 3)


def test_an_accent_goes_through_the_dot_of_an_i() -> None:
    marks, _ = _line("naï")
    dot = np.array([[46.0, 80.0, 1.0]])
    marks.follow(np.array([[0, 0, 1]], np.float32), dot, np.array([2]))
    (x, y, _), *_ = marks.drawn()
    assert (x - 46, y - 80) == pytest.approx((4.4, 0), abs=1.0)  # the other dot, beside it
    for letter in "ìîǰ":
        marks, _ = _line(f"na{letter}")
        marks.follow(np.array([[0, 0, 1]], np.float32), dot, np.array([2]))
        middle = marks.drawn()[:, :2]
        assert np.hypot(*(middle - dot[0, :2]).T).min() < 1.5
    marks, _ = _line("naḯ")
    marks.follow(np.array([[0, 0, 1]], np.float32), dot, np.array([2]))
    second, acute = np.split(marks.drawn(), [2])
    assert second[:, 0].min() > 46 + 3
    assert acute[:, 1].max() < 80  # over both


def test_no_accent_goes_through_the_dot_of_the_letter_before() -> None:
    for dots, through in (([54.8], 65), ([46, 56], 56), ([46, 68], 68)):  # i is at 45, í at 65
        marks, _ = _line("naií")
        points = np.array([[x, 80.0, 1.0] for x in dots])
        marks.follow(points.astype(np.float32) * (0, 0, 1), points, np.full(len(dots), 3))
        middle = np.median(marks.drawn()[:, :2], axis=0)
        assert middle[0] == pytest.approx(through, abs=1.5)


@pytest.mark.parametrize(
    "places", [[(6, 80)], [(46, 95)], [(30, 80), (45, 80), (60, 80)]], ids=["far", "low", "bar"]
)
def test_what_is_far_or_low_or_wide_is_no_dot_of_an_i(places: list[tuple[float, float]]) -> None:
    marks, _ = _line("naï")
    points = np.array([[*place, place == places[-1]] for place in places], float)
    marks.follow(points.astype(np.float32) * (0, 0, 1), points, np.full(len(points), 2))
    drawn = marks.drawn()
    assert drawn[:, 2].sum() == 2
    assert drawn[:, 0].min() > 40


@pytest.mark.parametrize(("letters", "count"), [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (6, 4)])
def test_letters_that_a_line_was_cut_off_before_have_no_marks(letters: int, count: int) -> None:
    """They had theirs all on the last ink there was."""
    marks, points = _line("né nú nü", ahead=0)
    written, window = points[: 8 * letters], np.concatenate(marks._characters)[: 8 * letters]
    drawn = compose("né nú nü", written, window, 0.0, 10.0)
    whole = compose("né nú nü", points, np.concatenate(marks._characters), 0.0, 10.0)
    assert drawn[:, 2].sum() == count
    assert drawn == pytest.approx(whole[: len(drawn)], abs=6)  # of half a word: nearly there


def test_dots_of_a_line_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []

    def noted(points: np.ndarray) -> object:
        looked.append(len(points))
        return strokes(points)

    monkeypatch.setattr("service.ink.marks.strokes", noted)
    assert len(_line("ní ní ní ní")[0].drawn())
    assert len(looked) == 1
    assert len(_line("né né")[0].drawn())
    assert len(looked) == 1  # nor at all without an i or a j


@pytest.mark.parametrize(
    ("letter", "ways"),
    [
        ("à", ["SE SE"]),
        ("á", ["SW SW"]),
        ("â", ["NE SE"]),
        ("ǎ", ["SE NE"]),
        ("ã", ["NE SE SE NE"]),
        ("ă", ["SE SE NE"]),
        ("ő", ["SW", "SW"]),
        ("ç", ["SW SE SW W"]),
        ("ą", ["SW SE NE"]),
        ("ș", ["SE SW"]),
    ],
)
def test_a_mark_is_drawn_the_way_it_goes(letter: str, ways: list[str]) -> None:
    """As on a compass: a caron is no circumflex, and a cedilla turns to the left."""
    drawn, _ = _line(f"n{letter}n")
    told = [
        " ".join(
            ("N" * (y < 0) or "S" * (y > 0)) + "W" * (x < 0) + "E" * (x > 0)
            for x, y in moves.tolist()
        )
        for moves in (np.diff(stroke, axis=0).round(6) for stroke in strokes(drawn.drawn()))
    ]
    assert told == ways


def test_a_macron_lies_flat_and_a_dot_is_clear_of_its_letter() -> None:
    macron, dot = (_line(f"n{letter}n")[0].drawn() for letter in "āạ")
    assert np.ptp(macron[:, 0]) > 5 > np.ptp(macron[:, 1])
    assert dot[:, 1].min() > 102


def test_a_ring_is_closed() -> None:
    (ring,) = strokes(_line("nån")[0].drawn())
    assert ring[-1] == pytest.approx(ring[0])
