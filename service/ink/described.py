"""What a request for ink or for a hand is answered with, as `/openapi.json` tells it."""

from typing import Annotated, Any

from pydantic import Field

from service.http.described import Answer, AnswerHead

_Pair = Annotated[list[float], Field(min_length=2, max_length=2)]
PenPoint = Annotated[list[float], Field(min_length=3, max_length=3)]


class DrawnLine(Answer):
    """A line of the page; its strokes are `[x, y]` in px. With `best_of` how legible it is, the
    log-probability of a character, and the number of its draw, or of the draws of its parts."""

    text: str
    strokes: list[list[_Pair]]
    finish_reason: str
    legibility: float | None = None
    candidate: int | None = None
    candidates: list[int] | None = None


class DrawnUsage(Answer):
    """Characters asked for, points drawn."""

    characters: int
    points: int


class PageHead(AnswerHead):
    """The page, or all of its `pages` below one another; lengths in px."""

    style: str | None
    width: float
    height: float
    pages: int | None = None


class Drawn(PageHead):
    """A page as JSON; `state` if it was asked for."""

    lines: list[DrawnLine]
    usage: DrawnUsage
    state: str | None = None


class PageBegun(PageHead):
    """The first event of a stream: the page, and the text of its lines."""

    stroke_width: float
    thinning: float
    color: str
    lines: list[str]
    resume: dict[str, Any] | None = None


class Points(Answer):
    """Ink of a line, `[x, y, up]` each, and the character that is being written."""

    line: int
    points: list[PenPoint]
    character: int


class LineEnded(Answer):
    """The end of a line, with `best_of` how legible it is and of which draw or draws."""

    line: int
    finish_reason: str
    legibility: float | None = None
    candidate: int | None = None
    candidates: list[int] | None = None
    resume: dict[str, Any] | None = None


class PageEnded(Answer):
    """The end of the page; `state` if it was asked for, and `drawing` if a format was."""

    usage: DrawnUsage
    state: str | None = None
    drawing: str | None = None


class Gaussian(Answer):
    """One of a mixture, in px."""

    weight: float
    mean: _Pair
    sigma: _Pair
    rho: float


class Mixture(Answer):
    """Of the point that comes next, heaviest first; and how likely the pen leaves the paper
    there."""

    pen_up: float
    mixture: list[Gaussian]
    character: int
    step: int


class PointsWritten(Answer):
    """Points of the model's own, `[x, y, up]`; whether the text has ended with the last."""

    points: list[PenPoint]
    ended: bool
    step: int


class Looks(Answer):
    """What a hand looks like: its lean, its size in units of the model, and units per point."""

    slant_degrees: float
    size: float
    speed: float


class Made(Looks):
    """A hand as a token, of the model and runtime that take it."""

    model: str
    system_fingerprint: str
    style: str


class Stored(Looks):
    """A stored hand."""

    id: str
    model: str
    description: str
    preview: str


class StoredList(Answer):
    """All stored hands."""

    object: str
    data: list[Stored]
