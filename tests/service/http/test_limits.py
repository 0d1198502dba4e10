"""How long a body may take, however it comes."""

import asyncio
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Message

from service.http.limits import Bodies, BodyLimit, _in_turn
from service.http.waits import turns
from tests.service.serving import told_by


async def _endless() -> dict[str, Any]:
    """A byte now and then."""
    await asyncio.sleep(0.01)
    return {"type": "http.request", "body": b"x", "more_body": True}


async def _reads_it(scope: Any, receive: Any, send: Any) -> None:
    while True:
        await receive()


def test_a_byte_that_comes_gives_a_body_no_more_time() -> None:
    limit = BodyLimit(_reads_it, max_body_bytes=1 << 20, timeout_s=0.1, bodies=Bodies())

    async def ask() -> None:
        asked: Any = ({"type": "http", "headers": []}, _endless, None)
        await asyncio.wait_for(limit(*asked), 5)

    with pytest.raises(HTTPException) as late:
        asyncio.run(ask())
    assert late.value.status_code == 408


@pytest.mark.parametrize("digits", [8, 20, 21, 5000])
def test_a_length_of_any_number_of_digits_is_over_the_limit(digits: int) -> None:
    """Of more than some thousands Python makes no number."""
    told: list[Any] = []

    async def send(message: Any) -> None:
        told.append(message)

    limit = BodyLimit(_reads_it, max_body_bytes=1 << 20, timeout_s=1, bodies=Bodies())
    headers = [(b"content-length", b"9" * digits)]
    scope: Any = {"type": "http", "headers": headers}
    asyncio.run(limit(scope, _endless, send))  # type: ignore[arg-type]
    assert told[0]["status"] == 413


def test_a_body_that_has_come_leaves_nothing_behind() -> None:
    bodies = Bodies()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"x"}

    async def ask() -> None:
        async def reads_once(scope: Any, receive: Any, send: Any) -> None:
            await receive()

        limit = BodyLimit(reads_once, max_body_bytes=1, timeout_s=5, bodies=bodies)
        asked: Any = ({"type": "http", "headers": []}, receive, None)
        await limit(*asked)

    asyncio.run(ask())
    assert not bodies.waits


@pytest.mark.parametrize(("given_s", "left_s"), [(0.5, 0.5), (20.0, 1.0), (None, 1.0)])
def test_a_stop_leaves_a_body_a_moment_and_no_more_than_it_had(
    given_s: float | None, left_s: float
) -> None:
    async def stop() -> float:
        bodies = Bodies()
        now_s = asyncio.get_running_loop().time()
        async with asyncio.timeout(given_s) as wait:
            bodies.waits.add(wait)
            bodies.end()
            due_s = wait.when()
        assert due_s is not None
        return due_s - now_s

    assert asyncio.run(stop()) == pytest.approx(left_s, abs=0.2)


@pytest.mark.parametrize("leaves", [True, False])
def test_who_waits_for_a_turn_leaves_nothing_behind(leaves: bool) -> None:
    """Neither a place in the line, if its sender leaves, nor who listens for that."""

    async def receive() -> Message:
        if not leaves:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def wait() -> tuple[str, int]:
        turns()._beside = 2 if leaves else 0  # threads at work, for which large bodies wait
        told = await _in_turn({"type": "http.request"}, 1 << 20, receive)
        await asyncio.sleep(0)
        return told["type"], len(asyncio.all_tasks())

    assert asyncio.run(wait()) == ("http.disconnect" if leaves else "http.request", 1)


def test_who_has_sent_a_body_may_wait_longer_for_its_answer_than_a_body_may_take() -> None:
    """Whether it leaves is listened for meanwhile."""
    left: list[Message] = [{"type": "http.disconnect"}, {"type": "http.request", "body": b"x"}]
    heard: list[str] = []

    async def receive() -> Message:
        if heard:
            for _ in range(3):  # turns of the loop, in which a wait of no time would end
                await asyncio.sleep(0)
        return left.pop()

    async def answers(scope: Any, receive: Any, send: Any) -> None:
        for _ in range(2):
            heard.append((await receive())["type"])

    limit = BodyLimit(answers, max_body_bytes=1, timeout_s=0, bodies=Bodies())
    asked: Any = ({"type": "http", "headers": []}, receive, None)
    asyncio.run(limit(*asked))
    assert heard == ["http.request", "http.disconnect"]


def test_a_body_that_is_coded_by_the_second_header_is_refused() -> None:
    limit = BodyLimit(Response(), max_body_bytes=1 << 20, timeout_s=1, bodies=Bodies())
    coded = [(b"content-encoding", name) for name in (b"identity", b"gzip")]
    told = told_by(limit, {"type": "http", "headers": [(b"content-length", b"5"), *coded]})
    assert told[0]["status"] == 415
