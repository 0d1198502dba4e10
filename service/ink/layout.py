"""Where lines of handwriting stand on a page."""

import math
from dataclasses import dataclass
from typing import Literal

from service.ink.breaking import AVERAGE

MM_PER_PX = 25.4 / 96  # that of CSS
_MARGIN = 0.5  # of a line height, unless it is given
_ABOVE_BASELINE = 0.7  # of a line height; the rest is for descenders
# Of the width between margins: no hand keeps to its average advance, and what few lines are longer
# still ends within the margin.
_ROOM = 0.93
_CRUMB = 1e-9  # of a line: what rounding takes from a page that is a whole number of them high

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
    def room(self) -> int:
        """The room of a line, as `width_of` has it; less than a text can be broken into where the
        page has none."""
        room_px = (self.width_px - 2 * self.margin_px) * _ROOM
        return math.floor(AVERAGE * room_px / (self.units_per_character * self.px_per_unit))

    def width_px_of(self, room: int) -> float:
        """The least width between the margins that has such a room."""
        return room / AVERAGE * self.units_per_character * self.px_per_unit / _ROOM

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
