"""The jobs of a request are given up as soon as nobody wants their pieces."""

import asyncio
import gc
import socket
from collections.abc import Callable, Sequence
from contextlib import aclosing
from functools import partial
from types import SimpleNamespace
from typing import Any
from weakref import ref

import pytest

from service.engine import terms
from service.engine.jobs import Job
from service.errors import EngineFault
from service.http.exchange import Exchange, _Post
from service.text.completion import TextPiece
from tests.service.engine.scripted import Call, ScriptedRunner, engine
from tests.service.interleaved import WatchedLock


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


def test_an_answer_that_has_ended_is_not_kept_until_its_deadline() -> None:
    """Two minutes, by which it would have been told that its model is stuck."""

    async def end() -> bool:
        terms.agree(120)
        exchange = _exchange(TextPiece(error=EngineFault("it broke")))
        with pytest.raises(EngineFault):
            await anext(exchange.pieces())
        gone = ref(exchange)
        del exchange
        gc.collect()
        return gone() is None

    assert asyncio.run(end())


def test_one_that_fails_ends_the_others() -> None:
    async def fail() -> list[bool]:
        exchange = _exchange(TextPiece(error=EngineFault("it broke")))
        with pytest.raises(EngineFault):
            async for _ in exchange.pieces():
                pass
        return [job.cancelled for job in exchange.jobs]

    assert asyncio.run(fail()) == [True, True]


def test_a_job_pauses_with_64_pieces_of_its_own_unread_until_half_of_them_are_read() -> None:
    async def follow() -> None:
        exchange: Exchange[TextPiece] = Exchange(streamed=True)
        exchange._engine = SimpleNamespace(wake=lambda: None)  # type: ignore[assignment]
        sends = []
        for _ in range(2):
            sends.append(exchange.sender())
            exchange.jobs.append(Call().job)

        async def sent(number: int, count: int) -> list[bool]:
            for _ in range(count):
                sends[number](TextPiece())
            for _ in range(count):  # a few at a time
                await asyncio.sleep(0)
            return [job.paused for job in exchange.jobs]

        assert await sent(0, 63) == [False, False]
        assert await sent(1, 63) == [False, False]
        assert await sent(0, 1) == [True, False]
        async with aclosing(exchange.pieces()) as pieces:
            for _ in range(31):
                await anext(pieces)
            # Of the chunk under way: nobody would wake the engine for one that goes on now.
            assert await sent(0, 1) == [True, False]
            await anext(pieces)
            assert exchange.jobs[0].paused
            await anext(pieces)
            assert not exchange.jobs[0].paused

    asyncio.run(follow())


def test_a_job_that_has_ended_before_its_submission_returns_is_not_ended_again() -> None:
    """The engine's thread may be faster than the one that submits: of two choices, the first would
    count as both, and the answer begin where the request did."""
    call = Call(max_tokens=3, wants_state=True)

    async def ask() -> None:
        exchange: Exchange[TextPiece] = Exchange(streamed=True)
        exchange.jobs.append(call.job)
        with engine(ScriptedRunner(b"abc")) as started:
            submit = started.submit

            def slowly(jobs: Sequence[Job], **named: bool) -> None:
                submit(jobs, **named)
                assert call.result().text == "abc"

            started.submit = slowly  # type: ignore[method-assign]
            exchange.submit(started)

    asyncio.run(ask())
    assert call.pieces.empty()


def test_the_engine_is_woken_for_one_that_is_read_again_and_one_that_is_left() -> None:
    """It would see neither for half a second."""

    async def follow() -> list[int]:
        woken: list[None] = []
        exchange: Exchange[TextPiece] = Exchange(streamed=True)
        exchange._engine = SimpleNamespace(wake=lambda: woken.append(None))  # type: ignore[assignment]
        send = exchange.sender()
        exchange.jobs.append(Call().job)
        for _ in range(64):
            send(TextPiece())
        for _ in range(64):
            await asyncio.sleep(0)
        counted = []
        async with aclosing(exchange.pieces()) as pieces:
            for taken in range(32):
                await anext(pieces)
                if taken in (30, 31):
                    counted.append(len(woken))
        return [*counted, len(woken)]

    assert asyncio.run(follow()) == [0, 1, 2]


def test_who_asks_meanwhile_is_heard_before_all_pieces_of_a_chunk_are_taken() -> None:
    async def hear() -> int:
        loop, taken = asyncio.get_running_loop(), 0
        heard: asyncio.Future[int] = loop.create_future()
        ours, theirs = socket.socketpair()

        async def take(exchange: Exchange[TextPiece]) -> None:
            nonlocal taken
            async with aclosing(exchange.pieces()) as pieces:
                await anext(pieces)
            taken += 1
            if taken == 1:
                theirs.send(b"a request")

        with ours, theirs:
            loop.add_reader(ours, lambda: heard.done() or heard.set_result(taken))
            exchanges: list[Exchange[TextPiece]] = [Exchange(streamed=True) for _ in range(16)]
            senders = [exchange.sender() for exchange in exchanges]
            for exchange in exchanges:
                exchange.jobs.append(Call().job)
            taking = [asyncio.ensure_future(take(exchange)) for exchange in exchanges]
            await asyncio.sleep(0)
            for send in senders:  # as an engine does between two chunks
                send(TextPiece(text="a"))
            await asyncio.gather(*taking)
            before = await heard
            loop.remove_reader(ours)
            return before

    assert asyncio.run(hear()) < 16


def test_who_waits_for_what_was_sent_is_told_when_it_has_come_and_at_once_if_nothing_was() -> None:
    async def tell() -> list[str]:
        post, told = _Post(asyncio.get_running_loop()), []
        post.after(lambda: told.append("at once"))
        for number in range(6):  # more than are delivered at a time
            post.send(partial(told.append, f"piece {number}"))
        post.after(lambda: told.append("after"))
        assert told == ["at once"]
        for _ in range(100):
            await asyncio.sleep(0)
        return told

    assert asyncio.run(tell()) == ["at once", *(f"piece {n}" for n in range(6)), "after"]


class _Loop:
    """An event loop that notes what it was asked for by other threads, and by its own."""

    def __init__(self) -> None:
        self.asked: list[Callable[[], None]] = []
        self.soon: list[Callable[[], None]] = []
        self.call_soon_threadsafe, self.call_soon = self.asked.append, self.soon.append

    def is_closed(self) -> bool:
        return False

    def go_round(self) -> None:
        """Until nothing is left."""
        while due := self.asked + self.soon:
            self.asked.clear()
            self.soon.clear()
            for call in due:
                call()


class _Lying(list[Callable[[], None]]):
    """What lies there; `meanwhile` is called in the midst of what a thread does with it."""

    def __init__(self, at: str, meanwhile: Callable[[], None]) -> None:
        super().__init__()
        self._at, self._meanwhile = at, meanwhile

    def _done(self, what: str, found: Any = None) -> Any:
        if what == self._at:
            self._meanwhile()
        return found

    def append(self, entry: Callable[[], None]) -> None:
        self._done("before")
        self._done("append", super().append(entry))

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        return found if place.start is None else self._done("rest", found)

    def __bool__(self) -> bool:
        return bool(self._done("bool", len(self) > 0))


@pytest.mark.parametrize("at", ["append", "rest", "bool"])
def test_what_two_threads_do_at_once_is_all_heard(at: str) -> None:
    """One in the midst of the other's `send`, or of `_deliver`; or the loop takes all that lies
    there in the midst of `after`. Nobody else would ever wake it for the rest."""
    loop, told, lock = _Loop(), list[str](), WatchedLock()
    post = _Post(loop)  # type: ignore[arg-type]
    other = loop.go_round if at == "bool" else partial(post.send, partial(told.append, "other"))
    post._lying = _Lying(at, lambda: lock.beside(other))
    post._lock = lock  # type: ignore[assignment]
    post.send(partial(told.append, "piece"))
    if at == "bool":
        post.after(partial(told.append, "other"))
        lock.join()
    loop.go_round()
    lock.join()
    loop.go_round()
    assert sorted(told) == ["other", "piece"]


def test_a_loop_that_sleeps_is_woken_by_what_is_sent_and_one_that_has_closed_is_not() -> None:
    loop, told = _Loop(), list[str]()
    post = _Post(loop)  # type: ignore[arg-type]
    post.send(partial(told.append, "piece"))
    assert (len(loop.asked), len(loop.soon)) == (1, 0)
    loop.go_round()

    def closed(call: Callable[[], None]) -> None:
        raise RuntimeError("Event loop is closed")

    loop.call_soon_threadsafe = closed  # type: ignore[assignment]
    post.send(partial(told.append, "late"))
    assert told == ["piece"]


def test_what_is_sent_as_the_rest_is_taken_goes_to_the_rest() -> None:
    """To what has been taken already it would come too late."""
    loop, told, lock = _Loop(), list[str](), WatchedLock()
    post = _Post(loop)  # type: ignore[arg-type]
    post._lock = lock  # type: ignore[assignment]
    post.send(partial(told.append, "piece"))
    lying = _Lying("before", lambda: lock.beside(loop.go_round))
    lying.extend(post._lying)
    post._lying = lying
    post.send(partial(told.append, "other"))
    lock.join()
    loop.go_round()
    assert told == ["piece", "other"]


@pytest.mark.parametrize("wants_state", [False, True])
@pytest.mark.parametrize("streamed", [False, True])
def test_what_has_nothing_to_run_is_not_queued_and_has_a_state_only_if_it_wants_one(
    streamed: bool, wants_state: bool
) -> None:
    at_once, runs = Call(max_tokens=0, wants_state=wants_state), Call(max_tokens=1)
    queued: list[Sequence[Job]] = []
    engine: Any = SimpleNamespace(name="it", submit=lambda jobs, admitted: queued.append(jobs))

    async def ask() -> None:
        exchange: Exchange[TextPiece] = Exchange(streamed=streamed)
        exchange.jobs += [at_once.job, runs.job]
        exchange.submit(engine)

    asyncio.run(ask())
    assert queued == [[runs.job]]
    assert (at_once.result().pieces[0].moment is not None) == wants_state
    assert (at_once.job.urgent, runs.job.urgent) == (streamed, streamed)
