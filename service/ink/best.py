"""The best of several draws of a line, or of each word, by what a reader makes of their ink.

Draw number k is drawn with the noise of choice k of the seed (`contract/noise.py`), from where the
line before has ended in all of them; so each line can be had alone, and number 0 is the one that is
drawn where nothing is chosen. By words all draws go on from the best of the word before: a state is
a value, and a line whose words are of different draws is drawn as any other is.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.catalogue import Models
from service.engine.jobs import FinishReason
from service.errors import EngineFault, InvalidRequest, NotReady
from service.http.exchange import Exchange
from service.ink.curve import DECIMALS
from service.ink.layout import Layout
from service.ink.letters import bases
from service.ink.line import Begun, InkEdge, InkPiece
from service.ink.pen import LinePen, strokes
from service.ink.squeeze import Squeeze
from service.models import ServedModel
from service.state import Moment

Strokes = Sequence[NDArray[np.float64]]
# What a line is told to be at least: ink that cannot say its text at all has a probability of 0.
LEAST_LEGIBLE = -99.0
# Nats a character. Of 320 single draws Tesseract misread 0.69 of the characters of the 37 below it,
# and 0.36 of the others'.
UNREADABLE = -2.0
# A word that is shorter, with the space after it, is chosen together with the next: every choice
# costs what is drawn beyond its end, and waiting for the judge.
_SHORTEST_PART = 6
_PLACES = 4


class Judgement(NamedTuple):
    """The logarithm of the probability that ink says its text, -inf where it cannot; and the same
    of a reader that is less sure of itself, by which draws are compared."""

    log_likelihood: float
    rank: float


class Judge(ServedModel, ABC):
    """A model that reads ink, and so can tell how legible it is."""

    @abstractmethod
    async def judge(self, text: str, line: Strokes) -> Judgement:
        """What it makes of a line of strokes `(k, 2)` that is to say the text. Points are in line
        heights from the left end of the baseline, y up. Raises what `Engine.submit` raises."""


@dataclass(frozen=True, slots=True)
class Best:
    """The best draw of a line or of a part: its number, its ink, and the log-probability of the
    text up to its end per character."""

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
    begun: Begun | None = None

    def take(self, piece: InkPiece) -> None:
        self.offsets.append(piece.offsets)
        self.characters.append(piece.characters)
        self.moment, self.finish_reason = piece.moment, piece.finish_reason
        self.begun = piece.begun

    def whole(self) -> InkPiece:
        characters = np.concatenate(self.characters)
        return InkPiece(
            self.finish_reason,
            self.moment,
            offsets=np.concatenate(self.offsets),
            characters=characters,
            character=int(characters[-1]) if len(characters) else 0,
            begun=self.begun,
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
            f"best_of needs a model that reads ink, named by judge if there are several; this "
            f"service has: {known}", "best_of" if name is None else "judge",
        )  # fmt: skip
    if not judge.engine.ready:
        raise NotReady(f"{judge.name}, which is to judge the lines, is not ready")
    return judge


def only_judge(models: Models) -> Judge | None:
    """The judge, if there is just one and it is ready."""
    judges = models.of(Judge)  # type: ignore[type-abstract]
    return judges[0] if len(judges) == 1 and judges[0].engine.ready else None


def parts_of(text: str) -> list[int | None]:
    """Where the parts of a line end, whose words have a space between them: at the first letters
    of words, and at its end."""
    begins, ends = 0, list[int | None]()
    for place, (before, letter) in enumerate(pairwise(text), 1):
        if before == " " != letter and place - begins >= _SHORTEST_PART:
            ends.append(place)
            begins = place
    return [*ends, None]


async def best_of(
    exchange: Exchange[InkPiece],
    text: str,
    layout: Layout,
    line: int,
    judge: Judge,
    before: InkPiece | None = None,
    until: int | None = None,
) -> Best:
    """Wait for all draws of line number `line`, and keep the one whose ink, as the page shows it,
    ranks highest. Raises the error of a draw, and what `judge` raises.

    Or of its part up to the character `until`, which goes on from the ink `before`: one that has
    lost its way is then worse than any that has come to its end, and is not judged.
    """
    said = text[:until].rstrip()
    draws = [_Draw() for _ in exchange.jobs]
    scores: dict[int, asyncio.Task[Judgement]] = {}
    try:
        async with asyncio.TaskGroup() as judging, aclosing(exchange.pieces()) as pieces:
            async for number, piece in pieces:
                draws[number].take(piece)
                lost = before is not None and piece.finish_reason == "length"
                if piece.last and not lost:  # one is read while others are being drawn
                    ink = draws[number].whole()
                    shown = ink if before is None else joined(before, ink)
                    seen = partial(_in_line_heights, shown, text, layout, line)
                    # Marks of letters are composed, and a reader may not know them.
                    scored = _judged(judge, bases(said), seen)
                    scores[number] = judging.create_task(scored)
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
    if not scores:
        return Best(0, draws[0].whole(), LEAST_LEGIBLE)
    best = max(scores, key=lambda number: (scores[number].result().rank, -number))
    legibility = max(scores[best].result().log_likelihood / len(said), LEAST_LEGIBLE)
    return Best(best, draws[best].whole(), round(legibility, _PLACES))


async def _judged(judge: Judge, text: str, seen: Callable[[], Strokes]) -> Judgement:
    """Errors of the judge name it: a caller has named another model."""
    # It takes up to 3 ms, sixteen may be due at once, and others are being served meanwhile.
    line = await asyncio.to_thread(seen)
    try:
        return await judge.judge(text, line)
    except (EngineFault, NotReady) as error:
        raise type(error)(f"{judge.name}, which judges the lines: {error.message}") from error


def joined(before: InkPiece, after: InkPiece) -> InkPiece:
    """The ink of two parts of a line as that of one, which ends as the second does."""
    offsets = np.concatenate([before.offsets, after.offsets])
    characters = np.concatenate([before.characters, after.characters])
    return replace(after, offsets=offsets, characters=characters)


def _in_line_heights(ink: InkPiece, text: str, layout: Layout, line: int) -> Strokes:
    """Ink as a judge wants it."""
    points = LinePen(layout, line).move(ink.offsets)
    points[:, 0] = Squeeze(layout, text).place(points[:, 0], ink.characters)
    origin_px, height_px = np.array(layout.origin_px(line)), layout.line_height_px
    drawn = strokes(points.round(DECIMALS))
    return [(stroke - origin_px) * (1 / height_px, -1 / height_px) for stroke in drawn]
