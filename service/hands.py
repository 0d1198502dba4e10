"""Hands to write in: none, a stored style, a token, or a person's own strokes.

Every one of them ends up as a `Moment` of the handwriting model, and nothing of it is kept here.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace

import numpy as np

from service.errors import InvalidRequest, StateMismatch, UnknownModel
from service.handwriting import InkLine, InkPiece, encode
from service.ink.caller import offsets_of
from service.ink.measure import Measures, measure
from service.ink_schemas import StrokesWithText
from service.models import Models, ServedModel
from service.state import Moment

MakeLine = Callable[[Callable[[InkPiece], None]], InkLine]


def pick_model(models: Models, name: str | None) -> ServedModel:
    """The handwriting model of that name, or the only one. Raises `UnknownModel` or
    `InvalidRequest`."""
    if name is None:
        able = [m for m in models if m.artifact.manifest.kind == "handwriting"]
        if len(able) != 1:
            names = ", ".join(m.artifact.name for m in able) or "none"
            raise UnknownModel(f"model is missing; the handwriting models here: {names}", "model")
        return able[0]
    model = models[name]
    if model.artifact.manifest.kind != "handwriting":
        raise InvalidRequest(f"model {name!r} is a language model; it cannot write ink", "model")
    return model


async def run_line(model: ServedModel, make: MakeLine) -> AsyncGenerator[InkPiece]:
    """The pieces of one line as they come, up to the last; a line nobody waits for is cancelled.

    Raises the error of a line that failed.
    """
    loop = asyncio.get_running_loop()
    pieces: asyncio.Queue[InkPiece] = asyncio.Queue()

    def send(piece: InkPiece) -> None:
        loop.call_soon_threadsafe(pieces.put_nowait, piece)

    line = make(send)
    model.engine.submit([line])
    try:
        while True:
            piece = await pieces.get()
            if piece.error is not None:
                raise piece.error
            yield piece
            if piece.last:
                return
    finally:
        line.cancelled = True


def fresh(model: ServedModel, seed: int) -> Moment:
    """A hand the model will make up."""
    return Moment(model.artifact.initial_state(), seed, 0, 0)


async def hand_in(model: ServedModel, style: str | StrokesWithText | None, seed: int) -> Moment:
    """The hand a request asks for, at the beginning of its randomness.

    Raises `InvalidRequest` for a style that is neither stored nor a token, or unfit strokes, and
    `StateMismatch` for a token of another model.
    """
    if style is None:
        return fresh(model, seed)
    if isinstance(style, StrokesWithText):
        moment, _ = await read_strokes(model, style)
    elif style in model.styles:
        moment = model.styles[style]
    else:
        moment = _token(model, style)
    return replace(moment, seed=seed, choice=0, drawn=0)


async def read_strokes(model: ServedModel, own: StrokesWithText) -> tuple[Moment, Measures]:
    """The hand that wrote these strokes: the state after reading them with their text."""
    manifest = model.artifact.manifest
    assert manifest.ink is not None
    text = " ".join(own.text.split())
    if not text:
        raise InvalidRequest("style.text is empty", "style")
    encode(text, manifest)
    strokes = [[(x, y) for x, y in stroke] for stroke in own.strokes]
    known = offsets_of(strokes, text, manifest.ink)
    start = fresh(model, 0)

    def make(send: Callable[[InkPiece], None]) -> InkLine:
        return InkLine(text, start, manifest, send, known=known)

    moment = None
    async with aclosing(run_line(model, make)) as pieces:
        async for piece in pieces:
            moment = piece.moment or moment
    assert moment is not None
    return moment, measure(known, len(text))


async def look(model: ServedModel, style: str, text: str) -> Measures:
    """What a stored hand looks like, by the ink it writes: neat, and always the same."""
    moment, manifest = model.styles[style], model.artifact.manifest

    def make(send: Callable[[InkPiece], None]) -> InkLine:
        return InkLine(text, moment, manifest, send, bias=1.0)

    async with aclosing(run_line(model, make)) as pieces:
        offsets = [piece.offsets async for piece in pieces]
    return measure(np.concatenate(offsets), len(text))


def _token(model: ServedModel, style: str) -> Moment:
    try:
        return model.codec.decode(style)
    except StateMismatch as error:
        raise StateMismatch(error.message.replace("state", "style", 1), "style") from error
    except InvalidRequest as error:
        known = ", ".join(model.styles) or "none"
        given = style if len(style) <= 40 else f"{style[:37]}..."
        raise InvalidRequest(
            f"style is {given!r}; it must be a token of this service or one of: {known}", "style"
        ) from error
