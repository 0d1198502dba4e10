"""The slots of a runner and those who wait, between two chunks."""

from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from contract.golden import Arrays
from service.engine.chunk import Chunks
from service.engine.pace import Pace
from service.engine.slots import Slots
from service.engine.terms import Terms
from service.errors import DeadlineExceeded, NotReady
from service.metrics import Metrics
from tests.service.engine.scripted import Call, ScriptedRunner, limits
from tests.service.interleaved import WatchedLock


def _slots(metrics: Metrics, width: int, calls: list[Call]) -> Slots:
    """With these jobs, of which as many have a slot as there are."""
    slots = Slots(ScriptedRunner(b"abc", width), metrics.of_engine("it"), slice_s=1e9)
    slots.schedule.add([call.job for call in calls], Terms())
    slots.tend(0.0)
    return slots


def _counted(metrics: Metrics) -> list[float | None]:
    names = ("evenkeel_requests_running", "evenkeel_requests_waiting")
    return [metrics.registry.get_sample_value(name, {"model": "it"}) for name in names]


def test_who_runs_and_who_waits_is_counted() -> None:
    metrics = Metrics()
    slots = _slots(metrics, 2, [Call() for _ in range(5)])
    assert _counted(metrics) == [2, 3]
    slots.end_all(NotReady("gone"), states_known=True)
    assert _counted(metrics) == [0, 0]


def test_who_comes_while_those_who_wait_are_counted_is_counted_out_as_well() -> None:
    """They were told as waiting for as long as the service ran."""
    metrics, gone, late = Metrics(), Call(), [Call(), Call()]
    slots = _slots(metrics, 1, [Call(), gone])
    lock, waiting = WatchedLock(), slots._metrics.waiting
    slots.lock, gauge = lock, waiting._gauge

    def come() -> None:
        with slots.lock:
            slots.schedule.add([call.job for call in late], Terms())
            waiting.set(len(slots.schedule.waiting))

    def inc(by: float) -> None:
        lock.beside(come)
        gauge.inc(by)

    waiting._gauge = SimpleNamespace(inc=inc)  # type: ignore[assignment]
    gone.job.cancelled = True
    slots.tend(0.0)
    lock.join()
    assert _counted(metrics) == [1, 2]
    slots.end_all(NotReady("gone"), states_known=True)
    assert _counted(metrics) == [0, 0]


def test_all_end_once_however_often_they_are_ended() -> None:
    """As when a run that was stuck ends after the service has given it up."""
    calls = [Call() for _ in range(3)]
    slots = _slots(Metrics(), 2, calls)
    for states_known in (False, True):
        slots.end_all(NotReady("gone"), states_known=states_known)
    assert [call.pieces.qsize() for call in calls] == [1, 1, 1]


class _Turn:
    """Has noted, of each time that somebody had it, what was asked of the device meanwhile."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self._depth = 0

    def __enter__(self) -> None:
        if not self._depth:
            self.asked.append([])
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1


class _OnADevice(ScriptedRunner):
    """Loads and reads in its turn, as all do that share a device; a load may be `stuck`, or fail
    once it is `broken`."""

    def __init__(self, width: int) -> None:
        super().__init__(b"every byte of this text is known", width)
        self.turn: Any = _Turn()
        self.broken = False
        self.loaded = 0

    def load(self, slot: int, state: Arrays) -> None:
        with self.turn:
            self.turn.asked[-1].append("load")
            self.loaded += 1
            self.stuck()
            if self.broken:
                raise OSError("the device is out of memory")
            super().load(slot, state)

    def read(self, slot: int) -> Arrays:
        with self.turn:
            self.turn.asked[-1].append("read")
            return super().read(slot)

    def stuck(self) -> None:
        """Until it returns."""


def test_jobs_that_change_places_together_have_one_turn_at_the_device() -> None:
    """Another model on it would run a chunk before each of them."""
    runner, calls = _OnADevice(3), [Call() for _ in range(3)]
    slots = Slots(runner, Metrics().of_engine("it"), slice_s=1e9)
    slots.schedule.add([call.job for call in calls], Terms())
    slots.tend(0.0)
    for paused in (True, False):  # parked, and loaded again
        for call in calls:
            call.job.paused = paused
        slots.tend(0.0)
    slots.move_to(runner)
    slots.tend(0.0)
    slots.end_all(NotReady("gone"), states_known=True)
    assert runner.turn.asked == [["load"] * 3, ["read"] * 3] * 3


def test_so_have_the_jobs_of_a_chunk_that_want_their_states() -> None:
    """Before it, after it, and when they go back to where they ended."""
    runner, metrics = _OnADevice(3), Metrics().of_engine("it")
    calls = [Call(max_tokens=20, wants_state=True, checkpoint_steps=1) for _ in range(3)]
    slots = Slots(runner, metrics, slice_s=1e9)
    pace = Pace((1e-6, 0.0), (1e-6, 0.0))
    chunks = Chunks(slots, pace, limits(), metrics)
    slots.schedule.add([call.job for call in calls], Terms())
    slots.tend(0.0)
    while slots.schedule.slots:
        jobs = [ticket.job for ticket in slots.schedule.slots.values()]
        chunks.run([0, 1, 2], chunks.steps_for(jobs, 1e-6), filtered=False)
    assert [call.result().finish_reason for call in calls] == ["length"] * 3
    loads, reads = ["load"] * 3, ["read"] * 3
    told = runner.turn.asked
    assert told[0] == loads
    assert len(told) > 6
    assert all(asked in (loads, reads) for asked in told)


def test_who_has_nothing_to_ask_of_the_device_waits_for_no_turn() -> None:
    """It may be stuck, and they have deadlines."""
    runner, late = _OnADevice(1), Call()
    late.job.paused = True
    slots = Slots(runner, Metrics().of_engine("it"), slice_s=1e9)
    slots.schedule.add([late.job], Terms(deadline_s=1.0))
    slots.tend(2.0)
    slots.end_all(NotReady("gone"), states_known=True)
    assert isinstance(late.result().pieces[-1].error, DeadlineExceeded)
    assert runner.turn.asked == []


def _parked(runner: _OnADevice) -> tuple[Slots, list[Call]]:
    """Two that are to have the slots they had, which stand at 5 and 6; others had them since."""
    slots = Slots(runner, Metrics().of_engine("it"), slice_s=0.0)
    calls = [Call(max_tokens=40) for _ in range(2)]
    slots.schedule.add([call.job for call in calls], Terms())
    for number, ticket in enumerate(slots.schedule.waiting):
        ticket.job.state, ticket.served = {"position": np.array(5 + number)}, True
    runner._position[:] = 99
    return slots, calls


def _stood_at(calls: list[Call]) -> list[int]:
    return [int(call.result().moment.state["position"]) for call in calls]


def test_who_could_not_be_loaded_is_told_its_own_state() -> None:
    """And not that of who had the slot before."""
    runner = _OnADevice(2)
    slots, calls = _parked(runner)
    runner.broken = True
    with pytest.raises(OSError, match="out of memory"):
        slots.tend(0.0)
    slots.end_all(NotReady("the model has stopped"), states_known=True)
    assert _stood_at(calls) == [5, 6]


def test_who_has_not_run_since_it_was_parked_can_go_on_though_the_device_is_stuck() -> None:
    """Elsewhere: of the one in a slot and of the one that is being loaded it is known where they
    stand."""
    runner, stuck, go_on = _OnADevice(2), Event(), Event()
    slots, calls = _parked(runner)

    def sticks() -> None:
        if runner.loaded == 2:
            stuck.set()
            go_on.wait(20)

    runner.stuck = sticks  # type: ignore[method-assign]
    thread = Thread(target=slots.tend, args=(0.0,))
    thread.start()
    assert stuck.wait(20)
    slots.end_all(NotReady("the model is stuck"), states_known=False)
    go_on.set()
    thread.join(20)
    assert _stood_at(calls) == [5, 6]
    assert not slots.schedule.slots


def test_a_slot_that_is_free_is_taken_and_no_other() -> None:
    calls = [Call() for _ in range(3)]
    slots = _slots(Metrics(), 2, calls)
    slots.retire(0)
    following = slots.schedule.next(0.0)
    assert following is not None
    assert (following[0], following[1].job) == (0, calls[2].job)


@pytest.mark.parametrize(
    ("width", "calls", "occupied"), [(1, 1, 0), (5, 1, 0), (5, 3, 0.5), (5, 5, 1), (5, 9, 1)]
)
def test_slots_are_as_full_as_they_are_beside_one(width: int, calls: int, occupied: float) -> None:
    """Who has them alone is shown all at once."""
    assert _slots(Metrics(), width, [Call() for _ in range(calls)]).occupied == occupied
