"""Waits that a stop cuts short, whatever they are for, turns at the event loop, and rates."""

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


class TokenBucket:
    """So many a second, `burst` of them at once; others have to wait, up to `longest_s`."""

    def __init__(self, per_s: float, burst: int, longest_s: float) -> None:
        self._gap_s, self._burst, self._longest_s = 1 / per_s, burst, longest_s
        self._next_s = -math.inf  # when the next one would be due, were there no burst

    def wait_s(self, now_s: float) -> float:
        """How long the next one waits; it is its turn then."""
        self._next_s = max(self._next_s, now_s) + self._gap_s
        wait_s = max(0.0, self._next_s - now_s - self._burst * self._gap_s)
        if wait_s > self._longest_s:
            self._next_s -= self._gap_s  # nor does anybody after it wait for longer
        return min(wait_s, self._longest_s)


def cut_short(waits: Iterable[asyncio.Timeout], at_s: float = 0.0) -> None:
    """Have each end at a time of the event loop, in the past for now, if it would not before."""
    for wait in waits:
        due_s = wait.when()
        with suppress(RuntimeError):  # it is over just now
            wait.reschedule(at_s if due_s is None else min(due_s, at_s))
