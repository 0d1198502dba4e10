"""Waiting on the event loop: taking turns, keeping to a rate, and waits that a stop cuts short."""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from service.engine import terms

T = TypeVar("T")
# Of what has come at the same time, so many bytes are read in one round of the event loop: to take
# a KB of strokes or of short words apart takes up to a few ms. A request of none takes half of one.
_ROOM_BYTES, _LEAST_BYTES = 4096, 256
_MOST_BESIDE = 2  # threads at work on what has been read


class _Line:
    """Those who wait for a turn, and how many bytes each reads then. Of callers each is called
    before another is once more."""

    def __init__(self) -> None:
        # In the order of their turns.
        self._of: dict[str, deque[tuple[asyncio.Future[None], int]]] = {}

    def __bool__(self) -> bool:
        return bool(self._of)

    async def called(self, size: int, *, again: bool = False) -> None:
        """Wait to be called; who asks `again` comes before others of its caller."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        theirs = self._of.setdefault(terms.current().caller, deque())
        theirs.insert(0 if again else len(theirs), (turn, size))
        await turn

    def call(self, room: int) -> int:
        """Call the next, if it reads no more than `room` bytes: how many that are, or 0."""
        while self._of:
            caller, theirs = next(iter(self._of.items()))
            turn, size = theirs[0]
            waits = not turn.done()  # or it has left
            if waits and size > room:
                break
            del self._of[caller], theirs[0]
            if theirs:
                self._of[caller] = theirs  # behind all others
            if waits:
                turn.set_result(None)
                return size
        return 0


class Turns:
    """What takes the event loop for long is begun one by one, and between two the loop goes round:
    whoever asks for little meanwhile waits for one of them, not for all that came together."""

    def __init__(self) -> None:
        self._little, self._much = _Line(), _Line()
        self._room = _ROOM_BYTES  # left of this round of the loop
        self._beside = 0

    async def mine(self, *, again: bool = False) -> None:
        """Return when it is the turn of what the caller does next without waiting; `again` for one
        that goes on with what it has read, and lets go of it at the end."""
        if self._much or self._room < _ROOM_BYTES or self._beside >= _MOST_BESIDE:
            await self._much.called(_ROOM_BYTES, again=again)
        else:
            self._take(_ROOM_BYTES)

    async def to_read(self, size: int) -> None:
        """Return when it is the caller's turn to read so many bytes."""
        if self.read_now(size):
            return
        if size > _ROOM_BYTES:
            await self.mine()
        else:
            await self._little.called(max(size, _LEAST_BYTES))

    def read_now(self, size: int) -> bool:
        """Whether so many bytes may be read without a wait, as little beside what is read in this
        round of the loop; who is told so does it."""
        size = max(size, _LEAST_BYTES)
        if self._little or size > self._room:
            return False
        self._take(size)
        return True

    async def beside(self, work: Callable[[], T]) -> T:
        """Do some work in a thread, on what has been read. While there is much of that, no more
        that is large is read: read and not worked on, ink takes twenty times its bytes."""
        return await to_its_end(self._do(work))  # as a thread goes on

    async def _do(self, work: Callable[[], T]) -> T:
        self._beside += 1
        try:
            return await asyncio.to_thread(work)
        finally:
            self._beside -= 1
            self._call()

    def _take(self, size: int) -> None:
        if self._room == _ROOM_BYTES:
            asyncio.get_running_loop().call_soon(self._go_round)
        self._room -= size

    def _go_round(self) -> None:
        """Call as many who read little as there is room for, and one who reads much besides."""
        self._room, little = _ROOM_BYTES, 0
        while size := self._little.call(_ROOM_BYTES - little):
            little += size
        self._call()
        if little:
            self._take(little)

    def _call(self) -> None:
        may = self._room == _ROOM_BYTES and self._beside < _MOST_BESIDE
        if may and self._much.call(_ROOM_BYTES):
            self._take(_ROOM_BYTES)


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, Turns] = WeakKeyDictionary()


def turns() -> Turns:
    """Those at the running event loop."""
    loop = asyncio.get_running_loop()
    found = _turns.get(loop)
    if found is None:
        found = _turns[loop] = Turns()
    return found


class TokenBucket:
    """So many a second, `burst` of them at once; others have to wait, up to `longest_s`."""

    def __init__(self, per_s: float, burst: int, longest_s: float) -> None:
        self._gap_s, self._burst, self._longest_s = 1 / per_s, burst, longest_s
        self._next_s = -math.inf  # when the next one would be due, were there no burst

    def wait_s(self, now_s: float) -> float:
        """Take the next place in the bucket: how many seconds its holder has to wait."""
        self._next_s = max(self._next_s, now_s) + self._gap_s
        wait_s = max(0.0, self._next_s - now_s - self._burst * self._gap_s)
        if wait_s > self._longest_s:
            self._next_s -= self._gap_s  # nor does anybody after it wait for longer
        return min(wait_s, self._longest_s)


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """What comes of some work, which goes on if nobody waits for it any more."""
    doing = asyncio.create_task(work)
    doing.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(doing)


def cut_short(waits: Iterable[asyncio.Timeout], at_s: float = 0.0) -> None:
    """Have each wait time out at `at_s` of the event loop's clock, if it would not before that; the
    default is in the past, so that it does at once."""
    for wait in waits:
        due_s = wait.when()
        with suppress(RuntimeError):  # it is over just now
            wait.reschedule(at_s if due_s is None else min(due_s, at_s))
