"""Requests for handwriting as they arrive, and their checks."""

import math
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from contract.alphabets import LONGEST_TEXT
from service.http.fields import FLOAT32, UNICODE, WHOLE, Count, RequestBody, WorkRequest
from service.ink.breaking import DIVIDES, SHORTEST_LINE
from service.ink.layout import MM_PER_PX, Layout, Paper
from service.ink.line import USUAL_POINTS_PER_CHARACTER

Format = Literal["svg", "json", "inkml", "png", "pdf", "hpgl", "gcode", "plotter-svg"]
Coordinate = Annotated[float, Field(ge=-1e6, le=1e6), FLOAT32]
Place = Annotated[list[Coordinate], Field(min_length=2, max_length=2, fail_fast=True)]
Stroke = Annotated[list[Place], Field(min_length=1, fail_fast=True)]
PenPoint = Annotated[list[Coordinate], Field(min_length=3, max_length=3)]  # x, y, up
LineHeight = Annotated[float, Field(ge=16, le=400), FLOAT32]


def no_more_than(most_strokes: int, most_points: int) -> BeforeValidator:
    """Refuses longer ink before any point is looked at."""

    def check(strokes: Any) -> Any:
        if isinstance(strokes, list):
            points = sum(len(stroke) for stroke in strokes if isinstance(stroke, list))
            if len(strokes) > most_strokes or points > most_points:
                raise ValueError(
                    f"{len(strokes)} strokes of {points} points; at most {most_strokes} of "
                    f"{most_points}"
                )
        return strokes

    return BeforeValidator(check)


# Priming reads all of it before the first stroke, and a hand shows in a few words.
_HandStrokes = Annotated[list[Stroke], Field(min_length=1, fail_fast=True), no_more_than(200, 8000)]


class StrokesWithText(RequestBody):
    """A person's strokes in px, y down, and what they say."""

    strokes: _HandStrokes
    text: Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT), UNICODE]


class StyleRequest(StrokesWithText):
    """`POST /v1/styles`: a hand to be kept."""

    model: str | None = None


class PageSize(RequestBody):
    """A sheet of paper, in mm."""

    width: Annotated[float, Field(ge=43, le=1000)]
    height: Annotated[float, Field(ge=30, le=1000)]


PAGES = {
    "a4": PageSize(width=210, height=297),
    "a5": PageSize(width=148, height=210),
    "letter": PageSize(width=215.9, height=279.4),
}
_SHEET_MARGIN_MM = 15.0
_LEAST_ROOM_PX = 160  # between the margins, as a page has at least
_CRUMB_PX = 0.01  # what mm of a few digits lack of a room in px; no ink is told finer
_LAYS_OUT = {"width", "line_height", "page", "margin"}
# Wide characters of a line in the widest hand, where the page is as it usually is.
_SHORTEST_USUAL = 5


class PageOptions(RequestBody):
    """The page that is written on; lengths in px, but those of a sheet in mm."""

    width: Annotated[int, Field(ge=160, le=4096), WHOLE] = 800
    line_height: LineHeight = 64.0
    stroke_width: Annotated[float, Field(ge=0.25, le=40), FLOAT32] = 2.0
    thinning: Annotated[
        float,
        Field(ge=0, le=0.9, description="of a stroke's width, where the pen is fast"),
        FLOAT32,
    ] = 0.0
    wander: Annotated[
        float,
        Field(ge=0, le=0.2, description="of the baseline, in line heights (root mean square)"),
        FLOAT32,
    ] = 0.0
    color: Annotated[str, Field(pattern=r"^#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$")] = "#1b2a49"
    page: Annotated[
        Literal["a4", "a5", "letter"] | PageSize | None,
        Field(description="sheets of this size, width and height in mm"),
    ] = None
    margin: Annotated[
        float | None, Field(ge=0, le=200, description="mm; half a line if left out, 15 on a sheet")
    ] = None
    paper: Paper = "plain"

    @model_validator(mode="after")
    def _has_room(self) -> Self:
        if self.page is not None and "width" in self.model_fields_set:
            raise ValueError("page has a width of its own; leave width out")
        layout = self.layout(1.0, 1.0)
        room_px = layout.width_px - 2 * layout.margin_px
        high_px = (layout.page_height_px or math.inf) - 2 * layout.margin_px
        given = self.page is not None or self.margin is not None
        lacks_px = max(_LEAST_ROOM_PX - room_px, self.line_height - high_px)
        if given and lacks_px > _CRUMB_PX:
            # Rounded up they might be what there has to be.
            high = "" if math.isinf(high_px) else f" and {max(high_px, 0) // 1:.0f} of the height"
            raise ValueError(
                f"the margins leave {max(room_px, 0) // 1:.0f} px of the width{high}; there have "
                f"to be {_LEAST_ROOM_PX} and a line of {self.line_height:g}"
            )
        return self

    def layout(self, units_per_line: float, units_per_character: float) -> Layout:
        """The page for ink of that size."""
        page = PAGES[self.page] if isinstance(self.page, str) else self.page
        margin_mm = _SHEET_MARGIN_MM if page and self.margin is None else self.margin
        return Layout(
            width_px=page.width / MM_PER_PX if page else self.width,
            page_height_px=page.height / MM_PER_PX if page else None,
            given_margin_px=None if margin_mm is None else margin_mm / MM_PER_PX,
            paper=self.paper,
            line_height_px=self.line_height,
            stroke_width_px=self.stroke_width,
            thinning=self.thinning,
            wander=self.wander,
            color=self.color,
            units_per_line=units_per_line,
            units_per_character=units_per_character,
        )


MOST_CHARACTERS = 2000


class HandwritingRequest(PageOptions, WorkRequest):
    """`POST /v1/handwriting`."""

    model: str | None = None
    text: Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS), UNICODE]
    bias: Annotated[float, Field(ge=0, le=5), FLOAT32] = 1.0
    style: str | StrokesWithText | None = None
    best_of: Annotated[
        int,
        Field(ge=1, le=16, description="draws of each line, the most legible of which is kept"),
        WHOLE,
    ] = 1
    best_by: Annotated[
        Literal["line", "word"], Field(description="whether whole lines are chosen, or each word")
    ] = "line"
    candidate: Annotated[int, Field(ge=0, le=15, description="draw this one alone"), WHOLE] = 0
    judge: Annotated[str | None, Field(description="the model that reads them")] = None
    first_line: Count = 0
    format: Format | None = None
    ground: Annotated[Literal["white", "transparent"], Field(description="of a PNG")] = "white"

    @model_validator(mode="after")
    def _consistent(self) -> "HandwritingRequest":
        if self.resume and not self.as_points:
            raise ValueError(f"resume goes on with json; {self.format} draws all lines at once")
        if self.return_state and not self.stream and self.format != "json":
            raise ValueError("return_state needs format json, which has a place for it")
        if self.style is not None and self.state is not None:
            raise ValueError("style and state are both the hand to write in; give one of them")
        if self.best_of == 1 and self.judge is not None:
            raise ValueError("judge is for best_of; one draw is not judged")
        if self.best_of == 1 and self.best_by != "line":
            raise ValueError("best_by is for best_of; of one draw nothing is chosen")
        if self.best_of > 1 and self.candidate:
            raise ValueError("candidate is one draw alone; best_of chooses among several")
        return self

    @property
    def as_points(self) -> bool:
        """Whether the answer is of lines, each by itself, and no drawing of them all."""
        return self.format in (None, "json")

    @property
    def choices(self) -> range:
        """The numbers of the draws that are made of each line."""
        first = self.candidate
        return range(first, first + self.best_of)


def least(body: dict[str, Any]) -> tuple[str | None, int] | None:
    """The model a body names and the fewest steps its first line can be expected to take, by what
    is plain to see; None where that is nothing, or not what it should be."""
    name, text, style = body.get("model"), body.get("text"), body.get("style")
    if not isinstance(text, str) or not text.isascii() or "first_line" in body:
        return None
    if not isinstance(name, str | None) or not isinstance(style, str | None):
        return None
    word = next(iter(text.split()), "")
    # Nobody's lines are too short for this word, or else it is divided, maybe after its first mark.
    shortest = SHORTEST_LINE if _LAYS_OUT & body.keys() else _SHORTEST_USUAL
    divided = len(word) > shortest
    at_a_mark = divided and not set(DIVIDES).isdisjoint(word)
    characters = min(len(word), SHORTEST_LINE if at_a_mark else shortest)
    return (name, USUAL_POINTS_PER_CHARACTER * characters) if characters else None
