"""On whose behalf the present task asks for work, and until when it is wanted."""

import asyncio
import math
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

from service.errors import DeadlineExceeded


@dataclass(frozen=True, slots=True)
class Terms:
    """The `caller`, who takes turns with others, and until when the answer is wanted: `deadline_s`
    is a time of `time.monotonic`."""

    caller: str = ""
    deadline_s: float = math.inf


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


def once_stuck(tell: Callable[[], object]) -> asyncio.TimerHandle:
    """Have this called once an engine that has not ended what the task waits for, as it ends all
    that is past its deadline, has to be stuck. Who waits no more cancels that."""
    return asyncio.get_running_loop().call_at(current().deadline_s + _GRACE_S, tell)


def late() -> DeadlineExceeded:
    """What ends whatever takes too long."""
    return DeadlineExceeded("it could not be finished within its deadline")
