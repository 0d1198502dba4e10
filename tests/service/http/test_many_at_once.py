"""What many send at the same time is taken apart one after the other: none of it is large, all of
it together would stop the event loop for seconds."""

import asyncio
import contextvars
import json
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from service.engine import terms
from service.errors import InvalidRequest
from service.http.limits import Bodies, BodyLimit
from service.http.waits import Turns, turns
from service.reader.online import OnlineReader
from tests.service.serving import Service, listening, running, settings

_HELD_S = 90.0  # longer than any test is patient
_MANY, _FEW = 40, 16
_STROKES = [[[3 * s + i, 7 * i % 20] for i in range(6)] for s in range(48)]
_ON_A_LINE = {"strokes": _STROKES, "line_height": 64}
_DOCUMENT = f"<ink><trace>{'1 2, ' * 1500}3 4</trace></ink>"
_OWN = {"strokes": [[[3 * i, 7 * i % 20] for i in range(600)]], "text": "a" * 20}


@pytest.fixture(scope="module")
def service(inks: Path) -> Iterator[Service]:
    with running(settings(inks)) as started:
        yield started


@pytest.fixture(scope="module")
def url(inks: Path) -> Iterator[str]:
    with listening(settings(inks)) as (url, _):
        yield url


class _Rounds:
    """The number of the event loop's present round, and what was noted in each."""

    def __init__(self) -> None:
        self._now, self.noted = 0, Counter[int]()

    def note(self) -> None:
        self.noted[self._now] += 1

    async def until(self, done: Callable[[], bool]) -> None:
        while not done():
            await asyncio.sleep(0)
            self._now += 1


async def _nothing(message: Message) -> None:
    pass


def _read_together(size: int, count: int = _MANY) -> Counter[int]:
    """How many of so many bodies that are there at once are read in each round of the loop."""
    rounds = _Rounds()

    async def read(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        rounds.note()

    async def ask() -> None:
        async def receive() -> Message:
            if (body := next(bodies, None)) is None:
                await asyncio.Event().wait()  # nobody leaves
            return {"type": "http.request", "body": body}

        bodies = iter([b" " * size] * count)
        limit = BodyLimit(read, 1 << 20, 60.0, Bodies())
        asked = [
            asyncio.create_task(limit({"type": "http", "headers": []}, receive, _nothing))
            for _ in range(count)
        ]
        await rounds.until(lambda: all(task.done() for task in asked))

    asyncio.run(asyncio.wait_for(ask(), 20))
    assert rounds.noted.total() == count
    return rounds.noted


@pytest.mark.parametrize(("size", "most"), [(30_000, 1), (3000, 2), (1000, 5), (10, 17)])
def test_of_bodies_that_come_together_a_few_kb_are_read_at_once(size: int, most: int) -> None:
    assert max(_read_together(size).values()) <= most


def test_few_small_bodies_wait_for_nothing() -> None:
    assert max(_read_together(200, 12).values()) == 12


async def _called(turns: Turns, names: str, at: Callable[[str], Awaitable[None]]) -> str:
    """Whose turn came after whose, of callers that ask one after the other in the same round."""
    order: list[str] = []

    async def ask(name: str) -> None:
        terms.agree(60, name)
        await at(name)
        order.append(name)

    asked = [asyncio.create_task(ask(name), context=contextvars.copy_context()) for name in names]
    await asyncio.wait_for(asyncio.gather(*asked), 20)
    return "".join(order)


@pytest.mark.parametrize("size", [30_000, 3000])
def test_callers_take_turns_at_having_their_bodies_read(size: int) -> None:
    async def ask() -> str:
        turns = Turns()
        return await _called(turns, "aaaaaaaabbc", lambda _: turns.to_read(size))

    assert asyncio.run(ask()) == "aabcabaaaaa"


@pytest.mark.parametrize(("size", "count"), [(200, 16), (1000, 4)])
def test_few_small_bodies_wait_for_one_of_all_that_are_large(size: int, count: int) -> None:
    async def ask() -> str:
        turns, sizes = Turns(), {"l": 30_000, "s": size}
        return await _called(turns, "l" * 20 + "s" * count, lambda name: turns.to_read(sizes[name]))

    assert asyncio.run(ask()).rstrip("l").count("l") <= 2  # one was at it when they came


def test_who_goes_on_with_what_it_has_read_comes_before_others_of_its_caller() -> None:
    async def called() -> list[int]:
        turns, order = Turns(), list[int]()

        async def ask(number: int) -> None:
            await turns.mine(again=number > 2)
            order.append(number)

        await asyncio.wait_for(asyncio.gather(*map(ask, range(4))), 20)
        return order

    assert asyncio.run(called()) == [0, 3, 1, 2]


@pytest.mark.parametrize("rounds", [1, 2], ids=["before it is called", "as it is called"])
def test_who_leaves_leaves_its_turn_to_the_next(rounds: int) -> None:
    async def ask() -> None:
        turns = Turns()
        _, second, third = (asyncio.create_task(turns.mine()) for _ in range(3))
        for _ in range(rounds):  # all have asked; in the second, one is called
            await asyncio.sleep(0)
        second.cancel()
        await third

    asyncio.run(asyncio.wait_for(ask(), 20))


def test_nothing_large_is_read_while_threads_work_on_what_was() -> None:
    hold = threading.Event()

    async def ask() -> list[str]:
        turns, read = Turns(), list[str]()

        async def to_read(size: int) -> None:
            await turns.to_read(size)
            read.append(f"{size}")

        async def beside() -> None:
            assert await turns.beside(lambda: hold.wait(_HELD_S))
            read.append("beside")

        working = [asyncio.create_task(beside()) for _ in range(3)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        working.pop().cancel()  # its thread goes on
        waiting = [asyncio.create_task(to_read(size)) for size in (30_000, 3000, 3001)]
        await asyncio.wait(waiting[1:])
        for _ in range(10):
            await asyncio.sleep(0)
        seen = list(read)
        hold.set()
        await asyncio.gather(*working, *waiting)
        assert sorted(read) == sorted(["beside"] * 2 + ["30000", "3000", "3001"])
        return seen

    try:
        assert asyncio.run(asyncio.wait_for(ask(), 20)) == ["3000", "3001"]
    finally:
        hold.set()


def test_what_a_thread_raises_is_told_and_is_no_news_where_nobody_waits(
    collect_own: Callable[[], int],
) -> None:
    told: list[object] = []
    hold = threading.Event()

    def fail() -> None:
        hold.wait(_HELD_S)
        raise ValueError("of ink")

    async def ask() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *what: told.append(what))
        waits, leaves = (asyncio.create_task(turns().beside(fail)) for _ in range(2))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        leaves.cancel()
        await asyncio.sleep(0)
        del leaves  # which would keep what it waited for
        hold.set()
        with pytest.raises(ValueError, match="of ink"):
            await waits
        while turns()._beside:  # until both threads have ended
            await asyncio.sleep(0.005)
        collect_own()  # what nobody has asked for by now is news

    try:
        asyncio.run(asyncio.wait_for(ask(), 20))
    finally:
        hold.set()
    assert not told


def test_a_body_whose_sender_leaves_before_its_turn_is_not_read() -> None:
    read: list[str] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        read.append((await receive())["type"])

    async def ask() -> None:
        async def from_who_leaves() -> Message:
            return next(messages, {"type": "http.disconnect"})

        messages = iter([{"type": "http.request", "body": b" " * 5000}] * _MANY)
        limit = BodyLimit(application, 1 << 20, 60.0, Bodies())
        scope: Scope = {"type": "http", "headers": []}
        await asyncio.gather(*(limit(scope, from_who_leaves, _nothing) for _ in range(_MANY)))

    asyncio.run(asyncio.wait_for(ask(), 20))
    assert len(read) == _MANY
    assert read.count("http.request") <= 2


async def _post(service: Service, path: str, content: bytes, statuses: list[int]) -> None:
    """Ask as a client does that has sent everything and stays."""
    messages = iter([{"type": "http.request", "body": content, "more_body": False}])

    async def receive() -> Message:
        message: Message | None = next(messages, None)
        return message if message is not None else await asyncio.Event().wait()  # type: ignore[return-value]

    async def send(message: Message) -> None:
        statuses.extend([message["status"]] if "status" in message else [])

    await service.app(
        {
            **{"type": "http", "method": "POST", "path": path, "query_string": b""},
            **{"scheme": "http", "client": ["::1", 1], "asgi": {"version": "3.0"}},
            "headers": [(b"host", b"x"), (b"content-type", b"application/json")],
        },
        receive,
        send,
    )


def test_strokes_of_many_are_traced_one_after_the_other(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds, follow, statuses = _Rounds(), OnlineReader._follow, list[int]()

    def noted(reader: OnlineReader, points: Any) -> Any:
        rounds.note()
        return follow(reader, points)

    monkeypatch.setattr(OnlineReader, "_follow", noted)
    content = json.dumps(_ON_A_LINE).encode()

    async def ask() -> None:
        asked = [
            asyncio.create_task(_post(service, "/v1/read", content, statuses)) for _ in range(_FEW)
        ]
        await rounds.until(lambda: all(task.done() for task in asked))
        await asyncio.gather(*asked)

    service.client.portal.call(ask)
    assert set(statuses) == {200}
    assert rounds.noted.total() > _FEW * 2
    # The beginnings of those that have just been read, and one that goes on.
    assert max(rounds.noted.values()) < _FEW / 4


@pytest.mark.parametrize(
    ("path", "body", "route", "work"),
    [
        ("/v1/read", {"strokes": _STROKES * 4}, "reader.routes._answer", "reader.routes._by_lines"),
        ("/v1/read", {"inkml": _DOCUMENT}, "reader.routes._answer", "reader.routes.from_inkml"),
        ("/v1/styles", _OWN, "ink.styles._made", "ink.hands.offsets_of"),
    ],
    ids=["a page", "a document", "a hand"],
)
def test_ink_of_many_is_not_read_before_that_of_others_has_been_prepared(
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    body: dict[str, Any],
    route: str,
    work: str,
) -> None:
    """Numbers of ink as Python has them take twenty times their bytes."""
    hold, begun, read = threading.Event(), threading.Semaphore(0), list[int]()
    folder, name = f"service.{route}".rsplit(".", 1)
    answer = getattr(import_module(folder), name)

    def noted(*asked: Any) -> Any:
        read.append(1)
        return answer(*asked)

    def held(*_: object) -> None:
        begun.release()
        assert hold.wait(_HELD_S)
        raise InvalidRequest("enough")

    monkeypatch.setattr(f"service.{route}", noted)
    monkeypatch.setattr(f"service.{work}", held)
    with (
        httpx.Client(base_url=url, timeout=60) as client,
        ThreadPoolExecutor(_FEW) as pool,
    ):
        asked = [pool.submit(client.post, path, json=body) for _ in range(_FEW)]
        try:
            assert begun.acquire(timeout=30)
            assert begun.acquire(timeout=30)
            assert client.post("/tokenize", json={"prompt": "a" * 1000}).status_code == 200
            assert len(read) < _FEW / 2
        finally:
            hold.set()
        assert {one.result().status_code for one in asked} == {400}
    assert len(read) == _FEW
