"""Work that several callers ask for at the same time, done once for all of them."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, TypeVar

from service.engine import terms
from service.errors import DeadlineExceeded

T = TypeVar("T")


class Shared:
    """Asyncio tasks under way, by what they make, and until when those who wait want it."""

    def __init__(self) -> None:
        self._under_way: dict[Hashable, asyncio.Task[Any]] = {}
        self._wanted: defaultdict[Hashable, list[float]] = defaultdict(list)

    async def get(self, what: Hashable, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What `make` returns or raises; or, if the same is being made already, what that does. It
        is made within the deadline of whoever asked first, and anew within the last of those who
        wait then: with little time left it would come too late again, and so on for ever."""
        until_s, wanted = terms.current().deadline_s, self._wanted[what]
        wanted.append(until_s)
        task: asyncio.Task[T] | None
        try:
            while (task := self._under_way.get(what)) is not None or until_s < max(wanted):
                if task is None:  # whoever has more time is about to begin
                    await asyncio.sleep(0)
                else:
                    await asyncio.wait([task], timeout=max(0.0, until_s - time.monotonic()))
                    if task.done() and not isinstance(task.exception(), DeadlineExceeded):
                        return await task
                if until_s <= time.monotonic():
                    raise terms.late()
            task = self._under_way[what] = asyncio.create_task(make())
            task.add_done_callback(partial(self._ended, what))
            return await asyncio.shield(task)  # others may wait for it when this caller does not
        finally:
            wanted.remove(until_s)
            if not wanted:
                del self._wanted[what]

    def _ended(self, what: Hashable, task: asyncio.Task[Any]) -> None:
        del self._under_way[what]
        if not task.cancelled():
            task.exception()  # nobody may wait for it any more, and then it is no news
