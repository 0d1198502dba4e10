"""The slots of a runner and those who wait, between two chunks."""

import pytest

from service.engine.slots import Slots
from service.engine.terms import Terms
from service.errors import NotReady
from service.metrics import Metrics
from tests.service.engine.scripted import Call, ScriptedRunner


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


def test_all_end_once_however_often_they_are_ended() -> None:
    """As when a run that was stuck ends after the service has given it up."""
    calls = [Call() for _ in range(3)]
    slots = _slots(Metrics(), 2, calls)
    for states_known in (False, True):
        slots.end_all(NotReady("gone"), states_known=states_known)
    assert [call.pieces.qsize() for call in calls] == [1, 1, 1]


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
