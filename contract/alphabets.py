"""The symbols of text and of ink, and the limits that go with them.

Text is bytes. Ink is printable ASCII, numbered from 1; symbol 0 is the end of a text.
"""

VOCABULARY = 256
# A text begins as if a line had just ended: newline is the byte that stands before the first one.
START_TOKEN = 10

ALPHABET = "".join(map(chr, range(32, 127)))
END = 0
# Symbols of a text in the window of a pen, the end included.
WINDOW_SYMBOLS = 64
# Characters of a line of ink: read in training, primed with, or followed online. What the window
# leaves behind, a character and a space, has room beside it.
LONGEST_TEXT = 60
# Characters of a line that is asked for: lines the pen learned from are hardly longer.
LONGEST_LINE = 44


class UnknownCharacter(ValueError):
    """A character that is not in the alphabet, and its `place` in the text."""

    def __init__(self, character: str, place: int) -> None:
        super().__init__(f"{character!r} is not in the alphabet, which is printable ASCII")
        self.character, self.place = character, place


def encode(text: str, alphabet: str = ALPHABET) -> list[int]:
    """Characters as symbols of ink. Raises `UnknownCharacter` for the first that is none."""
    numbers = {character: number for number, character in enumerate(alphabet, start=1)}
    for place, character in enumerate(text):
        if character not in numbers:
            raise UnknownCharacter(character, place)
    return [numbers[character] for character in text]
