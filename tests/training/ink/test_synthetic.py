"""What a writer of synthetic ink is said to do is seen in the ink."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from training.ink.line import Stroke
from training.ink.synthetic import Style, synthetic_lines, write

# A steady hand in units of the font, whose capitals are 21 high.
_STEADY = Style(
    font="futural", size=10, slant=0, width=1, spacing=0, word_spacing=15, rounding=0.1, wobble=0,
    jitter=0, climb=0, tremor=0, speed=1, phases=(0, 0),
)  # fmt: skip
_CAPITAL = 21
_FONTS = ("futural", "rowmans", "scripts", "cursive")


def _strokes(text: str, **style: object) -> tuple[Stroke, ...]:
    return write(text, replace(_STEADY, **style), np.random.default_rng(1)).strokes


def _ink(text: str, **style: object) -> NDArray[np.float32]:
    """All points `(N, 2)`."""
    return np.concatenate(_strokes(text, **style))


@pytest.mark.parametrize("font", _FONTS)
def test_characters_are_on_the_line_over_it_or_below_it(font: str) -> None:
    for letter in "xH2&":
        assert abs(_ink(letter, font=font)[:, 1].min()) < 3, letter
    for letter in "H2(":
        assert abs(_ink(letter, font=font)[:, 1].max() - _CAPITAL) < 6, letter
    for letter in "'\"`^":
        assert _ink(letter, font=font)[:, 1].min() > 10, letter
    for letter in "gpy[|":
        assert _ink(letter, font=font)[:, 1].min() < -3, letter


@pytest.mark.parametrize("font", _FONTS)
def test_a_script_has_the_figures_and_the_q_of_print(font: str) -> None:
    """Its own are adorned, or look like another character."""
    for character in "2Q%":
        assert _ink(character, font=font) == pytest.approx(_ink(character)), character


def test_a_quotation_mark_is_an_apostrophe_twice() -> None:
    (apostrophe,) = _strokes("'")
    marks = _strokes('"')
    assert len(marks) == 2
    for mark in marks:
        assert mark - mark[0] == pytest.approx(apostrophe - apostrophe[0], abs=0.1)


@pytest.mark.parametrize("pair", ["[]", "{}", "()", "<>"])
def test_what_opens_and_what_closes_are_mirror_images(pair: str) -> None:
    opening, closing = (
        _ink(character) * (side, 1) for character, side in zip(pair, (1, -1), strict=True)
    )
    assert closing - closing.mean(0) == pytest.approx(opening - opening.mean(0), abs=1.5)


def test_a_hand_leans_climbs_and_is_as_large_wide_and_fast_as_it_is_said_to() -> None:
    bottom, top = _ink("l")[[-1, 0]]
    assert bottom[1] < 1 < 20 < top[1]  # it is drawn downwards
    for slant in (-0.5, 0.5):
        (low, high) = _ink("l", slant=slant)[[-1, 0]]
        assert (high - low)[0] == pytest.approx(slant * (high - low)[1], abs=3)
    length = np.ptp(_ink("nnnnnnnn")[:, 0])
    climbs = _ink("nnnnnnnn", climb=0.2)
    assert climbs[:, 1].max() == pytest.approx(_ink("n")[:, 1].max() + 0.2 * length, abs=4)
    assert np.ptp(_ink("H", size=30), axis=0) == pytest.approx(3 * np.ptp(_ink("H"), axis=0))
    wide, plain = np.ptp(_ink("nnnnnnnn", width=2), axis=0), np.ptp(_ink("nnnnnnnn"), axis=0)
    assert wide / plain == pytest.approx([2, 1], rel=0.15)
    assert len(_ink("nn", speed=2)) == pytest.approx(len(_ink("nn")) / 2, rel=0.1)


def test_words_are_as_far_apart_as_they_are_said_to_be_and_letters_too() -> None:
    length = np.ptp(_ink("nn")[:, 0])
    for space in (10, 30):
        more = np.ptp(_ink("n n", word_spacing=space)[:, 0]) - length
        assert 0.8 * space < more < 1.25 * space
    assert np.ptp(_ink("nn", spacing=10)[:, 0]) - length == pytest.approx(10, abs=5)


@pytest.mark.parametrize(
    ("text", "font", "strokes"),
    [("lll", "scripts", 1), ("l l", "scripts", 2), ("lll", "futural", 3), ("l1l", "scripts", 3)],
)
def test_letters_of_a_script_are_joined_within_a_word(text: str, font: str, strokes: int) -> None:
    assert len(_strokes(text, font=font)) == strokes


@pytest.mark.parametrize(("spacing", "strokes"), [(2, 1), (4, 3)])
def test_letters_of_a_script_come_apart_where_they_stand_apart(spacing: int, strokes: int) -> None:
    assert len(_strokes("lll", font="scripts", spacing=spacing)) == strokes


def test_a_corner_is_as_round_as_it_is_said_to_be_and_ends_stay() -> None:
    sharp, round_ = _ink("^", rounding=0.1), _ink("^", rounding=3)
    assert sharp[:, 1].max() > round_[:, 1].max() + 1
    assert round_[[0, -1]] == pytest.approx(sharp[[0, -1]], abs=0.1)


def test_no_two_lines_are_of_one_writer_whatever_their_seeds() -> None:
    lines = [line for seed in (0, 1) for line in synthetic_lines(3, seed)]
    assert len({line.writer for line in lines}) == len({line.text for line in lines}) == 6


_FIRST_OF_SEED_0 = [  # a text, its strokes, its points, and their mean, spread and end
    ("` cend posour", 16, 329, [165.96, 8.6, 79.1, 6.57, 298.75, 12.83]),
    ("=[ $63 cebros ton=ze seegefo&loceeck:", 48, 835, [230.19, 6.84, 126.18, 5.43, 429.3, 4.78]),
    ("87:30 Wees: Soong? $+", 29, 507, [117.49, 6.82, 65.13, 5.98, 229.96, 7.58]),
    ("wan- < Mhan- wend- tede :+ Xeesove", 50, 810, [344.24, 6.12, 198.51, 6.87, 662.13, -2.56]),
    ("chiedoon *Ooshait*", 29, 459, [176.13, 6.04, 101.94, 7.01, 324.63, -0.75]),
]


def test_a_recipe_is_trained_on_the_ink_that_it_was_trained_on_before() -> None:
    """Every number of a writer, and every draw, is part of what the seed stands for."""
    for line, (text, strokes, points, places) in zip(
        synthetic_lines(len(_FIRST_OF_SEED_0), 0), _FIRST_OF_SEED_0, strict=True
    ):
        ink = np.concatenate(line.strokes)
        assert (line.text, len(line.strokes), len(ink)) == (text, strokes, points)
        found = [*ink.mean(0, dtype=np.float64), *ink.std(0, dtype=np.float64), *ink[-1]]
        assert found == pytest.approx(places, abs=0.02)
        assert (line.writer.split("/")[0], line.points_per_second) == ("synthetic", 100)


_BY_HAND = {  # the characters that no font draws: the points of each, and their mean and spread
    "[": (16, [6.09, 4.88, 2.11, 9.59]),
    "]": (16, [6.15, 4.88, 2.11, 9.59]),
    "{": (18, [7.41, 4.83, 1.99, 8.58]),
    "}": (18, [5.84, 4.87, 1.99, 8.58]),
    "~": (14, [9.99, 7.36, 6.23, 1.59]),
    "^": (12, [8.39, 15.55, 3.78, 2.72]),
    "`": (5, [5.46, 18.56, 1.56, 2.07]),
    "'": (5, [4.45, 18.08, 0.06, 2.43]),
    '"': (10, [6.95, 18.02, 2.5, 2.43]),
    "|": (13, [5.19, 7.45, 0.24, 9.67]),
}


@pytest.mark.parametrize("character", _BY_HAND)
def test_so_is_a_character_that_is_too_rare_to_be_among_those(character: str) -> None:
    points, places = _BY_HAND[character]
    ink = _ink(character)
    assert len(ink) == points
    found = [*ink.mean(0, dtype=np.float64), *ink.std(0, dtype=np.float64)]
    assert found == pytest.approx(places, abs=0.02)
