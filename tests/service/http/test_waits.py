"""What is waited for no longer is not kept, and not in the midst of what it was at."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope, Send

from service.http.answers import unless_gone
from service.http.limits import Bodies, BodyLimit
from service.http.online import Sessions
from service.http.record import CLIENT_CLOSED_REQUEST
from service.http.waits import Turns


async def _gone() -> Message:
    return {"type": "http.disconnect"}


def test_an_answer_that_nobody_waits_for_has_ended_before_its_request() -> None:
    """What it did meanwhile is counted then."""
    said: list[str] = []

    async def answer() -> Response:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            said.append("ended")
        raise AssertionError

    async def ask() -> int:
        request: Any = SimpleNamespace(receive=_gone)
        given = await unless_gone(request, answer(), lambda: said.append("left"))
        said.append("answered")
        return given.status_code

    assert asyncio.run(asyncio.wait_for(ask(), 20)) == CLIENT_CLOSED_REQUEST
    assert said == ["left", "ended", "answered"]


def test_an_answer_that_is_there_as_its_client_leaves_is_given() -> None:
    async def answer() -> Response:
        return Response(status_code=200)

    request: Any = SimpleNamespace(receive=_gone)
    assert asyncio.run(unless_gone(request, answer())).status_code == 200


def test_what_is_wrong_with_a_body_that_comes_beside_its_answer_is_told() -> None:
    """As of one that nobody asked for; its client has not left."""

    async def receive() -> Message:
        raise HTTPException(413, "the request body is over 10 bytes")

    async def answer() -> Response:
        await asyncio.Event().wait()
        raise AssertionError

    request: Any = SimpleNamespace(receive=receive)
    with pytest.raises(HTTPException, match="over 10 bytes"):
        asyncio.run(asyncio.wait_for(unless_gone(request, answer()), 20))


def test_a_message_that_has_come_is_waited_for_no_more() -> None:
    async def receive() -> Message:
        return {"type": "websocket.receive", "text": "1"}

    async def listen() -> Sessions:
        sessions = Sessions(60.0)
        socket: Any = SimpleNamespace(receive=receive)
        assert await sessions.message(socket) == 1
        return sessions

    assert not asyncio.run(listen())._waits


def test_nor_is_a_body() -> None:
    async def receive() -> Message:
        return {"type": "http.request", "body": b"1"}

    async def read(scope: Scope, receive: Receive, send: Send) -> None:
        assert (await receive())["body"] == b"1"

    async def send(message: Message) -> None:
        raise AssertionError

    bodies = Bodies()
    limited = BodyLimit(read, 10, 60.0, bodies)
    asyncio.run(limited({"type": "http", "headers": []}, receive, send))
    assert not bodies.waits


def test_who_gives_up_its_turn_leaves_that_of_another() -> None:
    told: list[object] = []

    async def ask() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *what: told.append(what))
        turns = Turns()
        _, second, third = asked = [asyncio.create_task(turns.mine()) for _ in range(3)]
        await asyncio.sleep(0)  # now each waits for the one before
        third.cancel()
        await asyncio.wait(asked)
        assert third.cancelled()
        await second
        await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(ask(), 20))
    assert not told
