"""What a request for ink or for a hand is answered with, as `/openapi.json` tells it."""

from service.http.described import Answer, AnswerHead


class DrawnLine(Answer):
    """A line of the page; its strokes are `[x, y]` in px."""

    text: str
    strokes: list[list[tuple[float, float]]]
    finish_reason: str


class DrawnUsage(Answer):
    """Characters asked for, points drawn."""

    characters: int
    points: int


class Drawn(AnswerHead):
    """A page as JSON; `state` if it was asked for."""

    style: str | None
    width: int
    height: int
    lines: list[DrawnLine]
    usage: DrawnUsage
    state: str | None = None


class Looks(Answer):
    """What a hand looks like: its lean, its size in units of the model, and units per point."""

    slant_degrees: float
    size: float
    speed: float


class Made(Looks):
    """A hand as a token."""

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
