"""Engines that share cores: who may use how many threads."""

import threading

import pytest

from service.engine.core_budget import CoreBudget
from tests.service.engine.scripted import Call, ScriptedRunner, limits, made_engine
from tests.service.interleaved import WatchedLock
from tests.service.serving import eventually


def test_who_is_alone_has_all_threads_and_others_at_work_take_them() -> None:
    budget = CoreBudget(cores=2)
    one, other = budget.share(2), budget.share(2)
    assert not one.oversubscribed
    one.acquire()
    one.acquire()  # of the same engine, chunk after chunk
    assert (one.oversubscribed, other.oversubscribed) == (False, True)
    other.acquire()
    assert one.oversubscribed
    assert other.oversubscribed
    one.release()
    one.release()
    assert not other.oversubscribed
    other.release()
    assert budget.wanted == 0


def test_engines_that_begin_at_once_are_both_counted() -> None:
    """With one of them forgotten both would take all cores, for ever."""
    budget, lock = CoreBudget(cores=2), WatchedLock()
    one, other = budget.share(2), budget.share(2)

    class Wanted(int):
        def __add__(self, threads: int) -> int:
            lock.beside(other.acquire)
            return int(self) + threads

    budget.wanted, budget._lock = Wanted(), lock  # type: ignore[assignment]
    one.acquire()
    lock.join()
    assert budget.wanted == 4


@pytest.mark.parametrize(
    ("cores", "threads", "oversubscribed"), [(2, 1, False), (4, 2, False), (3, 2, True)]
)
def test_nobody_steps_back_while_there_are_cores_for_all(
    cores: int, threads: int, oversubscribed: bool
) -> None:
    budget = CoreBudget(cores)
    budget.share(threads).acquire()
    assert budget.share(threads).oversubscribed is oversubscribed


def test_who_has_no_more_than_would_be_left_to_it_never_steps_back() -> None:
    budget = CoreBudget(cores=4)
    for threads in (4, 2):
        budget.share(threads).acquire()
    assert [budget.share(threads).oversubscribed for threads in (1, 2, 3, 4)] == [
        False, False, True, True,
    ]  # fmt: skip


@pytest.mark.parametrize(("cores", "fewer"), [(1, 1), (2, 1), (5, 2), (8, 4)])
def test_who_steps_back_keeps_half_of_the_cores_and_one_at_least(cores: int, fewer: int) -> None:
    """0 threads would be all of them to onnxruntime."""
    assert CoreBudget(cores).share(8).fewer == fewer


def test_an_engine_has_its_share_while_it_has_work() -> None:
    budget, runs = CoreBudget(cores=2), threading.Event()
    share, other = budget.share(2), budget.share(2)
    runner = ScriptedRunner(b"abcdefgh" * 8, during=lambda number: runs.wait(10))
    engine = made_engine(runner, limits=limits(), share=share)
    engine.start()
    assert engine.attested.wait(10)
    assert not other.oversubscribed
    call = Call(max_tokens=4)
    engine.submit([call.job])
    assert eventually(lambda: other.oversubscribed)
    runs.set()
    assert eventually(lambda: not other.oversubscribed)
    runs.clear()
    engine.submit([Call(max_tokens=4).job])
    assert eventually(lambda: other.oversubscribed)
    engine.tell_to_stop()  # in the middle of it
    runs.set()
    engine.stop()
    assert budget.wanted == 0
