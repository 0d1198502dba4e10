"""The jobs of a request, and their pieces on the way from an engine's thread to the event loop."""

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Set
from contextlib import suppress
from functools import partial
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary, WeakMethod, ref

from service.engine import terms
from service.engine.engine import Engine
from service.engine.jobs import Generation, Piece
from service.http import record

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
    """The jobs of a request, and where their pieces come out.

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

    def submit(self, engine: Engine, *, admitted: bool = False) -> None:
        """Queue all jobs that have something to run. Raises what `Engine.submit` raises."""
        self._record.model = engine.name
        self._engine = engine
        for job in self.jobs:
            job.urgent, job.then = self._streamed, self._post.after
        waiting = [job for job in self.jobs if not job.finished_at_once]
        # Asked for now: the engine may have ended some of the others before `submit` returns.
        at_once = [job for job in self.jobs if job.finished_at_once]
        engine.submit(waiting, admitted=admitted)
        self._record.begin(self.jobs, engine.name)
        for job in at_once:
            job.finish(job.state if job.wants_state else None)

    async def pieces(self, *, failed: bool = False) -> AsyncGenerator[tuple[int, P]]:
        """Every piece with the number of its job, until all have ended or nobody wants more.

        The error of a job is raised, and the others are given up; or, with `failed`, it comes in
        the job's last piece like any other end.
        """
        under_way = set(range(len(self.jobs)))
        stuck = terms.once_stuck(partial(self._give_up, under_way))
        try:
            while under_way:
                number, piece = await self._pieces.get()
                self._taken(number)
                if number not in under_way:  # it has been given up, or ended just before it was
                    continue
                self._record.take(self.jobs[number], piece)
                if piece.error is not None and not failed:
                    raise piece.error
                if piece.last:
                    under_way.remove(number)
                yield number, piece
        finally:
            stuck.cancel()
            self.cancel()

    def cancel(self) -> None:
        """Give the slots back within a chunk; nothing happens to what has ended."""
        for job in self.jobs:
            job.cancelled = True
        if self._engine is not None:
            self._engine.wake()

    def _give_up(self, under_way: Set[int]) -> None:
        """Tell those who wait what the engine, which is stuck, does not."""
        for number in sorted(under_way):
            self._arrive(number, self.jobs[number].given_up(terms.late()))

    def _arrive(self, number: int, piece: P) -> None:
        self._unread[number] += 1
        if self._unread[number] >= _MOST_UNREAD:  # till `_taken` wakes the engine for it
            self.jobs[number].paused = True
        self._pieces.put_nowait((number, piece))

    def _taken(self, number: int) -> None:
        job = self.jobs[number]
        self._unread[number] -= 1
        if job.paused and self._unread[number] <= _MOST_UNREAD // 2 and self._engine is not None:
            job.paused = False
            self._engine.wake()
