"""The jobs of a request are given up as soon as nobody wants their pieces."""

import asyncio
from contextlib import aclosing

import pytest

from service.errors import EngineFault
from service.http.answers import Exchange
from service.text.completion import TextPiece
from tests.service.engine.scripted import Call


def _exchange(piece: TextPiece) -> Exchange[TextPiece]:
    """Of two jobs; the first has sent a piece."""
    exchange: Exchange[TextPiece] = Exchange(streamed=True)
    send = exchange.sender()
    exchange.jobs += [Call().job, Call().job]
    send(piece)
    return exchange


def test_pieces_that_are_not_read_to_the_end_cancel_their_jobs() -> None:
    async def leave() -> list[bool]:
        exchange = _exchange(TextPiece(text="a"))
        async with aclosing(exchange.pieces()) as pieces:
            assert (await anext(pieces))[1].text == "a"
            assert not any(job.cancelled for job in exchange.jobs)
        return [job.cancelled for job in exchange.jobs]

    assert asyncio.run(leave()) == [True, True]


def test_one_that_fails_ends_the_others() -> None:
    async def fail() -> list[bool]:
        exchange = _exchange(TextPiece(error=EngineFault("it broke")))
        with pytest.raises(EngineFault):
            async for _ in exchange.pieces():
                pass
        return [job.cancelled for job in exchange.jobs]

    assert asyncio.run(fail()) == [True, True]
