"""Waits that a stop cuts short, whatever they are for."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress


def cut_short(waits: Iterable[asyncio.Timeout], at_s: float = 0.0) -> None:
    """Have each end at a time of the event loop, in the past for now, if it would not before."""
    for wait in waits:
        due_s = wait.when()
        with suppress(RuntimeError):  # it is over just now
            wait.reschedule(at_s if due_s is None else min(due_s, at_s))
