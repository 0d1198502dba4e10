"""Waits that a stop cuts short, whatever they are for, turns at the event loop, and what several
wait for together.
"""

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")

_LARGE_BYTES = 32 * 1024  # to read takes a millisecond


class Turns:
    """What takes the event loop for long is begun one by one, and between two the loop goes round:
    whoever asks for little meanwhile waits for one of them, not for all that came together."""

    def __init__(self) -> None:
        self._last: asyncio.Future[None] | None = None

    async def mine(self) -> None:
        """Return when all who asked before have begun, and what they did at once is done."""
        before, mine = self._last, asyncio.get_running_loop().create_future()
        self._last = mine
        try:
            if before is not None and not before.done():
                await asyncio.wait([before])  # which is not cancelled if this is
        finally:
            mine.get_loop().call_soon(mine.set_result, None)

    async def to_read(self, size: int) -> None:
        """The same for so many bytes, if to read them takes long."""
        if size > _LARGE_BYTES:
            await self.mine()


class Shared:
    """What several ask for at the same time is made once, for all of them."""

    def __init__(self) -> None:
        self._under_way: dict[Hashable, asyncio.Task[Any]] = {}

    async def get(self, what: Hashable, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What `make` returns or raises, or what is being made already does."""
        task: asyncio.Task[T] | None = self._under_way.get(what)
        if task is None:
            task = self._under_way[what] = asyncio.create_task(make())
            task.add_done_callback(partial(self._ended, what))
        return await asyncio.shield(task)  # others may wait for it when this caller does not

    def _ended(self, what: Hashable, task: asyncio.Task[Any]) -> None:
        del self._under_way[what]
        if not task.cancelled():
            task.exception()  # nobody may wait for it any more, and then it is no news


def cut_short(waits: Iterable[asyncio.Timeout], at_s: float = 0.0) -> None:
    """Have each end at a time of the event loop, in the past for now, if it would not before."""
    for wait in waits:
        due_s = wait.when()
        with suppress(RuntimeError):  # it is over just now
            wait.reschedule(at_s if due_s is None else min(due_s, at_s))
