"""A stream is left, and what it takes from closed, whenever its client leaves."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.types import Message

from service.http import answers
from service.http.answers import COMMENT, EventStream, _events, _Told
from tests.service.serving import Service, unheard
from tests.service.writing import InkService

_AT_WORK: Any = SimpleNamespace(stalled_s=0.0)
_SCOPE = {"type": "http", "asgi": {"spec_version": "2.4"}}


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


@pytest.mark.parametrize("kind", ["text", "ink"])
def test_events_that_are_not_numbered_are_data_alone(
    scan: Service, ink: InkService, kind: str
) -> None:
    """Load tests, SGLang's among them, take each line for `data: ` and JSON."""

    def lines(**wanted: bool) -> list[str]:
        if kind == "text":
            body = {"model": "letters", "max_tokens": 3, "stream": True, "ignore_eos": True}
            answer = scan.client.post("/v1/completions", json=body | {"seed": 1} | wanted)
        else:
            answer = ink.post(text="a", seed=1, stream=True, **wanted)
        assert answer.status_code == 200
        return [line for line in answer.text.split("\n") if line]

    numbered = lines()
    contents = [line for line in numbered if line.startswith("data: ")]
    ids = [f"id: {number}" for number in range(len(contents))]
    assert [line for line in numbered if not line.startswith("data: ")] == ids
    bare = lines(event_ids=False)
    assert len(bare) == len(contents)
    assert all(line.startswith(("data: {", "data: [DONE]")) for line in bare)


def test_a_stream_whose_client_left_before_it_began_is_left_too() -> None:
    left: list[bool] = []

    async def contents() -> AsyncGenerator[str]:
        yield "{}"

    asyncio.run(unheard(EventStream(contents(), lambda: left.append(True), _AT_WORK)))
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
        await EventStream(contents(), lambda: None, _AT_WORK)(_SCOPE, _nothing, send)
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


def _first_sent(engine: Any, *, numbered: bool = True) -> bytes:
    """Of a stream that has nothing to tell for a while."""
    sent: list[bytes] = []

    async def contents() -> AsyncGenerator[str]:
        await asyncio.sleep(0.05)
        yield "late"

    async def send(message: Message) -> None:
        sent.append(message.get("body", b""))

    stream = EventStream(contents(), lambda: None, engine, numbered=numbered)
    asyncio.run(stream(_SCOPE, _nothing, send))
    return sent[1]


def test_of_an_engine_that_is_stuck_nobody_is_told_that_it_is_at_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answers, "_QUIET_S", 0.002)
    assert _first_sent(SimpleNamespace(stalled_s=9.0)) == b"id: 0\ndata: late\n\n"


def test_who_takes_all_that_comes_for_data_has_no_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_QUIET_S", 0.002)
    assert _first_sent(_AT_WORK) == COMMENT
    assert _first_sent(_AT_WORK, numbered=False) == b"data: late\n\n"


def test_who_has_just_heard_something_is_not_reassured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_QUIET_S", 0.002)
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def wait() -> None:
        told = _Told(send)
        told._last_s = asyncio.get_running_loop().time() + 60  # however long this takes
        reassuring = asyncio.create_task(told.reassure(_AT_WORK))
        await asyncio.sleep(0.02)
        reassuring.cancel()

    asyncio.run(wait())
    assert not sent


def test_what_was_long_on_its_way_is_heard_when_it_is_there() -> None:
    """A comment right behind it would tell a slow reader that there was nothing to tell."""
    now_s = [0.0]

    async def send(message: Message) -> None:
        now_s[0] += 60.0

    async def tell() -> float:
        told = _Told(send)
        told._loop = SimpleNamespace(time=lambda: now_s[0])  # type: ignore[assignment]
        await told.send({"type": "http.response.body"})
        return told._last_s

    assert asyncio.run(tell()) == now_s[0]
