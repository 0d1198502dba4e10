"""How requests are answered, whatever kind of model writes: pieces from the engine's thread,
server-sent events, and clients that leave before the end.
"""

import asyncio
import itertools
import json
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary, WeakMethod, ref

from fastapi import Request
from fastapi.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from service.engine.engine import Engine
from service.engine.jobs import Generation, Piece
from service.errors import ServiceError
from service.http import record
from service.http.errors import unexpected

P = TypeVar("P", bound=Piece)
_MOST_UNREAD = 64  # pieces of a job, some 2,000 steps
_AT_ONCE = 4  # pieces between two looks at who asks: half a millisecond's work


class _Post:
    """From the engines' threads to an event loop, which is woken once for all that lies there: a
    chunk has a piece for each of its rows. They are delivered a few at a time, so that nobody who
    asks meanwhile waits for all of them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = ref(loop)  # which is the key this is kept under
        self._lying: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    def send(self, deliver: Callable[[], None]) -> None:
        """Have this called on the loop."""
        loop = self._loop()
        if loop is None or loop.is_closed():
            return  # and nobody is there to take it
        with self._lock:
            self._lying.append(deliver)
            first = len(self._lying) == 1
        if first:
            with suppress(RuntimeError):  # it has closed meanwhile
                loop.call_soon_threadsafe(self._deliver)

    def after(self, call: Callable[[], None]) -> None:
        """Have this called once all that lies there has been delivered; here and now if nothing
        does."""
        loop = self._loop()
        with self._lock:
            lies = bool(self._lying) and loop is not None and not loop.is_closed()
            if lies:
                self._lying.append(call)
        if not lies:
            call()

    def _deliver(self) -> None:
        with self._lock:
            some, self._lying = self._lying[:_AT_ONCE], self._lying[_AT_ONCE:]
            more = bool(self._lying)
        for deliver in some:
            deliver()
        loop = self._loop()
        if more and loop is not None:
            loop.call_soon(self._deliver)


_posts: WeakKeyDictionary[asyncio.AbstractEventLoop, _Post] = WeakKeyDictionary()


class Exchange(Generic[P]):
    """The jobs of a request, and their pieces on the way from the engine's thread to the loop.

    A job whose pieces are not taken pauses: whoever reads slowly costs a slot only now and then.
    """

    def __init__(self, *, streamed: bool) -> None:
        self.jobs: list[Generation[P]] = []
        self._streamed = streamed
        self._engine: Engine | None = None
        loop = asyncio.get_running_loop()
        self._post = _posts.setdefault(loop, _Post(loop))
        self._pieces: asyncio.Queue[tuple[int, P]] = asyncio.Queue()
        self._unread: Counter[int] = Counter()  # pieces, by the number of their job
        self._record = record.current()

    def sender(self) -> Callable[[P], None]:
        """What the next job to be added sends its pieces with.

        It does not keep the exchange alive. That holds the job: each would keep the other, and an
        engine that was replaced, until the garbage collector looks at what is old.
        """
        post, arrive, number = self._post, WeakMethod(self._arrive), len(self.jobs)

        def deliver(piece: P) -> None:
            if (arrive_here := arrive()) is not None:
                arrive_here(number, piece)

        return lambda piece: post.send(partial(deliver, piece))

    def submit(self, engine: Engine, *, going_on: bool = False) -> None:
        """Queue all jobs that have something to run. Raises what `Engine.submit` raises."""
        self._record.model = engine.name
        self._engine = engine
        for job in self.jobs:
            job.urgent, job.then = self._streamed, self._post.after
        waiting = [job for job in self.jobs if not job.finished_at_once]
        engine.submit(waiting, going_on=going_on)
        self._record.begin(self.jobs, engine.name)
        for job in self.jobs:
            if job.finished_at_once:
                job.finish(job.state if job.wants_state else None)

    async def pieces(self, *, failed: bool = False) -> AsyncGenerator[tuple[int, P]]:
        """Every piece with the number of its job, until all have ended or nobody wants more.

        The error of a job is raised, and the others are given up; or, with `failed`, it comes in
        the job's last piece like any other end.
        """
        left = len(self.jobs)
        try:
            while left:
                number, piece = await self._pieces.get()
                self._taken(number)
                self._record.take(self.jobs[number], piece)
                if piece.error is not None and not failed:
                    raise piece.error
                yield number, piece
                left -= piece.last
        finally:
            self.cancel()

    def cancel(self) -> None:
        """Give the slots back within a chunk; nothing happens to what has ended."""
        for job in self.jobs:
            job.cancelled = True
        if self._engine is not None:
            self._engine.wake()

    def _arrive(self, number: int, piece: P) -> None:
        self._unread[number] += 1
        self.jobs[number].paused = self._unread[number] >= _MOST_UNREAD
        self._pieces.put_nowait((number, piece))

    def _taken(self, number: int) -> None:
        job = self.jobs[number]
        self._unread[number] -= 1
        if job.paused and self._unread[number] <= _MOST_UNREAD // 2 and self._engine is not None:
            job.paused = False
            self._engine.wake()


# nginx holds back what it proxies until it has some KB, unless it is told not to.
_UNBUFFERED = {"X-Accel-Buffering": "no"}


class EventStream(StreamingResponse):
    """Server-sent events, numbered: contents in JSON, an error in the place of what was to come,
    and `[DONE]`.

    `leave` is called when the response ends, even if it never began.
    """

    def __init__(self, contents: AsyncGenerator[str], leave: Callable[[], None]) -> None:
        super().__init__(_events(contents), headers=_UNBUFFERED, media_type="text/event-stream")
        self._leave = leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._leave()


async def _events(contents: AsyncGenerator[str]) -> AsyncGenerator[bytes]:
    numbers = itertools.count()

    def event(content: str) -> bytes:
        return f"id: {next(numbers)}\ndata: {content}\n\n".encode()

    try:
        async for content in contents:
            yield event(content)
    except Exception as error:  # the status is out: only an event can tell
        told = error if isinstance(error, ServiceError) else unexpected(error)
        record.current().fail(told)
        yield event(json.dumps(told.body()))
    finally:
        await contents.aclose()
    yield event("[DONE]")


async def unless_gone(
    request: Request,
    answer: Coroutine[Any, Any, Response],
    leave: Callable[[], None] = lambda: None,
) -> Response:
    """A whole answer, given up when its client closes the connection; `leave` is called either
    way."""
    working = asyncio.create_task(answer)
    watching = asyncio.create_task(_gone(request))
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        return Response(status_code=record.CLIENT_CLOSED_REQUEST)
    finally:
        leave()
        for task in (working, watching):
            task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await working


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
