"""Lines stand on the page, and a text is broken into them without loss."""

from collections.abc import Iterator
from itertools import combinations, pairwise

import numpy as np
import pytest

from service.ink.layout import LONGEST_LINE, break_text
from tests.service.ink.sheets import sheet


@pytest.mark.parametrize("lines", [1, 2, 9])
def test_every_baseline_is_on_the_page(lines: int) -> None:
    layout = sheet()
    baselines = [layout.origin_px(line)[1] for line in range(lines)]
    assert np.diff(baselines) == pytest.approx(40.0)
    assert baselines[0] > 0
    assert baselines[-1] < layout.height_px(lines) - layout.margin_px


@pytest.mark.parametrize(
    ("width_px", "characters"), [(50, 0), (80, 3), (400, 27), (10_000, LONGEST_LINE)]
)
def test_a_line_is_as_long_as_the_page_and_the_model_allow(width_px: int, characters: int) -> None:
    assert sheet(width_px).characters_per_line == characters


_TEXTS = [
    "",
    "word",
    "The quick  brown\tfox jumps   over the lazy dog.",
    "a well-known half-truth - and an em-dash—here, without spaces around",
    "Donaudampfschifffahrtsgesellschaftskapitän and his ship",
    "one\n\ntwo three\r\nfour\n   \nfive",
    " leading and trailing ",
    "\n",
]


@pytest.mark.parametrize("longest", [2, 5, 8, 60])
@pytest.mark.parametrize("text", _TEXTS)
def test_broken_text_loses_nothing_but_spaces_and_fits(text: str, longest: int) -> None:
    lines = break_text(text, longest)
    # But for hyphens, which divide words that are too long.
    plain = text.translate({ord("-"): None})
    assert "".join("".join(lines).replace("-", "").split()) == "".join(plain.split())
    if max(map(len, text.split()), default=0) <= longest:
        assert " ".join(" ".join(lines).split()) == " ".join(text.split())
    assert all(len(line) <= longest for line in lines)
    assert all(line == " ".join(line.split()) for line in lines)


def test_lines_break_at_spaces_and_where_the_writer_broke_them() -> None:
    assert break_text("well-known  words go on\n\nhere", 11) == [
        "well-known",
        "words go on",
        "",
        "here",
    ]


def _greedy(words: list[str], longest: int) -> int:
    """How many lines it takes to put as many words on each as go."""
    count, length = 1, -1
    for word in words:
        length += 1 + len(word)
        if length > longest:
            count, length = count + 1, len(word)
    return count


def _every_way(words: list[str], count: int) -> Iterator[list[str]]:
    for places in combinations(range(1, len(words)), count - 1):
        ends = [0, *places, len(words)]
        yield [" ".join(words[a:b]) for a, b in pairwise(ends)]


@pytest.mark.parametrize("longest", [9, 12, 17, 23, 24, 28])
def test_lines_are_as_few_as_can_be_and_of_those_the_most_even(longest: int) -> None:
    text = "The quick brown fox jumps over the lazy dog, and so to bed"
    words = text.split(" ")
    lines = break_text(text, longest)
    assert len(lines) == _greedy(words, longest)

    def unevenness(lines: list[str]) -> int:
        squares = [(longest - len(line)) ** 2 for line in lines[:-1]]
        return sum(squares) + max(longest // 3 - len(lines[-1]), 0) ** 2

    ways = (way for way in _every_way(words, len(lines)) if max(map(len, way)) <= longest)
    assert unevenness(lines) == min(map(unevenness, ways))


def test_the_last_line_is_no_lone_short_word_if_that_can_be_helped() -> None:
    assert break_text("one two three four a", 18) == ["one two three", "four a"]


@pytest.mark.parametrize(
    ("word", "lines"),
    [
        ("abcdefghij", ["abcdefghij"]),
        ("abcdefghijk", ["abcdefghi-", "jk"]),
        ("half-truths-ok", ["half-", "truths-ok"]),
        ("-abcdefghijklm", ["-abcdefgh-", "ijklm"]),
    ],
)
def test_a_word_longer_than_a_line_is_divided_by_a_hyphen(word: str, lines: list[str]) -> None:
    assert break_text(word, 10) == lines
