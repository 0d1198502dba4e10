"""Two threads that work beside the event loop choose, and end, at the same time."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from threading import Event

from service.http.aside import Aside, _Work
from tests.service.interleaved import WatchedLock


class _Busy(Counter[str]):
    """How many of each caller's are at work; whoever reads that next calls `meanwhile`."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], None] | None = None

    def __getitem__(self, caller: str) -> int:
        found, meanwhile, self.meanwhile = super().__getitem__(caller), self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return found


def _aside(work: dict[str, Callable[[], object]], caller: str) -> tuple[Aside, _Busy, WatchedLock]:
    """One that has so much to do, for this caller."""
    aside, busy, lock = Aside(), _Busy(), WatchedLock()
    aside._busy, aside._lock = busy, lock  # type: ignore[assignment]
    aside._waiting += [_Work(caller, do) for do in work.values()]
    return aside, busy, lock


def test_two_threads_that_choose_at_once_do_not_choose_the_same() -> None:
    """The other one would be done by nobody, and whoever waits for it would wait for ever."""
    done = list[str]()
    aside, busy, lock = _aside({n: partial(done.append, n) for n in ("one", "other")}, "alice")
    busy.meanwhile = lambda: lock.beside(aside._do_next)
    aside._do_next()
    lock.join()
    assert sorted(done) == ["one", "other"]
    assert not aside._waiting


def test_two_threads_that_end_at_once_are_both_counted_out() -> None:
    """A caller that had work at them for ever would have its turn after everybody else."""
    begun, end = Event(), Event()

    def held() -> None:
        begun.set()
        end.wait()

    def ends() -> None:
        busy.meanwhile = lambda: lock.meet(end.set)

    aside, busy, lock = _aside({"held": held, "ends": ends}, "alice")
    lock.beside(aside._do_next, until=begun)
    aside._do_next()
    lock.join()
    assert dict(busy) == {}
