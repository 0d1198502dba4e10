"""What is waited for no longer is not kept, and not in the midst of what it was at."""

import asyncio
import math
import threading
from types import SimpleNamespace
from typing import Any
from weakref import ref

import pytest
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope, Send

from service.http.answers import unless_gone
from service.http.limits import Bodies, BodyLimit
from service.http.online import Sessions
from service.http.record import CLIENT_CLOSED_REQUEST
from service.http.waits import TokenBucket, Turns


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


def test_nobody_watches_for_a_client_that_has_been_answered() -> None:
    """Its connection may be kept for many more requests."""

    async def stays() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def answer() -> Response:
        return Response(status_code=200)

    async def ask() -> int:
        request: Any = SimpleNamespace(receive=stays)
        for _ in range(3):
            await unless_gone(request, answer())
        await asyncio.sleep(0)
        return len(asyncio.all_tasks())

    assert asyncio.run(ask()) == 1


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


def test_a_model_that_was_replaced_is_not_kept_for_its_sessions() -> None:
    class Left:
        """As much of an engine as is looked at."""

    sessions, engine = Sessions(60.0), Left()
    gone = ref(engine)
    sessions.leave(engine)  # type: ignore[arg-type]
    del engine
    assert gone() is None


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


def _called(*sizes: int, left: int | None = None) -> list[list[int]]:
    """By round of the event loop, who is called of those who come together and want to read so many
    bytes; one has `left` before the first round is over."""

    async def ask() -> list[list[int]]:
        turns, called, number_of_round = Turns(), dict[int, list[int]](), 0

        async def wait(number: int, size: int) -> None:
            await turns.to_read(size)
            called.setdefault(number_of_round, []).append(number)

        asked = [asyncio.create_task(wait(number, size)) for number, size in enumerate(sizes)]
        await asyncio.sleep(0)
        if left is not None:
            asked[left].cancel()
        while not all(task.done() for task in asked):
            number_of_round += 1
            await asyncio.sleep(0)
        return list(called.values())

    return asyncio.run(asyncio.wait_for(ask(), 20))


def test_what_fits_in_a_round_is_read_in_it_and_no_more() -> None:
    """Of what is tiny no more than sixteen."""
    assert _called(4096, *[1] * 20) == [[0], [*range(1, 17)], [*range(17, 21)]]
    assert _called(4096, 3000, 1096, 1) == [[0], [1, 2], [3]]
    assert _called(4096, 5000, 4096) == [[0], [2, 1]]  # one that is large, beside the little ones
    assert _called(4096, 3000, 3000, 1000, left=2) == [[0], [1, 3]]


def test_who_comes_later_does_not_go_before_those_who_wait() -> None:
    async def ask() -> list[bool]:
        turns, found = Turns(), list[bool]()

        async def first() -> None:
            await turns.to_read(3000)
            found.append(turns.read_now(256))  # there is room, but not for the next

        others = (turns.to_read(4096), first(), turns.to_read(3000))
        await asyncio.wait_for(asyncio.gather(*others), 20)
        return found

    assert asyncio.run(ask()) == [False]


def test_a_thread_that_ends_calls_nobody_in_a_round_whose_room_is_taken() -> None:
    async def ask() -> bool:
        turns = Turns()
        asked = [asyncio.create_task(read) for read in (turns.to_read(4096), turns.mine())]
        await asyncio.sleep(0)
        turns._call()  # as a thread's end does
        waits = bool(turns._much)
        await asyncio.wait_for(asyncio.gather(*asked), 20)
        return waits

    assert asyncio.run(ask())


def test_a_bucket_lets_a_burst_through_and_forgets_who_waited_for_the_longest() -> None:
    bucket = TokenBucket(per_s=1.0, burst=3, longest_s=1.5)
    assert [bucket.wait_s(0.0) for _ in range(6)] == [0.0, 0.0, 0.0, 1.0, 1.5, 1.5]
    assert bucket.wait_s(1.0) == 1.0
    assert bucket.wait_s(6.0) == 0.0
    endless = TokenBucket(per_s=1.0, burst=1, longest_s=math.inf)
    assert [endless.wait_s(0.0) for _ in range(3)] == [0.0, 1.0, 2.0]


def test_a_thread_has_its_place_until_it_ends_whoever_waits_for_it() -> None:
    """Or those who ask for much and leave would have ever more of them at work."""

    async def leave() -> list[int]:
        turns, begun, end = Turns(), threading.Event(), threading.Event()

        def work() -> None:
            begun.set()
            end.wait(20)

        asking = asyncio.create_task(turns.beside(work))
        while not begun.is_set():
            await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait([asking])
        await asyncio.sleep(0)
        counts = [turns._beside]
        end.set()
        while turns._beside:
            await asyncio.sleep(0)
        return counts

    assert asyncio.run(asyncio.wait_for(leave(), 20)) == [1]


def test_what_there_is_no_room_for_in_a_round_waits_for_the_next() -> None:
    async def ask() -> list[bool]:
        turns = Turns()
        return [turns.read_now(size) for size in (3840, 257, 256, 1)]

    assert asyncio.run(ask()) == [True, False, True, False]


def test_what_is_large_waits_behind_two_threads_and_not_behind_one() -> None:
    """However often the loop goes round meanwhile for those who read little."""

    async def waits(beside: int) -> bool:
        turns = Turns()
        turns._beside = beside
        asking = asyncio.create_task(turns.mine())
        await asyncio.sleep(0)
        await turns.to_read(1)
        for _ in range(3):
            await asyncio.sleep(0)
        return not asking.done()

    assert [asyncio.run(waits(beside)) for beside in (0, 1, 2)] == [False, False, True]
