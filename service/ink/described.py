"""What a request for ink or for a hand is answered with, as `/openapi.json` tells it."""

from dataclasses import dataclass

from service.http.described import EXACTLY


@dataclass(frozen=True, slots=True)
class DrawnLine:
    """A line of the page; its strokes are `[x, y]` in px."""

    __pydantic_config__ = EXACTLY

    text: str
    strokes: list[list[tuple[float, float]]]
    finish_reason: str


@dataclass(frozen=True, slots=True)
class DrawnUsage:
    """Characters asked for, points drawn."""

    __pydantic_config__ = EXACTLY

    characters: int
    points: int


@dataclass(frozen=True, slots=True)
class Drawn:
    """A page as JSON; `state` if it was asked for."""

    __pydantic_config__ = EXACTLY

    id: str
    object: str
    created: int
    model: str
    system_fingerprint: str
    seed: int
    style: str | None
    width: int
    height: int
    lines: list[DrawnLine]
    usage: DrawnUsage
    state: str | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """A hand as a token, and what it looks like."""

    __pydantic_config__ = EXACTLY

    style: str
    slant_degrees: float
    size: float
    speed: float


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored hand."""

    __pydantic_config__ = EXACTLY

    id: str
    model: str
    description: str
    slant_degrees: float
    size: float
    speed: float
    preview: str


@dataclass(frozen=True, slots=True)
class StoredList:
    """All stored hands."""

    __pydantic_config__ = EXACTLY

    object: str
    data: list[Stored]
