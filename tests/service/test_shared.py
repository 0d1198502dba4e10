"""What several ask for at the same time is made once."""

import asyncio
import gc
import time
from functools import partial

import pytest

from service.engine import terms
from service.errors import DeadlineExceeded
from service.shared import Shared

_PATIENCE_S = 10.0


class _Maker:
    """Makes a number, that of the call, once it may; some calls fail."""

    def __init__(self, *fail: int) -> None:
        self.calls, self._fail, self.may = 0, fail, asyncio.Event()

    async def make(self) -> int:
        self.calls += 1
        number = self.calls
        await self.may.wait()
        if number in self._fail:
            raise ValueError(number)
        return number


def test_all_who_ask_meanwhile_get_what_the_first_has_made() -> None:
    async def asked() -> None:
        maker, shared = _Maker(), Shared()
        waiting = [asyncio.create_task(shared.get("a", maker.make)) for _ in range(5)]
        other = asyncio.create_task(shared.get("b", maker.make))
        await asyncio.sleep(0.01)
        maker.may.set()
        assert await asyncio.gather(*waiting) == [1] * 5
        assert await other == 2
        assert await shared.get("a", maker.make) == 3  # what it is kept in is its caller's own

    asyncio.run(asyncio.wait_for(asked(), _PATIENCE_S))


def test_a_failure_is_everybody_s_and_over_with_them() -> None:
    """One after the other they would wait for as many deadlines as they are."""

    async def asked() -> None:
        maker, shared = _Maker(1), Shared()
        waiting = [asyncio.create_task(shared.get("a", maker.make)) for _ in range(3)]
        await asyncio.sleep(0.01)
        maker.may.set()
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert [str(error) for error in found] == ["1"] * 3
        assert await shared.get("a", maker.make) == 2

    asyncio.run(asyncio.wait_for(asked(), _PATIENCE_S))


def test_who_came_later_has_until_a_deadline_of_their_own() -> None:
    async def asked() -> None:
        shared, may, calls = Shared(), asyncio.Event(), list[float]()

        async def make() -> str:
            calls.append(terms.current().deadline_s)
            await may.wait()
            if calls[-1] <= time.monotonic():
                raise terms.late()
            return "made"

        async def ask(within_s: float) -> str:
            terms.agree(within_s)
            return await shared.get("a", make)

        waiting = [asyncio.create_task(ask(within_s)) for within_s in (0, 0, 60, 60)]
        await asyncio.sleep(0)
        may.set()
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(each) for each in found] == [DeadlineExceeded, DeadlineExceeded, str, str]
        assert len(calls) == 2

    asyncio.run(asyncio.wait_for(asked(), _PATIENCE_S))


def test_who_has_the_most_time_left_makes_it_anew() -> None:
    """By turns of those with little left it would be late for as long as somebody asks."""

    async def asked() -> None:
        shared, may, calls = Shared(), asyncio.Event(), list[str]()

        async def make(name: str) -> str:
            calls.append(name)
            await may.wait()
            if name == "first":
                raise terms.late()
            return f"made by {name}"

        async def ask(name: str, within_s: float) -> str:
            terms.agree(within_s)
            return await shared.get("a", partial(make, name))

        within_s = {"first": 0, "second": 60, "last": 90, "hasty": 30}
        waiting = [asyncio.create_task(ask(*asks)) for asks in within_s.items()]
        await asyncio.sleep(0)
        may.set()
        _, *found = await asyncio.gather(*waiting, return_exceptions=True)
        assert found == ["made by last"] * 3
        assert calls == ["first", "last"]

    asyncio.run(asyncio.wait_for(asked(), _PATIENCE_S))


def test_nobody_waits_past_a_deadline_for_who_has_more_time() -> None:
    async def asked() -> None:
        shared, may = Shared(), asyncio.Event()

        async def make() -> str:
            await may.wait()
            return "made"

        async def ask(within_s: float) -> str:
            terms.agree(within_s)
            return await shared.get("a", make)

        patient, hasty = asyncio.create_task(ask(60)), asyncio.create_task(ask(0.01))
        with pytest.raises(DeadlineExceeded):
            await hasty
        may.set()
        assert await patient == "made"

    asyncio.run(asyncio.wait_for(asked(), _PATIENCE_S))


def test_a_failure_that_nobody_waits_for_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    async def asked() -> None:
        maker, shared = _Maker(1), Shared()
        alone = asyncio.create_task(shared.get("a", maker.make))
        await asyncio.sleep(0.01)
        alone.cancel()
        maker.may.set()
        await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(asked(), _PATIENCE_S))
    gc.collect()
    assert caplog.records == []


def test_when_the_first_does_not_wait_any_more_others_still_get_it() -> None:
    async def asked() -> None:
        maker, shared = _Maker(), Shared()
        first, second = (asyncio.create_task(shared.get("a", maker.make)) for _ in range(2))
        await asyncio.sleep(0.01)
        first.cancel()
        maker.may.set()
        assert await second == 1

    asyncio.run(asyncio.wait_for(asked(), _PATIENCE_S))


def test_work_that_is_given_up_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    async def asked() -> None:
        maker, shared = _Maker(), Shared()
        alone = asyncio.create_task(shared.get("a", maker.make))
        await asyncio.sleep(0.01)
        (work,) = asyncio.all_tasks() - {alone, asyncio.current_task()}
        work.cancel()
        await asyncio.wait([alone])

    asyncio.run(asked())
    assert caplog.records == []


def test_what_was_given_up_is_made_anew_for_the_next() -> None:
    async def gives_up() -> int:
        raise asyncio.CancelledError

    async def makes() -> int:
        return 7

    async def ask() -> int:
        shared = Shared()
        with pytest.raises(asyncio.CancelledError):
            await shared.get("it", gives_up)
        return await shared.get("it", makes)

    assert asyncio.run(ask()) == 7
