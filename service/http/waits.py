"""Waiting on the event loop: taking turns, keeping to a rate, and waits that a stop cuts short."""

import asyncio
import math
from collections.abc import Iterable
from contextlib import suppress

_LARGE_BYTES = 32 * 1024  # to read takes a millisecond


class Turns:
    """What takes the event loop for long is begun one by one, and between two the loop goes round:
    whoever asks for little meanwhile waits for one of them, not for all that came together."""

    def __init__(self) -> None:
        self._last: asyncio.Future[None] | None = None

    async def mine(self) -> None:
        """Return when it is the caller's turn: all who asked before have had theirs, and did what
        they do without waiting."""
        before, mine = self._last, asyncio.get_running_loop().create_future()
        self._last = mine
        try:
            if before is not None and not before.done():
                await asyncio.wait([before])  # which is not cancelled if this is
        finally:
            mine.get_loop().call_soon(mine.set_result, None)

    async def to_read(self, size: int) -> None:
        """Wait for a turn to read so many bytes, if they are so many that reading takes long."""
        if size > _LARGE_BYTES:
            await self.mine()


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


def cut_short(waits: Iterable[asyncio.Timeout], at_s: float = 0.0) -> None:
    """Have each wait time out at `at_s` of the event loop's clock, if it would not before that; the
    default is in the past, so that it does at once."""
    for wait in waits:
        due_s = wait.when()
        with suppress(RuntimeError):  # it is over just now
            wait.reschedule(at_s if due_s is None else min(due_s, at_s))
