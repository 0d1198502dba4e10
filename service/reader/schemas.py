"""Requests for reading as they arrive, and their checks."""

from typing import Annotated

from pydantic import Field, TypeAdapter, model_validator

from service.http.fields import UNICODE, RequestBody
from service.ink.schemas import LineHeight, PenPoint, Place, Stroke, no_more_than
from service.state import StatePolicy

MOST_POINTS = 20_000
_KNOWS_ITS_LINE = "state knows its line: line_height and origin are for its first ink"
Strokes = Annotated[
    list[Stroke], Field(min_length=1, fail_fast=True), no_more_than(1000, MOST_POINTS)
]
STROKES: TypeAdapter[list[list[list[float]]]] = TypeAdapter(Strokes)


class ReadRequest(RequestBody):
    """`POST /v1/read`: ink in px, y down, as strokes or as an InkML document.

    Where its lines end, and slope, size and baseline of each, are judged by the ink itself; unless
    `line_height` says that all of it stands on one ruled line, and `origin` where the left end of
    that line's baseline is.
    """

    model: str | None = None
    strokes: Strokes | None = None
    inkml: Annotated[str, Field(max_length=1_000_000), UNICODE] | None = None
    line_height: LineHeight | None = None
    origin: Place | None = None
    state: str | None = None
    state_policy: StatePolicy = "exact"
    return_state: bool = False
    deadline_s: float | None = Field(
        None, gt=0, description="seconds it may take, never more than the service allows"
    )

    @model_validator(mode="after")
    def _consistent(self) -> "ReadRequest":
        if (self.strokes is None) == (self.inkml is None):
            raise ValueError("the ink is either strokes or inkml; give one of them")
        if self.state is not None and (self.line_height or self.origin):
            raise ValueError(_KNOWS_ITS_LINE)
        if self.origin is not None and self.line_height is None:
            raise ValueError("origin is a place on a ruled line; give its line_height")
        if self.return_state and self.state is None and self.line_height is None:
            raise ValueError(
                "return_state needs line_height: more ink has to stand on a known line"
            )
        return self


class ReaderOpening(RequestBody):
    """The first message to a reader: the ruled line that will be written on."""

    model: str
    state: str | None = None
    state_policy: StatePolicy = "exact"
    line_height: LineHeight = 64.0
    origin: Place | None = None

    @model_validator(mode="after")
    def _consistent(self) -> "ReaderOpening":
        if self.state is not None and self.model_fields_set & {"line_height", "origin"}:
            raise ValueError(_KNOWS_ITS_LINE)
        return self


class ReaderSaid(RequestBody):
    """Any message after it: pen points `[x, y, up]` in px, one or several."""

    point: PenPoint | None = None
    points: (
        Annotated[list[PenPoint], Field(min_length=1, max_length=4096, fail_fast=True)] | None
    ) = None
