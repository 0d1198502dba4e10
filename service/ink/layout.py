"""Where lines of handwriting stand on a page, and how a text is broken into lines."""

import math
import textwrap
from dataclasses import dataclass

from contract.alphabets import LONGEST_LINE

_SHORTEST_LINE = 8  # characters; narrower pages get lines that may cross their right edge
_MARGIN = 0.5  # of a line height
_ABOVE_BASELINE = 0.7  # of a line height; the rest is for descenders
_ROOM = 0.9  # of the width between margins: no hand keeps to its average advance


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A page, and how large the model's units are on it.

    `units_per_line` model units are one line height; a character is `units_per_character` wide on
    average. `color` is a CSS hex colour.
    """

    width_px: int
    line_height_px: float
    stroke_width_px: float
    color: str
    units_per_line: float
    units_per_character: float

    @property
    def px_per_unit(self) -> float:
        """The length of a model unit on the page."""
        return self.line_height_px / self.units_per_line

    @property
    def margin_px(self) -> float:
        """The distance of the lines from every edge of the page."""
        return self.line_height_px * _MARGIN

    @property
    def characters_per_line(self) -> int:
        """The longest line that may be asked of the model, in characters."""
        room_px = (self.width_px - 2 * self.margin_px) * _ROOM
        characters = math.floor(room_px / (self.units_per_character * self.px_per_unit))
        return min(max(characters, _SHORTEST_LINE), LONGEST_LINE)

    def height_px(self, lines: int) -> int:
        """The height of a page of `lines` lines."""
        return math.ceil(2 * self.margin_px + lines * self.line_height_px)

    def origin_px(self, line: int) -> tuple[float, float]:
        """The left end of the baseline of line number `line`, from 0; y points down."""
        return self.margin_px, self.margin_px + (line + _ABOVE_BASELINE) * self.line_height_px


def break_text(text: str, longest: int) -> list[str]:
    """The lines of a text, none longer than `longest` characters.

    Lines end where the text's own do and otherwise at spaces; a word longer than a line is split.
    Spaces that follow one another become one, blank lines become empty ones.
    """
    lines: list[str] = []
    for paragraph in text.splitlines():
        words = " ".join(paragraph.split())
        # A hyphen is the writer's: a line that ends with it would read as a divided word.
        wrapped = textwrap.wrap(words, longest, break_on_hyphens=False) or [""]
        # textwrap leaves a space at the end of a full line when a word to be split follows.
        lines += [line.rstrip() for line in wrapped]
    return lines
