"""Hands to write in: one made up, a stored style, a token, or a person's own strokes.

Every one of them ends up as a `Moment` of the handwriting model, and nothing of it is kept here.
"""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from math import floor

import numpy as np

from contract.ink import InkUnits
from contract.strokes import LONGEST_OFFSET, offsets
from contract.strokes import measure as measure_strokes
from service.engine.given import GivenSteps, run_steps
from service.errors import InvalidRequest, StateMismatch, shown
from service.http import record
from service.http.exchange import Exchange
from service.http.waits import turns
from service.ink.letters import require_line, written
from service.ink.line import InkEdge, InkLine, InkPiece, at_end, hand_after, row_of
from service.ink.measure import Measures, measure
from service.ink.model import InkModel
from service.ink.schemas import StrokesWithText
from service.ink.upright import upright
from service.state import Moment, StatePolicy

# The style of a page whose first line makes up its hand.
MADE_UP = "made-up"
# How wide the model writes a character after ink of some advance, in units: the line through 11
# writers it had not learned from, at bias 1 (correlation 0.91).
_ADVANCE, _ADVANCE_OF_INK = 2.34, 0.34
# How wide the shipped pen writes a character in a hand that it makes up, as a share of what its
# writers' had: so much however neat it is, and so much more where it is as untidy as they were.
_NEAT, _UNTIDY = 0.82, 0.16
_STEEPEST = 1.0  # a caller says that it is a line of writing, however the tablet lay
# Fewer, and there is no letter to be seen in them.
_LEAST_POINTS_PER_CHARACTER = 2.0


async def hand_in(
    model: InkModel, style: str | StrokesWithText | None, seed: int, policy: StatePolicy = "exact"
) -> Moment[InkEdge]:
    """The hand a request asks for, at the beginning of its randomness.

    Raises `InvalidRequest` for a style that is neither stored nor a token, or unfit strokes, and
    `StateMismatch` for a token of another model.
    """
    if style is None or style == MADE_UP:
        return model.fresh(seed)
    if isinstance(style, StrokesWithText):
        moment, _ = await read_strokes(model, style)
    elif style in model.styles:
        moment = model.styles[style]
    else:
        moment = _token(model, style, policy)
    return replace(moment, seed=seed, choice=0, drawn=0)


def by_seed(model: InkModel, seed: int) -> str:
    """The style of a page that asks for none: one of the stored hands, if the model has any."""
    hands = [*model.styles] or [MADE_UP]
    return hands[seed % len(hands)]


def advance_in(hand: Moment[InkEdge], units: InkUnits, bias: float) -> float:
    """How wide the model writes a character on average, in units: what is known of the hand, or,
    of one that is made up, what such hands have at that bias."""
    if hand.edge.advance is not None:
        return hand.edge.advance
    untidy = 1 / ((1 + bias) * (1 + bias))
    return units.units_per_character * (_NEAT + _UNTIDY * untidy)


async def read_strokes(
    model: InkModel, own: StrokesWithText, within: str = "style."
) -> tuple[Moment[InkEdge], Measures]:
    """The hand that wrote these strokes: the state after reading them with their text; `within` is
    what comes before the names of its fields."""
    name = f"{within}text"
    text = " ".join(written(own.text, model.manifest, name).split())
    if not text:
        raise InvalidRequest(f"{name} is empty", name.partition(".")[0])
    require_line(text, name)
    prepared = partial(offsets_of, own.strokes, text, f"{within}strokes")
    known = await turns().beside(prepared)
    start = model.fresh(0)
    steps = {
        "forced": known,
        "force": np.ones(len(known), bool),
        "uniform": np.full(len(known), 0.5, np.float32),
        "normal": np.zeros((len(known), 2), np.float32),
    }
    row = row_of(text, start.edge, model.manifest, bias=0.0)
    job = GivenSteps(start.state, row, steps, wants_state=True)
    try:
        await run_steps(model.engine, [job])
    finally:
        record.current().pay(len(known) - job.steps_wanted())
    hand = at_end(hand_after(start, text, known, job.state, drawn=0))
    looks = measure(known, len(text))
    advance = _ADVANCE + _ADVANCE_OF_INK * looks.units_per_character
    return replace(hand, edge=hand.edge.model_copy(update={"advance": advance})), looks


def offsets_of(
    strokes: Sequence[Sequence[Sequence[float]]], text: str, name: str = "style.strokes"
) -> np.ndarray:
    """Strokes in px, y down, that say `text`, prepared as training's were: a source of one line.

    Raises `InvalidRequest` for ink that cannot be the text, by its name: none, or far too little.
    """
    param = name.partition(".")[0]
    line = measure_strokes(upright(strokes), text, _STEEPEST)
    if line is None:
        raise InvalidRequest(f"{name} has no line in it", param)
    if line.points_per_character < _LEAST_POINTS_PER_CHARACTER:
        points = floor(10 * line.points_per_character) / 10  # rounded up it might be the limit
        raise InvalidRequest(
            f"{name} has {points:.1f} points a character that move; "
            f"a pen makes {_LEAST_POINTS_PER_CHARACTER:.0f} or more", param,
        )  # fmt: skip
    known = offsets(line, line.points_per_character, line.size)
    # What training would leave out as a jump of the tablet, a caller's page may well have.
    np.clip(known[:, :2], -LONGEST_OFFSET, LONGEST_OFFSET, out=known[:, :2])
    return known


async def look(model: InkModel, style: str, text: str) -> Measures:
    """What a stored hand looks like, by the ink it writes: neat, and always the same."""
    exchange: Exchange[InkPiece] = Exchange(streamed=False)
    line = InkLine(text, model.styles[style], model.manifest, exchange.sender(), bias=1.0)
    exchange.jobs.append(line)
    exchange.submit(model.engine)
    async with aclosing(exchange.pieces()) as pieces:
        ink = [piece.offsets async for _, piece in pieces]
    return measure(np.concatenate(ink), len(text))


def from_token(
    model: InkModel, token: str, seed: int | None, policy: StatePolicy
) -> Moment[InkEdge]:
    """The hand in a state token. Raises what `StateCodec.decode` raises, and `InvalidRequest` for
    the middle of a line."""
    return _between_lines(model.codec.go_on(token, seed, policy), "state")


def _token(model: InkModel, style: str, policy: StatePolicy) -> Moment[InkEdge]:
    try:
        moment = model.codec.go_on(style, None, policy)
    except StateMismatch as error:
        raise StateMismatch(error.message.replace("state", "style", 1), "style") from error
    except InvalidRequest as error:
        known = ", ".join(model.styles) or "none"
        raise InvalidRequest(
            f"style is {shown(style)}; it must be {MADE_UP}, a token of this service or one of: "
            f"{known}",
            "style",
        ) from error
    return _between_lines(moment, "style")


def _between_lines(moment: Moment[InkEdge], param: str) -> Moment[InkEdge]:
    if moment.edge.ended:
        raise InvalidRequest(
            f"{param} is of a text that has ended in /v1/online, and nothing goes on from there; a "
            "page goes on from a style or from the state of a page",
            param,
        )
    if moment.edge.ahead:
        raise InvalidRequest(f"{param} stands within a line of /v1/online; go on there", param)
    # It may be of a session that has a place on its page, which is another one.
    return replace(moment, edge=moment.edge.model_copy(update={"place": None}))
