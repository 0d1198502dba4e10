"""Work that several callers ask for at the same time, done once for all of them."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, TypeVar

from service.engine import terms
from service.errors import DeadlineExceeded

T = TypeVar("T")


class Shared:
    """Asyncio tasks under way, by what they make."""

    def __init__(self) -> None:
        self._under_way: dict[Hashable, asyncio.Task[Any]] = {}

    async def get(self, what: Hashable, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What `make` returns or raises; or, if the same is being made already, what that does. It
        is made within the deadline of whoever asked first, and anew for who has time left then."""
        task: asyncio.Task[T] | None = self._under_way.get(what)
        if task is None:
            task = self._under_way[what] = asyncio.create_task(make())
            task.add_done_callback(partial(self._ended, what))
        try:
            return await asyncio.shield(task)  # others may wait for it when this caller does not
        except DeadlineExceeded:
            if terms.current().deadline_s <= time.monotonic():
                raise
        return await self.get(what, make)

    def _ended(self, what: Hashable, task: asyncio.Task[Any]) -> None:
        del self._under_way[what]
        if not task.cancelled():
            task.exception()  # nobody may wait for it any more, and then it is no news
