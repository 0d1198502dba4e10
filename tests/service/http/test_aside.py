"""Two threads that work beside the event loop choose, and end, at the same time."""

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial
from threading import Event
from weakref import ref

import pytest

from service.engine import terms
from service.errors import NotReady
from service.http.aside import Aside, _Work
from tests.service.interleaved import WatchedLock


class _Busy(Counter[str]):
    """How many of each caller's are at work; whoever reads that next calls `meanwhile`."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], None] | None = None

    def __getitem__(self, caller: str) -> int:
        found, meanwhile, self.meanwhile = super().__getitem__(caller), self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return found


def _aside(work: dict[str, Callable[[], object]], caller: str) -> tuple[Aside, _Busy, WatchedLock]:
    """One that has so much to do, for this caller."""
    aside, busy, lock = Aside(), _Busy(), WatchedLock()
    aside._busy, aside._lock = busy, lock  # type: ignore[assignment]
    aside._waiting += [_Work(caller, do) for do in work.values()]
    return aside, busy, lock


def test_two_threads_that_choose_at_once_do_not_choose_the_same() -> None:
    """The other one would be done by nobody, and whoever waits for it would wait for ever."""
    done = list[str]()
    aside, busy, lock = _aside({n: partial(done.append, n) for n in ("one", "other")}, "alice")
    busy.meanwhile = lambda: lock.beside(aside._do_next)
    aside._do_next()
    lock.join()
    assert sorted(done) == ["one", "other"]
    assert not aside._waiting


def test_two_threads_that_end_at_once_are_both_counted_out() -> None:
    """A caller that had work at them for ever would have its turn after everybody else."""
    begun, end = Event(), Event()

    def held() -> None:
        begun.set()
        end.wait()

    def ends() -> None:
        busy.meanwhile = lambda: lock.meet(end.set)

    aside, busy, lock = _aside({"held": held, "ends": ends}, "alice")
    lock.beside(aside._do_next, until=begun)
    aside._do_next()
    lock.join()
    assert dict(busy) == {}


def test_whose_work_failed_is_busy_no_more() -> None:
    """A caller that was would have its turn after everybody else, for ever."""

    def fails() -> None:
        raise RuntimeError

    aside, busy, _ = _aside({"fails": fails}, "alice")
    aside._do_next()
    assert dict(busy) == {}


class _Page:
    """Something that takes memory."""

    def draw(self) -> None:
        raise AssertionError("whoever asked for it has left")


def test_what_nobody_waits_for_any_more_is_let_go_of(collect_own: Callable[[], int]) -> None:
    """A page may wait for a thread for a minute, and who asks for one may come and go."""

    async def left_behind() -> int:
        aside, end = Aside(), Event()
        held = [asyncio.create_task(aside.do(end.wait)) for _ in range(2)]
        while sum(aside._busy.values()) < 2:
            await asyncio.sleep(0.001)
        kept = list[ref[_Page]]()
        for _ in range(10):
            page = _Page()
            kept.append(ref(page))
            asking = asyncio.create_task(aside.do(page.draw))
            await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait([asking])
        del page, asking
        for _ in range(3):  # that the last has left is told round by round
            await asyncio.sleep(0)
        collect_own()  # an error and where it was raised keep each other
        count = sum(page() is not None for page in kept)
        end.set()
        await asyncio.gather(*held)
        aside.end()
        return count

    assert asyncio.run(left_behind()) == 0


def test_work_is_done_on_behalf_of_whoever_asks() -> None:
    """Its lines of the log name the request."""

    async def ask() -> str:
        aside = Aside()
        terms.agree(60.0, "alice")
        caller = await aside.do(lambda: terms.current().caller)
        aside.end()
        return caller

    assert asyncio.run(ask()) == "alice"


def test_what_has_not_begun_at_the_end_never_does() -> None:
    """Not even before its caller hears of the end."""
    done = list[str]()

    async def ask() -> None:
        aside, end = Aside(), Event()
        held = [asyncio.create_task(aside.do(end.wait)) for _ in range(2)]
        while sum(aside._busy.values()) < 2:
            await asyncio.sleep(0.001)
        late = asyncio.create_task(aside.do(lambda: done.append("late")))
        await asyncio.sleep(0)
        aside.end()
        end.set()
        aside._pool.shutdown()  # waits for its threads
        with pytest.raises(NotReady):
            await late
        await asyncio.gather(*held, return_exceptions=True)

    asyncio.run(ask())
    assert not done


def test_who_asks_after_the_end_is_told_of_it() -> None:
    async def ask() -> None:
        aside = Aside()
        aside.end()
        with pytest.raises(NotReady, match="stopping"):
            await aside.do(lambda: None)

    asyncio.run(ask())
