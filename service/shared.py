"""Work that several callers ask for at the same time, done once for all of them."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


class Shared:
    """Asyncio tasks under way, by what they make."""

    def __init__(self) -> None:
        self._under_way: dict[Hashable, asyncio.Task[Any]] = {}

    async def get(self, what: Hashable, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What `make` returns or raises; or, if the same is being made already, what that does."""
        task: asyncio.Task[T] | None = self._under_way.get(what)
        if task is None:
            task = self._under_way[what] = asyncio.create_task(make())
            task.add_done_callback(partial(self._ended, what))
        return await asyncio.shield(task)  # others may wait for it when this caller does not

    def _ended(self, what: Hashable, task: asyncio.Task[Any]) -> None:
        del self._under_way[what]
        if not task.cancelled():
            task.exception()  # nobody may wait for it any more, and then it is no news
