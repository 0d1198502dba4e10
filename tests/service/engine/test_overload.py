"""Deadlines, refusals, slices and readers who do not read: what an engine does with too much."""

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from contract.golden import Arrays
from service.engine import terms
from service.engine.chunk import Chunks
from service.engine.engine import Engine
from service.engine.given import GivenSteps
from service.engine.pace import Pace
from service.errors import DeadlineExceeded, Overloaded, ServiceError
from service.text.sampling import Sampling
from tests.service.engine.scripted import (
    Call,
    NoFilters,
    ScriptedRunner,
    engine,
    limits,
    made_engine,
)
from tests.service.serving import eventually

_SCRIPT = b"0123456789" * 60
_STEP_S = 0.01  # of one row, as the engine is told


def _slow(runner: object) -> Pace:
    return Pace((_STEP_S, 0.0), (_STEP_S, 0.0))


def _idle(slots: int, max_wait_s: float) -> Engine:
    """A slow engine whose thread has not looked at its queue yet."""
    some = limits(max_wait_s=max_wait_s, queue_size=100)
    idle = made_engine(ScriptedRunner(_SCRIPT, slots), limits=some, measure=_slow)
    idle.ready, idle._pace = True, _slow(None)
    return idle


class _Gate:
    """Lets an engine do so many runs, then holds it."""

    def __init__(self) -> None:
        self._permits = threading.Semaphore(0)
        self.reached = 0

    def __call__(self, run: int) -> None:
        self.reached += 1
        assert self._permits.acquire(timeout=20)

    def allow(self, runs: int) -> None:
        self._permits.release(runs)


def _unwatched(**spec: Any) -> Call:
    """One whose first bytes nobody waits for."""
    call = Call(**spec)
    call.job.urgent = False
    return call


def test_a_request_past_its_deadline_ends_with_what_it_has() -> None:
    gate = _Gate()
    with engine(ScriptedRunner(_SCRIPT, during=gate)) as started:
        terms.agree(0.2, "")
        call = Call(max_tokens=500)
        started.submit([call.job])
        gate.allow(2)
        time.sleep(0.25)
        gate.allow(1)
        result = call.result()
        assert isinstance(result.pieces[-1].error, DeadlineExceeded)
        written = 3 + 8 + 8  # three runs: the last began in time
        assert result.text == _SCRIPT[:written].decode()


def test_one_that_waits_past_its_deadline_never_runs() -> None:
    gate = _Gate()
    runner = ScriptedRunner(_SCRIPT, width=1, during=gate)
    with engine(runner) as started:
        first = Call(max_tokens=6, streamed=False)
        started.submit([first.job])
        terms.agree(0.05, "")
        late = _unwatched(max_tokens=6, streamed=False)
        started.submit([late.job])
        time.sleep(0.1)
        gate.allow(20)
        assert first.result().text == _SCRIPT[:6].decode()
        (ended,) = late.result().pieces
        assert isinstance(ended.error, DeadlineExceeded)
        assert ended.moment is None  # it stands where it stood
        assert sum(run.steps for run in runner.runs) == 6


def test_what_would_start_too_late_is_refused_with_the_time_to_come_back() -> None:
    gate = _Gate()
    some = limits(max_wait_s=1.0, queue_size=100)
    with engine(ScriptedRunner(_SCRIPT, 1, gate), limits=some, measure=_slow) as started:
        started.submit([Call(max_tokens=100).job])
        assert eventually(lambda: gate.reached == 1)
        for _ in range(2):  # 200 steps are a second's worth and another
            started.submit([Call(max_tokens=100).job])
        with pytest.raises(Overloaded) as refused:
            started.submit([Call(max_tokens=100).job])
        assert refused.value.retry_after_s == 1
        started.submit([Call(max_tokens=20).job])  # who wants little waits for as little
        started.submit([Call(max_tokens=100).job], admitted=True)
        terms.agree(1e9, "another")
        started.submit([Call(max_tokens=100).job])
        terms.agree(0.5, "third")
        with pytest.raises(Overloaded):
            started.submit([Call(max_tokens=100).job])
        gate.allow(1_000)


def test_an_idle_engine_takes_as_many_at_once_as_it_has_slots() -> None:
    idle = _idle(slots=4, max_wait_s=0.5)
    for _ in range(5):
        idle.submit([Call(max_tokens=400).job])
    with pytest.raises(Overloaded):
        idle.submit([Call(max_tokens=400).job])


def test_who_has_less_time_than_the_service_gives_waits_for_less() -> None:
    idle = _idle(slots=1, max_wait_s=1.0)
    for _ in range(2):  # the second waits, with 0.8 s of work
        idle.submit([Call(max_tokens=80).job])
    terms.agree(0.5, "")
    with pytest.raises(Overloaded):
        idle.submit([Call(max_tokens=400).job])
    terms.agree(1e9, "")
    idle.submit([Call(max_tokens=400).job])


def test_a_session_that_has_new_terms_keeps_its_caller() -> None:
    terms.agree(1.0, "somebody")
    terms.agree(2.0)
    assert terms.current().caller == "somebody"
    agreed = terms.current()
    terms.shorten(1e6)
    assert terms.current() == agreed
    terms.shorten(1.0)
    assert terms.current().caller == "somebody"
    assert terms.current().deadline_s < agreed.deadline_s
    terms.agree(1e9, "")


def test_a_refusal_beforehand_is_that_of_a_queue_with_no_room() -> None:
    idle = made_engine(ScriptedRunner(_SCRIPT, 1), limits=limits(queue_size=1))
    idle.ready, idle._pace = True, Pace((1e-6, 0.0), (1e-6, 0.0))
    idle.submit([Call().job])
    assert idle.refusal(steps=1) is None
    idle.submit([Call().job])
    assert isinstance(idle.refusal(steps=1), Overloaded)


def test_who_is_late_already_is_not_told_to_come_back() -> None:
    idle = made_engine(ScriptedRunner(_SCRIPT, 1))
    idle.ready, idle._pace = True, Pace((1e-6, 0.0), (1e-6, 0.0))
    terms.agree(0.0, "")
    assert idle.refusal(steps=1) is None
    with pytest.raises(DeadlineExceeded):
        idle.submit([Call().job])
    terms.agree(1e9, "")


def test_a_long_answer_gives_its_slot_to_one_that_waits_and_loses_no_byte() -> None:
    some = limits(slice_s=0.0, queue_size=100)
    with engine(ScriptedRunner(_SCRIPT, width=1), limits=some) as started:
        calls = [_unwatched(max_tokens=300, wants_state=True) for _ in range(5)]
        started.submit([call.job for call in calls])
        results = [call.result() for call in calls]
    assert [result.text for result in results] == [_SCRIPT[:300].decode()] * 5
    assert [int(r.moment.state["position"]) for r in results] == [300] * 5


def test_slices_are_shared_step_by_step() -> None:
    gate = _Gate()
    runner = ScriptedRunner(_SCRIPT, width=1, during=gate)
    with engine(runner, limits=limits(slice_s=0.0)) as started:
        calls = [_unwatched(max_tokens=64) for _ in range(2)]
        started.submit([call.job for call in calls])
        gate.allow(8)
        assert eventually(lambda: len(runner.runs) == 8)
        done = [call.job.written for call in calls]
        assert abs(done[0] - done[1]) <= 8
        gate.allow(1_000)
        for call in calls:
            assert call.result().text == _SCRIPT[:64].decode()


def test_a_chunk_takes_no_longer_than_it_may() -> None:
    runner = ScriptedRunner(_SCRIPT)
    some = limits(chunk_steps=64, chunk_s=0.05)
    with engine(runner, limits=some, measure=_slow) as started:
        call = Call(max_tokens=40)
        started.submit([call.job])
        call.result()
    assert runner.runs[1].steps == 5  # of 10 ms each; then it finds that they take less
    assert max(run.steps for run in runner.runs) > 5


def test_a_chunk_has_four_steps_however_long_they_take() -> None:
    runner = ScriptedRunner(_SCRIPT)
    with engine(runner, limits=limits(chunk_s=0.02), measure=_slow) as started:
        call = Call(max_tokens=40)
        started.submit([call.job])
        call.result()
    assert [run.steps for run in runner.runs[:2]] == [3, 4]


def test_who_does_not_read_holds_no_slot() -> None:
    gate = _Gate()
    runner = ScriptedRunner(_SCRIPT, width=1, during=gate)
    with engine(runner) as started:
        unread, other = Call(max_tokens=30), Call(max_tokens=30)
        started.submit([unread.job])
        gate.allow(1)
        assert eventually(lambda: len(runner.runs) == 1)
        unread.job.paused = True
        started.submit([other.job])
        gate.allow(100)
        assert other.result().text == _SCRIPT[:30].decode()
        assert unread.job.written < 30
        unread.job.paused = False
        started.wake()
        assert unread.result().text == _SCRIPT[:30].decode()


def test_one_that_pauses_alone_is_found_by_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.engine.engine._LOOK_S", 0.05)
    with engine(ScriptedRunner(_SCRIPT)) as started:
        terms.agree(0.1, "")
        call = Call(max_tokens=30)
        call.job.paused = True
        started.submit([call.job])
        assert isinstance(call.result().pieces[-1].error, DeadlineExceeded)


def _split(apart: bool) -> Callable[[object], Pace]:
    """A filtered step that costs by its rows, or not."""
    return lambda runner: Pace((1e-6, 0.0), (1e-6, 1e-6 if apart else 0.0))


@pytest.mark.parametrize("apart", [True, False])
def test_filtered_rows_run_apart_where_that_is_faster(apart: bool) -> None:
    gate = _Gate()
    runner = ScriptedRunner(_SCRIPT, during=gate)
    with engine(runner, measure=_split(apart)) as started:
        calls = [Call(max_tokens=9, sampling=Sampling(top_p=p)) for p in (1.0, 1.0, 0.5, 1.0)]
        started.submit([call.job for call in calls])
        gate.allow(100)
        texts = {call.result().text for call in calls}
    assert texts == {_SCRIPT[:9].decode()}
    first = {(run.slots, run.filtered) for run in runner.runs[: 1 + apart]}
    together = {((0, 1, 2, 3), True)}
    assert first == ({((0, 1, 3), False), ((2,), True)} if apart else together)


def test_a_runner_that_moves_all_slots_is_not_asked_for_some() -> None:
    runner = ScriptedRunner(_SCRIPT)
    runner.divides = False
    calls = [Call(max_tokens=9, sampling=Sampling(top_p=p)) for p in (1.0, 0.5)]
    with engine(runner, measure=_split(True)) as started:
        started.submit([call.job for call in calls])
        assert {call.result().text for call in calls} == {_SCRIPT[:9].decode()}
    assert all(len(run.slots) == 2 for run in runner.runs)


def test_of_two_runs_the_one_that_fails_ends_its_own_rows_alone() -> None:
    plain, filtered = Call(max_tokens=40), Call(max_tokens=9, sampling=Sampling(top_p=0.5))
    with engine(NoFilters(_SCRIPT), measure=_split(True)) as started:
        started.submit([plain.job, Call(max_tokens=40).job, filtered.job])
        assert filtered.result().pieces[-1].error is not None
        assert plain.result().text == _SCRIPT[:40].decode()


class _Told(GivenSteps):
    """64 steps to read, and which of them the state is after that an end by an error tells."""

    def __init__(self) -> None:
        forced, uniform = np.zeros(64, np.int64), np.zeros(64, np.float32)
        steps = {"forced": forced, "force": np.ones(64, bool), "uniform": uniform}
        super().__init__({"position": np.zeros((), np.int64)}, Sampling().row(), steps)
        self.ended, self.told = threading.Event(), list[int]()
        self.done = lambda job: self.ended.set()

    def fail(self, error: ServiceError, state: Arrays | None = None) -> None:
        assert state is not None
        self.told.append(int(state["position"]))
        super().fail(error, state)


def test_steps_that_were_given_are_read_in_long_chunks() -> None:
    runner, job = ScriptedRunner(_SCRIPT), _Told()
    with engine(runner, chunk=32) as started:
        started.submit([job])
        assert job.ended.wait(20)
    assert [run.steps for run in runner.runs] == [32, 32]


def test_an_answer_that_is_not_watched_takes_no_short_first_chunk() -> None:
    runner = ScriptedRunner(_SCRIPT)
    with engine(runner) as started:
        call = _unwatched(max_tokens=16)
        started.submit([call.job])
        call.result()
    assert [run.steps for run in runner.runs] == [8, 8]


def test_a_prompt_is_read_in_long_chunks_until_its_end() -> None:
    runner = ScriptedRunner(_SCRIPT)
    with engine(runner) as started:
        call = Call(prompt=b"x" * 20, max_tokens=9)
        started.submit([call.job])
        call.result()
    assert [run.steps for run in runner.runs][:3] == [8, 8, 5]


def test_what_is_ended_by_a_stop_says_where_it_stands() -> None:
    gate, job = _Gate(), _Told()
    with engine(ScriptedRunner(_SCRIPT, during=gate)) as started:
        started.submit([job])
        gate.allow(1)
        assert eventually(lambda: gate.reached == 2)
        started.tell_to_stop()
        gate.allow(10)
    assert job.told == [2 * 8]


def test_rows_beside_a_run_that_failed_stand_where_they_did_if_no_runner_is_good() -> None:
    """Another run of the same chunk fails, and what replaces its runner is not attested."""
    first, plain = NoFilters(_SCRIPT), _Told()
    filtered = Call(max_tokens=9, sampling=Sampling(top_p=0.5))
    another: dict[str, Any] = {"another": lambda: ScriptedRunner(_SCRIPT)}
    another |= {"attest": lambda runner: runner is first}
    with engine(first, measure=_split(True), **another) as started:
        started.submit([plain, Call(max_tokens=40).job, filtered.job])
        assert plain.ended.wait(20)
    assert plain.told == [sum(run.steps for run in first.runs)] == [3]


def test_of_jobs_that_come_together_the_first_says_for_how_long_others_hold_it_up() -> None:
    idle = _idle(slots=1, max_wait_s=0.5)
    for _ in range(2):  # the second waits, with 0.8 s of work
        idle.submit([Call(max_tokens=80).job])
    with pytest.raises(Overloaded):
        idle.submit([Call(max_tokens=80).job, Call(max_tokens=20).job])
    idle.submit([Call(max_tokens=20).job, Call(max_tokens=80).job])


def test_a_chunk_in_two_runs_is_as_long_as_both_take() -> None:
    """And however many rows it has, who had a slot all along has done its steps once."""
    runner = ScriptedRunner(_SCRIPT)
    pace, some = Pace((1e-3, 0.0), (1e-3, 1.0)), limits(chunk_steps=64, chunk_s=0.02)
    idle = made_engine(runner, limits=some)
    idle._pace, idle._chunks = pace, Chunks(idle._slots, pace, some, idle._metrics)
    idle.ready = True
    calls = [_unwatched(max_tokens=80, sampling=Sampling(top_p=p)) for p in (1.0, 1.0, 0.5)]
    idle.submit([call.job for call in calls])
    idle._admit()
    idle._run_chunk()
    assert [(run.slots, run.steps) for run in runner.runs] == [((0, 1), 10), ((2,), 10)]
    assert idle._slots.schedule.steps == 10
