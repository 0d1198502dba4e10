"""A stream is left, and what it takes from closed, whenever its client leaves."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from service.http.answers import EventStream, _events
from tests.service.serving import unheard


def test_what_a_stream_takes_from_is_closed_with_it() -> None:
    closed: list[bool] = []

    async def contents() -> AsyncGenerator[str]:
        try:
            yield "{}"
            yield "{}"
        finally:
            closed.append(True)

    async def leave() -> list[bool]:
        async with aclosing(_events(contents())) as events:
            assert await anext(events) == b"id: 0\ndata: {}\n\n"
        return closed.copy()  # not when the garbage collector comes by

    assert asyncio.run(leave()) == [True]


def test_a_stream_whose_client_left_before_it_began_is_left_too() -> None:
    left: list[bool] = []

    async def contents() -> AsyncGenerator[str]:
        yield "{}"

    asyncio.run(unheard(EventStream(contents(), lambda: left.append(True))))
    assert left == [True]
