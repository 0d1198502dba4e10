"""Where lines of handwriting stand on a page, and how a text is broken into lines."""

import math
from dataclasses import dataclass
from typing import Literal

from contract.alphabets import LONGEST_LINE

MM_PER_PX = 25.4 / 96  # that of CSS
SHORTEST_LINE = 2  # characters: one and a hyphen
_MARGIN = 0.5  # of a line height, unless it is given
_ABOVE_BASELINE = 0.7  # of a line height; the rest is for descenders
# Of the width between margins: no hand keeps to its average advance, and what few lines are longer
# still ends within the margin.
_ROOM = 0.93
_CRUMB = 1e-9  # of a line: what rounding takes from a page that is a whole number of them high
_LAST_LINE = 3  # a last line shorter than a third of the others looks lost

Paper = Literal["plain", "ruled", "squared"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A page, and how large the model's units are on it.

    `units_per_line` model units are one line height; a character is `units_per_character` wide on
    average. `color` is a CSS hex colour. A sheet of `page_height_px` has further ones below it as
    the text needs them; without, one page is as high as its lines. `given_margin_px` is that of
    the request, if it has one. `thinning` is the share of the stroke's width that speed can take
    (`service/ink/nib.py`), `wander` how far a baseline strays (`service/ink/wander.py`).
    """

    width_px: float
    line_height_px: float
    stroke_width_px: float
    color: str
    units_per_line: float
    units_per_character: float
    page_height_px: float | None = None
    given_margin_px: float | None = None
    paper: Paper = "plain"
    thinning: float = 0.0
    wander: float = 0.0

    @property
    def px_per_unit(self) -> float:
        """The length of a model unit on the page."""
        return self.line_height_px / self.units_per_line

    @property
    def margin_px(self) -> float:
        """The distance of the lines from every edge of the page."""
        given = self.given_margin_px
        return self.line_height_px * _MARGIN if given is None else given

    def sheets(self, lines: int) -> list[range]:
        """The numbers of the lines on each sheet that `lines` lines take."""
        if self.page_height_px is None:
            return [range(lines)]
        count = self._lines_per_sheet
        return [range(i, min(i + count, lines)) for i in range(0, lines, count)]

    @property
    def characters_per_line(self) -> int:
        """The longest line that may be asked of the model, in characters; fewer than a text can be
        broken into where the page has no room."""
        room_px = (self.width_px - 2 * self.margin_px) * _ROOM
        characters = math.floor(room_px / (self.units_per_character * self.px_per_unit))
        return min(characters, LONGEST_LINE)

    def height_px(self, lines: int) -> float:
        """The height of a page of `lines` lines, or of all sheets that they take."""
        if self.page_height_px is None:
            return math.ceil(2 * self.margin_px + lines * self.line_height_px)
        return len(self.sheets(lines)) * self.page_height_px

    def sheet_px(self, lines: int) -> float:
        """The height of one sheet of those that `lines` lines take."""
        return self.height_px(lines) / len(self.sheets(lines))

    def origin_px(self, line: int) -> tuple[float, float]:
        """The left end of the baseline of line number `line`, from 0; y points down."""
        top_px = self.margin_px
        if self.page_height_px is not None:
            sheet, line = divmod(line, self._lines_per_sheet)
            top_px += sheet * self.page_height_px
        return self.margin_px, top_px + (line + _ABOVE_BASELINE) * self.line_height_px

    @property
    def _lines_per_sheet(self) -> int:
        assert self.page_height_px is not None
        room_px = self.page_height_px - 2 * self.margin_px
        return max(1, math.floor(room_px / self.line_height_px + _CRUMB))


def break_text(text: str, longest: int) -> list[str]:
    """The lines of a text, none longer than `longest` characters, `SHORTEST_LINE` or
    more.

    Lines end where the text's own do and otherwise at spaces, as evenly as the fewest lines can be
    filled; a word longer than a line is divided, by its own hyphens if it has any. Spaces that
    follow one another become one, blank lines become empty ones.
    """
    lines: list[str] = []
    for paragraph in text.splitlines():
        words: list[str] = []
        for whole in paragraph.split():
            word = whole
            while len(word) > longest:
                part, word = _divide(word, longest)
                lines += _fill([*words, part], longest)
                words = []
            words.append(word)
        lines += _fill(words, longest)
    return lines


def _divide(word: str, longest: int) -> tuple[str, str]:
    """A part of a word that ends a line, and the rest."""
    place = word.rfind("-", 0, longest) + 1
    if place > 1:
        return word[:place], word[place:]
    return word[: longest - 1] + "-", word[longest - 1 :]


def _fill(words: list[str], longest: int) -> list[str]:
    """The fewest lines, and of those the ones whose room left over has the least sum of squares;
    the last may be short."""
    # For the first n words: how many lines they take, the squares, and where the last one begins.
    best = [(0, 0, 0)]
    for end in range(1, len(words) + 1):
        wanted = longest if end < len(words) else longest // _LAST_LINE
        ways, length = [], -1
        for start in reversed(range(end)):
            length += 1 + len(words[start])
            if length > longest:
                break
            count, squares, _ = best[start]
            ways.append((count + 1, squares + max(wanted - length, 0) ** 2, start))
        best.append(min(ways))
    lines, end = [], len(words)
    while end:
        start = best[end][2]
        lines.append(" ".join(words[start:end]))
        end = start
    return lines[::-1] or [""]
