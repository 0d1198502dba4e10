"""A stream is left, and what it takes from closed, whenever its client leaves."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest
from starlette.types import Message

from service.http import answers
from service.http.answers import COMMENT, EventStream, _events
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


async def _nothing() -> Message:
    raise AssertionError("what has been heard is told without looking")


def test_who_hears_nothing_for_long_is_told_so_unless_something_waits_to_be_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answers, "_QUIET_S", 0.002)
    sent: list[bytes] = []
    taking = asyncio.Lock()

    async def contents() -> AsyncGenerator[str]:
        for content in ("1", "2"):
            while sent[-1] != COMMENT:
                await asyncio.sleep(0)
            yield content

    async def send(message: Message) -> None:
        assert not taking.locked()  # whoever counts what is sent knows of one message at a time
        async with taking:
            sent.append(message.get("body", b""))
            await asyncio.sleep(0.02)

    async def write() -> None:
        scope = {"type": "http", "asgi": {"spec_version": "2.4"}}
        await EventStream(contents(), lambda: None)(scope, _nothing, send)
        await asyncio.sleep(0.02)  # after the end there is nothing to say

    asyncio.run(asyncio.wait_for(write(), 10))
    assert sent == [
        b"",
        COMMENT,
        b"id: 0\ndata: 1\n\n",
        COMMENT,
        b"id: 1\ndata: 2\n\n",
        b"id: 2\ndata: [DONE]\n\n",
        b"",
    ]
