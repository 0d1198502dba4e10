"""What several ask for at the same time is made once."""

import asyncio

import pytest

from service.http.waits import Shared

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


@pytest.mark.parametrize("fail", [(1,), (1, 2), (1, 2, 3)])
def test_who_waited_for_one_that_failed_tries_again(fail: tuple[int, ...]) -> None:
    async def asked() -> None:
        maker, shared = _Maker(*fail), Shared()
        waiting = [asyncio.create_task(shared.get("a", maker.make)) for _ in range(3)]
        await asyncio.sleep(0.01)
        maker.may.set()
        found = await asyncio.gather(*waiting, return_exceptions=True)
        failed = [error.args[0] for error in found if isinstance(error, ValueError)]
        assert failed == list(fail)
        assert [n for n in found if isinstance(n, int)] == [len(fail) + 1] * (3 - len(fail))

    asyncio.run(asyncio.wait_for(asked(), _PATIENCE_S))


def test_when_the_first_does_not_wait_any_more_others_still_get_it() -> None:
    async def asked() -> None:
        maker, shared = _Maker(), Shared()
        first, second = (asyncio.create_task(shared.get("a", maker.make)) for _ in range(2))
        await asyncio.sleep(0.01)
        first.cancel()
        maker.may.set()
        assert await second == 1

    asyncio.run(asyncio.wait_for(asked(), _PATIENCE_S))
