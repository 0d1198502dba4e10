"""A text is broken into lines without loss, and by how wide its characters are written."""

from collections.abc import Iterator
from itertools import combinations, pairwise

import pytest

from contract.alphabets import LONGEST_LINE
from service.ink import breaking
from service.ink.breaking import AVERAGE, break_text, width_of

_TEXTS = [
    "",
    "word",
    "The quick  brown\tfox jumps   over the lazy dog.",
    "a well-known half-truth - and an em-dash—here, without spaces around",
    "see https://example.org/map?x_1=1&y=2 or ask anna_b@post.example.org",
    "Donaudampfschifffahrtsgesellschaftskapitän and his ship",
    "one\n\ntwo three\r\nfour\n   \nfive",
    " leading and trailing ",
    "\n",
]


def _width(text: str) -> int:
    return sum(map(width_of, text))


@pytest.mark.parametrize("room", [20, 50, 80, 600])
@pytest.mark.parametrize("text", _TEXTS)
def test_broken_text_loses_nothing_but_spaces_and_fits(text: str, room: int) -> None:
    lines = break_text(text, room)
    # But for hyphens, which divide words that are too long and have no other mark.
    plain = text.translate({ord("-"): None})
    assert "".join("".join(lines).replace("-", "").split()) == "".join(plain.split())
    if max(map(_width, text.split()), default=0) <= room:
        assert " ".join(" ".join(lines).split()) == " ".join(text.split())
    assert all(_width(line) <= room or len(line.strip("-")) == 1 for line in lines)
    assert all(len(line) <= LONGEST_LINE for line in lines)
    assert all(line == " ".join(line.split()) for line in lines)


def test_lines_break_at_spaces_and_where_the_writer_broke_them() -> None:
    assert break_text("well-known  words go on\n\nhere\n", 115) == [
        "well-known",
        "words go on",
        "",
        "here",
    ]


def _greedy(words: list[str], room: int) -> int:
    """How many lines it takes to put as many words on each as go."""
    count, line = 1, ""
    for word in words:
        line = f"{line} {word}".lstrip()
        if _width(line) > room:
            count, line = count + 1, word
    return count


def _every_way(words: list[str], count: int) -> Iterator[list[str]]:
    for places in combinations(range(1, len(words)), count - 1):
        ends = [0, *places, len(words)]
        yield [" ".join(words[a:b]) for a, b in pairwise(ends)]


_PANGRAM = "The quick brown fox jumps over the lazy dog, and so to bed"
# A line more, with a short last one, would leave less room over.
_SHORT = "I cannot get him out of the house; prithee call my master to him"


@pytest.mark.parametrize(
    ("text", "room"),
    [*((_PANGRAM, room) for room in (90, 120, 170, 230, 245, 280)), (_SHORT, 140)],
)
def test_lines_are_as_few_as_can_be_and_of_those_the_most_even(text: str, room: int) -> None:
    words = text.split(" ")
    lines = break_text(text, room)
    assert len(lines) == _greedy(words, room)

    def unevenness(lines: list[str]) -> int:
        squares = [(room - _width(line)) ** 2 for line in lines[:-1]]
        return sum(squares) + max(room // 3 - _width(lines[-1]), 0) ** 2

    ways = (way for way in _every_way(words, len(lines)) if max(map(_width, way)) <= room)
    assert unevenness(lines) == min(map(unevenness, ways))


def test_words_share_a_line_that_is_just_as_wide_as_they_are() -> None:
    words = "just fits"
    assert break_text(words, _width(words)) == [words]
    assert break_text(words, _width(words) - 1) == words.split()


def test_the_last_line_is_no_lone_short_word_if_that_can_be_helped() -> None:
    assert break_text("one two three four a", 180) == ["one two three", "four a"]


def test_no_line_has_more_characters_than_the_pen_learned_from() -> None:
    assert break_text("x" * LONGEST_LINE + " a", 10**6) == ["x" * LONGEST_LINE, "a"]
    two = "x" * 20 + " " + "x" * (LONGEST_LINE - 21)
    assert break_text(two, 10**6) == [two]
    assert len(break_text(f"{two}x", 10**6)) == 2
    assert break_text("x" * 60, 10**6) == ["x" * (LONGEST_LINE - 1) + "-", "x" * 17]


def test_wide_characters_take_more_room_than_narrow_ones() -> None:
    capitals = break_text("MERRY MEN WEAR MARKED HATS", 200)
    assert len(capitals) > len(break_text("merry men wear marked hats", 200))
    assert len(break_text("il " * 12, 200)) < len(break_text("mw " * 12, 200))
    assert width_of("É") == width_of("E") > width_of("e")


def test_english_is_written_as_wide_as_the_average_character() -> None:
    text = "It was the best of times, it was the worst of times, it was the age of wisdom"
    assert _width(text) / len(text) == pytest.approx(AVERAGE, rel=0.06)


@pytest.mark.parametrize("text", ["a " * 1000, "the quick brown fox " * 100, "M" * 2000])
def test_a_long_text_is_measured_a_few_times_and_not_for_every_way_to_fill_lines(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is broken on the event loop."""
    asked = []
    monkeypatch.setattr(breaking, "width_of", lambda c: asked.append(c) or width_of(c))
    break_text(text, 279)
    assert len(asked) < 6 * len(text)


@pytest.mark.parametrize(
    ("word", "lines"),
    [
        ("aceacecace", ["aceacecace"]),
        ("aceacecacek", ["aceacecac-", "ek"]),
        ("half-truths-ok", ["half-", "truths-ok"]),
        ("ace-ace-aceacec", ["ace-ace-", "aceacec"]),
        ("-aceacecacekkk", ["-aceaceca-", "cekkk"]),
        ("MMMMMMMM", ["MMMMM-", "MMM"]),
        ("ana@aceac.org", ["ana@", "aceac.org"]),
        ("https://ace.org/?an=a&be_e=c", ["https://", "ace.org/?", "an=a&be_", "e=c"]),
    ],
)
def test_a_word_longer_than_a_line_is_divided_at_a_mark_of_it_or_by_a_hyphen(
    word: str, lines: list[str]
) -> None:
    assert break_text(word, 100) == lines


@pytest.mark.parametrize("mark", "-/@_?&=")
def test_a_word_is_divided_after_any_mark_of_an_address(mark: str) -> None:
    assert break_text(f"aaaa{mark}aaaa", 60) == [f"aaaa{mark}", "aaaa"]


def test_a_mark_beyond_the_longest_line_divides_nothing() -> None:
    assert break_text(f"{'l' * 40}-llll-", 430) == [f"{'l' * 40}-", "llll-"]


def test_a_last_line_that_is_long_enough_may_be_of_any_length() -> None:
    lines = ["aaaaaaaaa", "aa aaaa", "aaaaaaa aa", "aa aaaaaaaaa"]
    assert break_text(" ".join(lines), 120) == lines
