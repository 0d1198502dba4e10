"""Which lines can be learned from, judged beside the others of their source."""

import numpy as np
import pytest
from numpy.typing import NDArray

from contract.strokes import LONGEST_OFFSET, UNITS_OF_SIZE
from training.ink.line import Line, Tally
from training.ink.prepare import LONGEST_INK, Ink, prepare

Curve = NDArray[np.float64]

_TEXT = "mmm mmm mmm"
_WIDTH, _HEIGHT, _POINTS = 62.0, 8.0, 24
_FAR_BACK = "the pen goes far back: a second line or a correction"
_JUMP = f"a move of more than {LONGEST_OFFSET:.0f} units"
_LONG = f"more than {LONGEST_INK} points"
_NARROW = "several lines, or text too narrow for its height"
_RATE = "too many or too few points for its text"
_SIZE = "too large or too small for its source"
_ADVANCE = "too wide or too narrow for its text"


def _moved(stroke: Curve, x: float) -> Curve:
    return stroke + np.array([x, 0.0])


def _word(place: int, letters: int = 3, points: int = _POINTS) -> Curve:
    """Arches 6 wide and 8 high, 7 apart; y up."""
    at = np.linspace(0, 1, points)
    arch = np.stack([6 * at, _HEIGHT * np.sin(np.pi * at)], axis=1)
    return np.concatenate([_moved(arch, 7.0 * (place + n)) for n in range(letters)])


def _words(points: int = _POINTS) -> list[Curve]:
    return [_word(3 * n, points=points) for n in range(3)]


def _bar(x: float, y: float = 4.0) -> Curve:
    """Of a t or an f, from `x` to the right."""
    return np.array([[x, y], [x + 2.0, y]])


def _line(strokes: list[Curve], text: str = _TEXT, source: str = "one") -> Line:
    return Line(text, tuple(s.astype(np.float32) for s in strokes), "w", source, 100.0)


def _prepared(strokes: list[Curve], text: str = _TEXT) -> tuple[Ink | None, str | None]:
    """A line among eight usual ones: its ink, or why there is none."""
    tally = Tally()
    inks = prepare([*[_line(_words())] * 8, _line(strokes, text)], tally)
    assert tally.kept == len(inks) >= 8
    (reason,) = tally.skipped or (None,)
    return (None if reason else inks[-1]), reason


@pytest.mark.parametrize(
    ("points", "reason"), [(8, _RATE), (9, None), (60, None), (61, _RATE)]
)  # fmt: skip
def test_a_line_has_about_as_many_points_as_others(points: int, reason: str | None) -> None:
    assert _prepared(_words(points))[1] == reason


@pytest.mark.parametrize(
    ("scale", "reason"), [(0.44, _SIZE), (0.46, None), (2.18, None), (2.22, _SIZE)]
)
def test_a_line_is_about_as_large_as_others(scale: float, reason: str | None) -> None:
    assert _prepared([stroke * scale for stroke in _words()])[1] == reason


@pytest.mark.parametrize(
    ("scale", "reason"), [(0.39, _ADVANCE), (0.41, None), (2.18, None), (2.22, _ADVANCE)]
)
def test_a_line_is_about_as_wide_as_others(scale: float, reason: str | None) -> None:
    assert _prepared([stroke * [scale, 1.0] for stroke in _words()])[1] == reason


@pytest.mark.parametrize("scale", [[3.0, 3.0], [0.2, 1.0], [3.0, 1.0]])
def test_a_character_alone_may_be_of_any_size(scale: list[float]) -> None:
    assert _prepared([_word(0, 1) * scale], "m")[1] is None


@pytest.mark.parametrize(("scale", "reason"), [([3.0, 3.0], _SIZE), ([3.0, 1.0], _ADVANCE)])
def test_two_characters_may_not(scale: list[float], reason: str) -> None:
    assert _prepared([_word(0, 2) * scale], "mm")[1] == reason


def test_a_writer_is_as_large_as_most_of_their_lines() -> None:
    usual, large = _line(_words()), _line([stroke * 2 for stroke in _words()])
    _, found, _ = prepare([large, usual, usual], Tally())
    assert found.offsets.tobytes() == prepare([usual], Tally())[0].offsets.tobytes()


@pytest.mark.parametrize(("below", "reason"), [(26.0, None), (27.0, _NARROW)])
def test_ink_that_is_high_for_its_width_is_of_several_lines(
    below: float, reason: str | None
) -> None:
    assert _prepared([*_words(), np.array([[_WIDTH - 1, -below]])])[1] == reason


def test_three_letters_may_be_higher_than_a_line_of_writing() -> None:
    assert _prepared([_word(0), np.array([[19.0, -32.0]])], "mmm")[1] is None


@pytest.mark.parametrize(("back", "reason"), [(20.0, None), (27.5, None), (28.5, _FAR_BACK)])
def test_a_pen_goes_back_for_a_bar_and_not_for_a_word(back: float, reason: str | None) -> None:
    ink, told = _prepared([*_words(), _bar(_WIDTH - back)])
    assert told == reason
    if ink is not None:  # where the ink ends is where it reaches, not where the pen is
        assert ink.advance > ink.offsets[:, 0].sum() + 10
        x = ink.offsets[:, 0].astype(np.float64).cumsum()
        assert ink.advance == pytest.approx(x.max(), abs=1e-3)


@pytest.mark.parametrize(("back", "reason"), [(17.5, None), (18.0, _FAR_BACK)])
def test_in_a_short_word_it_may_go_back_by_more_than_half_of_it(
    back: float, reason: str | None
) -> None:
    """By eight times the size of the hand, as for the bar of a wide t."""
    assert _prepared([_word(0, 4), _bar(27.0 - back)], "mmmm")[1] == reason


@pytest.mark.parametrize(("letters", "reason"), [(3, None), (4, _FAR_BACK)])
def test_three_letters_may_be_written_in_any_order(letters: int, reason: str | None) -> None:
    strokes = [_moved(_word(0, 1), 7.0 * (letters - 1)), _word(0, letters - 1)]
    assert _prepared(strokes, "m" * letters)[1] == reason


def test_a_gap_wider_than_half_a_line_is_no_way_back() -> None:
    one, two, three = _words()
    assert _prepared([one, two, _moved(three, 34.0)])[1] is None


@pytest.mark.parametrize(
    "strokes",
    [
        [*_words()[:2], _moved(_word(6), 45.0)],
        [*_words()[:2], _moved(_word(6), 30.0), _bar(_WIDTH - 10)],
        [*_words()[:2], _moved(_word(6), 30.0), _bar(_WIDTH + 30, 45.0)],
    ],
    ids=["right", "left", "up"],
)
def test_a_jump_is_no_writing_whichever_way_it_goes(strokes: list[Curve]) -> None:
    assert _prepared(strokes)[1] == _JUMP


@pytest.mark.parametrize(("letters", "reason"), [(37, None), (38, _LONG)])
def test_ink_that_is_too_long_for_a_row_is_left_out(letters: int, reason: str | None) -> None:
    ink, told = _prepared([_word(0, letters, 58)], "m" * letters)
    assert told == reason
    assert ink is None or LONGEST_INK - 20 < len(ink.offsets) <= LONGEST_INK


def test_a_slow_line_has_more_points_than_others_of_its_source() -> None:
    usual, slow = (_prepared(_words(points))[0] for points in (_POINTS, 2 * _POINTS))
    assert usual is not None
    assert slow is not None
    assert len(slow.offsets) == pytest.approx(2 * len(usual.offsets), rel=0.05)


def test_every_source_has_a_rate_and_a_size_of_its_own() -> None:
    fine = [stroke * 0.01 for stroke in _words(100)]
    tally = Tally()
    lines = [_line(_words())] * 3 + [
        Line(_TEXT, _line(fine).strokes, "v", "other", 100.0) for _ in range(4)
    ]
    inks = prepare(lines, tally)
    assert [ink.source for ink in inks] == ["one"] * 3 + ["other"] * 4
    counts = {len(ink.offsets) for ink in inks}
    assert max(counts) - min(counts) <= 3
    for ink in inks:
        y = ink.offsets[:, 1].astype(np.float64).cumsum()
        assert np.abs(y - np.median(y)).mean() == pytest.approx(UNITS_OF_SIZE, rel=0.15)


def test_one_tally_counts_over_many_sources_and_names_what_it_left_out() -> None:
    tally = Tally()
    long = "no ink, and a text that goes on"
    for source in ("one", "other"):
        prepare([_line(_words(), source=source), _line([], long, source)], tally)
    assert tally.kept == 2
    assert tally.skipped == {"no ink": 2}
    assert tally.examples == {"no ink": [f"w {long[:24]!r}"] * 2}
