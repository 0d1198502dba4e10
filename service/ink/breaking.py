"""How a text is broken into lines of handwriting."""

from itertools import accumulate, takewhile

from contract.alphabets import LONGEST_LINE
from service.ink.letters import apart

# Widths are in so many parts of the average character of English text, whole numbers.
AVERAGE = 10
# How wide the shipped pen writes a character: least squares over 3,072 lines in all stored hands.
_CHARACTERS = {
    4: "`|{}^,.;:!'()",
    6: "ijl1",
    9: " ostxI0",
    11: "bdnuTU69",
    12: "ghqyzFGJLQVZ2357",
    14: "pABCDHXYW",
    16: "mwEKMNR",
}
_WIDTHS = {character: width for width, every in _CHARACTERS.items() for character in every}
SHORTEST_LINE = 2  # characters: one and a hyphen
# After these a word is divided without a hyphen, which in an address would be read as part of it.
DIVIDES = "-/@_?&="
LEAST_ROOM = SHORTEST_LINE * AVERAGE
_LAST_LINE = 3  # a last line shorter than a third of the others looks lost


def width_of(character: str) -> int:
    """How wide a character is written, in `AVERAGE`ths of the average one."""
    return _WIDTHS.get(apart(character)[0], AVERAGE)


def break_text(text: str, room: int) -> list[str]:
    """The lines of a text, none of more than `LONGEST_LINE` characters nor wider than a room of
    `LEAST_ROOM` or more, as `width_of` has it; but one of a wide character may be.

    Lines end where the text's own do and otherwise at spaces, as evenly as the fewest lines can be
    filled, but that the last may be short; a word longer than a line is divided, after one of
    `DIVIDES` if it has any and otherwise by a hyphen. Spaces that follow one another become one,
    blank lines become empty ones.
    """
    lines: list[str] = []
    for paragraph in text.splitlines():
        words: list[str] = []
        for whole in paragraph.split():
            word = whole
            while not _fits(word, room):
                part, word = _divide(word, room)
                lines += _fill([*words, part], room)
                words = []
            words.append(word)
        lines += _fill(words, room)
    return lines


def _width(text: str) -> int:
    return sum(map(width_of, text))


def _fits(word: str, room: int) -> bool:
    return len(word) <= LONGEST_LINE and _width(word) <= room


def _divide(word: str, room: int) -> tuple[str, str]:
    """A part of a word that ends a line, and the rest."""
    most = _most(word[:LONGEST_LINE], room)
    place = max(word.rfind(mark, 0, most) for mark in DIVIDES) + 1
    if place > 1:
        return word[:place], word[place:]
    longest = _most(word[: LONGEST_LINE - 1], room - width_of("-"))
    return f"{word[:longest]}-", word[longest:]


def _most(word: str, room: int) -> int:
    """How many characters from the beginning of a word there is room for; one at least."""
    reached = accumulate(map(width_of, word))
    return max(sum(1 for _ in takewhile(lambda width: width <= room, reached)), 1)


def _fill(words: list[str], room: int) -> list[str]:
    """The fewest lines, and of those the ones whose room left over has the least sum of squares;
    the last may be short."""
    widths, space = [_width(word) for word in words], width_of(" ")
    # For the first n words: how many lines they take, the squares, and where the last one begins.
    best = [(0, 0, 0)]
    for end in range(1, len(words) + 1):
        wanted = room if end < len(words) else room // _LAST_LINE
        ways: list[tuple[int, int, int]] = []
        width, length = -space, -1
        for start in reversed(range(end)):
            width += space + widths[start]
            length += 1 + len(words[start])
            if ways and (width > room or length > LONGEST_LINE):
                break
            count, squares, _ = best[start]
            ways.append((count + 1, squares + max(wanted - width, 0) ** 2, start))
        best.append(min(ways))
    lines, end = [], len(words)
    while end:
        start = best[end][2]
        lines.append(" ".join(words[start:end]))
        end = start
    return lines[::-1] or [""]
