"""On whose behalf the present task asks for work, and until when it is wanted."""

import asyncio
import math
import time
from collections.abc import Awaitable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

from service.errors import DeadlineExceeded


@dataclass(frozen=True, slots=True)
class Terms:
    """The `caller`, who takes turns with others, and until when the answer is wanted: `deadline_s`
    is a time of `time.monotonic`."""

    caller: str = ""
    deadline_s: float = math.inf


T = TypeVar("T")
_NOBODY = Terms()
# Whatever runs or waits is ended between two chunks; a chunk takes milliseconds.
_GRACE_S = 5.0
_terms: ContextVar[Terms] = ContextVar("terms", default=_NOBODY)


def current() -> Terms:
    """The terms of whatever this asyncio task submits."""
    return _terms.get()


def agree(within_s: float, caller: str | None = None) -> None:
    """From now on this task asks on behalf of `caller`, or of the same as before if that is None,
    who waits for `within_s` from now."""
    known = current().caller if caller is None else caller
    _terms.set(Terms(known, time.monotonic() + within_s))


def shorten(within_s: float | None) -> None:
    """Bring the deadline forward to `within_s` from now. None changes nothing, nor does a time
    after the present deadline."""
    if within_s is not None:
        terms = current()
        _terms.set(Terms(terms.caller, min(terms.deadline_s, time.monotonic() + within_s)))


async def in_time(waited: Awaitable[T]) -> T:
    """Wait for an engine, which ends what is past its deadline; but not for one that is stuck.
    Raises `DeadlineExceeded`."""
    try:
        async with asyncio.timeout_at(current().deadline_s + _GRACE_S):
            return await waited
    except TimeoutError as error:
        raise late() from error


def late() -> DeadlineExceeded:
    """What ends whatever takes too long."""
    return DeadlineExceeded("it could not be finished within its deadline")
