"""The best of several draws of a line, by what a model that reads makes of their ink.

Draw number k of a line is drawn with the noise of choice k of the seed (`contract/noise.py`), from
where the line before has ended in all of them; so each can be had alone, and number 0 is the line
that is drawn where nothing is chosen.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from service.catalogue import Models
from service.engine.jobs import FinishReason
from service.errors import InvalidRequest, NotReady
from service.http.answers import Exchange
from service.ink.layout import Layout
from service.ink.letters import bases
from service.ink.line import InkEdge, InkPiece
from service.ink.pen import LinePen, strokes
from service.models import ServedModel
from service.state import Moment

Strokes = Sequence[NDArray[np.floating]]
# What a line is told to be at least: ink that cannot say its text at all has a probability of 0.
LEAST_LEGIBLE = -99.0
# Below, a line is called unreadable: nats a character.
UNREADABLE = -1.5
_DECIMALS = 4


class Judge(ServedModel, ABC):
    """A model that reads ink, and so can tell how legible it is."""

    @abstractmethod
    async def log_likelihoods(self, text: str, lines: Sequence[Strokes]) -> list[float]:
        """Of lines of strokes `(k, 2)` in px, y down, the logarithm of the probability that each
        says the text; -inf where it cannot. Raises what `Engine.submit` raises."""


@dataclass(frozen=True, slots=True)
class Best:
    """The best draw of a line: its number, all of its ink, and the log-probability of its text per
    character."""

    number: int
    piece: InkPiece
    legibility: float

    @property
    def readable(self) -> bool:
        """Whether it is as legible as a line has to be."""
        return self.legibility >= UNREADABLE


@dataclass(slots=True)
class _Draw:
    """All of one draw's ink, and how it ended."""

    offsets: list[NDArray[np.float32]] = field(default_factory=list)
    characters: list[NDArray[np.int64]] = field(default_factory=list)
    moment: Moment[InkEdge] | None = None
    finish_reason: FinishReason | None = None

    def take(self, piece: InkPiece) -> None:
        self.offsets.append(piece.offsets)
        self.characters.append(piece.characters)
        self.moment, self.finish_reason = piece.moment, piece.finish_reason

    def whole(self) -> InkPiece:
        characters = np.concatenate(self.characters)
        return InkPiece(
            self.finish_reason,
            self.moment,
            offsets=np.concatenate(self.offsets),
            characters=characters,
            character=int(characters[-1]) if len(characters) else 0,
        )


def judge_of(models: Models, name: str | None) -> Judge:
    """The judge of that name, or the only one. Raises `InvalidRequest` if there is none, and
    `NotReady` before it is."""
    judges = {model.name: model for model in models.of(Judge)}  # type: ignore[type-abstract]
    judge = judges.get(name) if name is not None else None
    if name is None and len(judges) == 1:
        (judge,) = judges.values()
    if judge is None:
        known = ", ".join(judges) or "none"
        raise InvalidRequest(
            f"best_of needs a model that reads ink, by its name if there are several; this service "
            f"has: {known}", "best_of" if name is None else "judge",
        )  # fmt: skip
    if not judge.engine.ready:
        raise NotReady(f"{judge.name}, which is to judge the lines, is not ready")
    return judge


async def best_of(exchange: Exchange[InkPiece], text: str, layout: Layout, judge: Judge) -> Best:
    """Wait for all draws of a line, and keep the one whose ink is likeliest to say its text."""
    draws = [_Draw() for _ in exchange.jobs]
    async for number, piece in exchange.pieces():
        draws[number].take(piece)
    pieces = [draw.whole() for draw in draws]
    # Marks of letters are composed, the same for all, and a reader may not know them.
    lines = [strokes(LinePen(layout, 0).move(piece.offsets)) for piece in pieces]
    scores = await judge.log_likelihoods(bases(text), lines)
    number = int(np.argmax(scores))  # the first of those that are alike
    legibility = round(max(scores[number] / len(text), LEAST_LEGIBLE), _DECIMALS)
    return Best(number, pieces[number], legibility)

