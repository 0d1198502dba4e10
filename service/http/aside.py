"""Work beside the event loop, in few threads that do nothing else: a backlog of large pages is not
what a reader, or a stop, waits for.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from service.engine import terms
from service.errors import NotReady
from service.http.waits import cut_short
from service.workers import Workers

T = TypeVar("T")
_THREADS = 2


@dataclass(eq=False, slots=True)
class _Work:
    caller: str
    do: Callable[[], Any]
    done: Future[Any] = field(default_factory=Future)


class Aside:
    """Threads that callers take turns at: the next is of whoever has the fewest at work."""

    def __init__(self) -> None:
        self._pool = Workers(_THREADS, thread_name_prefix="aside")
        self._waiting: list[_Work] = []
        self._busy: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._waits: set[asyncio.Timeout] = set()
        self._ended = False

    async def do(self, work: Callable[[], T]) -> T:
        """Do some work in one of the threads and return what it returns. Raises `DeadlineExceeded`,
        and `NotReady` after the `end`."""
        if self._ended:
            raise _stopping()
        asked, context = terms.current(), copy_context()
        mine = _Work(asked.caller, partial(Context.run, context, work))
        try:
            async with asyncio.timeout_at(asked.deadline_s) as wait:
                self._waits.add(wait)
                try:
                    self._waiting.append(mine)  # in one step: whoever chooses has it, or has not
                    self._pool.submit(self._do_next)
                    return await asyncio.wrap_future(mine.done)  # given up if this is
                finally:
                    self._waits.remove(wait)
                    with self._lock, suppress(ValueError):  # it has begun, or ended
                        self._waiting.remove(mine)
        except TimeoutError as error:
            if self._ended:
                raise _stopping() from error
            raise terms.late() from error

    def end(self) -> None:
        """Whoever waits is told so, and what has not begun never will."""
        self._ended = True
        cut_short(self._waits)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _do_next(self) -> None:
        with self._lock:
            if not self._waiting:  # somebody has left
                return
            work = min(self._waiting, key=lambda some: self._busy[some.caller])
            self._waiting.remove(work)
            self._busy[work.caller] += 1
        try:
            if work.done.set_running_or_notify_cancel():
                work.done.set_result(work.do())
        except BaseException as error:
            work.done.set_exception(error)
        finally:
            with self._lock:
                self._busy[work.caller] -= 1
                if not self._busy[work.caller]:
                    del self._busy[work.caller]


def _stopping() -> NotReady:
    return NotReady("the service is stopping")
