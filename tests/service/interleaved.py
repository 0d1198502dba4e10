"""Two threads of which one comes in the midst of what the other does under a lock, without a clock:
the lock tells that somebody found it taken. And an event loop that others wake."""

from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition, Event, RLock, Thread
from typing import Any

_PATIENCE_S = 20.0  # only what is wrong takes as long


class WatchedLock(Condition):
    """In the place of a lock or a condition; and a second thread that wants it."""

    def __init__(self) -> None:
        super().__init__()
        self._met = Event()  # the second thread has ended, or waits
        self._second: Thread | None = None

    def __enter__(self) -> bool:
        if not self.acquire(blocking=False):
            self._met.set()
            self.acquire()
        return True

    def beside(self, call: Callable[[], object], until: Event | None = None) -> None:
        """Have the second thread do this, of all that it is asked for the first alone. Returns when
        that has ended or waits for the lock: where the lock is forgotten it has ended, and what it
        changed is there too early. Or when `until` is set."""
        if self._second is not None:
            return

        def run() -> None:
            try:
                call()
            finally:
                self.ended()

        self._second = Thread(target=run, daemon=True)
        self._second.start()
        _await(until or self._met)

    def meet(self, go_on: Callable[[], None]) -> None:
        """Have the second thread go on; returns as `beside` does."""
        go_on()
        _await(self._met)

    def ended(self) -> None:
        """The second thread has done what it wanted the lock for; to be said where it is another's
        than that of `beside`."""
        self._met.set()

    def join(self) -> None:
        """Wait for the second thread to end."""
        assert self._second is not None
        self._second.join(_PATIENCE_S)
        assert not self._second.is_alive()


class WatchedTurn:
    """In the place of a runner's turn; `wanted` is set once somebody finds it taken."""

    def __init__(self) -> None:
        self.wanted = Event()
        self._lock = RLock()

    def acquire(self, blocking: bool = True) -> bool:
        if self._lock.acquire(blocking=False):
            return True
        if blocking:
            self.wanted.set()
        return self._lock.acquire(blocking)

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


@contextmanager
def another_has(turn: Any) -> Iterator[None]:
    """Another thread has a runner's turn meanwhile, as another model on its GPU would."""
    has, gives = Event(), Event()

    def hold() -> None:
        with turn:
            has.set()
            gives.wait(_PATIENCE_S)

    thread = Thread(target=hold, daemon=True)
    thread.start()
    _await(has)
    try:
        yield
    finally:
        gives.set()
        thread.join(_PATIENCE_S)


def _await(event: Event) -> None:
    assert event.wait(_PATIENCE_S), "the second thread waits, but not for the lock that is watched"


def wakes(loop: AbstractEventLoop) -> list[tuple[Any, ...]]:
    """What it will be woken for from other threads: the call and its arguments."""
    woken, wake = list[tuple[Any, ...]](), loop.call_soon_threadsafe

    def noted(*call: Any) -> Any:
        woken.append(call)
        return wake(*call)

    loop.call_soon_threadsafe = noted  # type: ignore[method-assign]
    return woken
