"""A short job of an idle engine runs where it was asked for, and nothing else changes."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from contract.golden import Arrays
from contract.noise import UniformStream
from service.engine import terms
from service.engine.engine import MOST_FAILURES, Engine
from service.engine.given import GivenSteps
from service.engine.pace import Pace
from service.errors import DeadlineExceeded, EngineFault
from service.metrics import Metrics
from tests.service.engine.scripted import SEED, Call, ScriptedRunner, engine, sleeps
from tests.service.interleaved import another_has
from tests.service.serving import eventually

_SCRIPT = b"every byte of this text is known beforehand, so a wrong one would show"


def _job(steps: int = 3, first: int = 0) -> GivenSteps:
    """The next bytes of the script."""
    inputs = {
        "forced": np.zeros(steps, np.int64),
        "force": np.zeros(steps, bool),
        "uniform": UniformStream(SEED).take(first, steps),
    }
    return GivenSteps({"position": np.asarray(first)}, {}, inputs, wants_state=True)


def _wrote(job: GivenSteps) -> bytes:
    return bytes(job.outputs["next"].astype(np.uint8))


class _Where(ScriptedRunner):
    """Notes the thread of each run, and that there is never more than one."""

    def __init__(self, during: Callable[[int], None] = lambda number: None) -> None:
        super().__init__(_SCRIPT, during=during)
        self.threads: list[int] = []
        self._one = threading.Lock()

    def run(self, slots: Sequence[int], steps: Arrays, row: Arrays, *, filtered: bool) -> Arrays:
        assert self._one.acquire(blocking=False), "two runs at once"
        try:
            self.threads.append(threading.get_ident())
            return super().run(slots, steps, row, filtered=filtered)
        finally:
            self._one.release()


def _rested(engine: Engine, job: GivenSteps) -> bool:
    """Whether it ran, after a pause that is long for a run."""
    time.sleep(0.02)
    return engine.run_now(job)


def test_a_job_has_ended_on_the_thread_that_asked() -> None:
    runner = _Where()
    with engine(runner) as started:
        assert eventually(lambda: _rested(started, _job()))
        job = _job(steps=5, first=4)
        assert _rested(started, job)
        assert _wrote(job) == _SCRIPT[4:9]
        assert job.state["position"] == 9
        call = Call(max_tokens=9)
        started.submit([call.job])
        assert call.result().text == _SCRIPT[:9].decode()
    assert set(runner.threads[:2]) == {threading.get_ident()}
    assert threading.get_ident() not in runner.threads[2:]


def test_a_busy_engine_is_not_disturbed() -> None:
    going = threading.Event()
    runner = _Where(during=lambda number: going.wait(20))
    with engine(runner) as started:
        call = Call(max_tokens=9)
        started.submit([call.job])
        job = _job()
        assert eventually(lambda: started.stalled_s > 0)
        assert not started.run_now(job)
        going.set()
        assert call.result().text == _SCRIPT[:9].decode()
    assert threading.get_ident() not in runner.threads


def test_a_runner_that_would_wait_is_not_waited_for() -> None:
    runner = _Where()
    with engine(runner) as started:
        assert eventually(lambda: _rested(started, _job()))
        with another_has(runner.turn):
            assert not _rested(started, _job())
        assert eventually(lambda: _rested(started, _job()))


def test_nobody_is_overtaken() -> None:
    runner = _Where()
    with engine(runner) as started:
        call = Call()
        call.job.paused = True
        started.submit([call.job])
        assert not _rested(started, _job())
        call.job.paused = False
        started.wake()
        assert call.result().text == _SCRIPT[:8].decode()
        assert eventually(lambda: _rested(started, _job()))


@pytest.mark.parametrize(("steps", "step_s", "ran"), [(3, 6e-4, True), (4, 6e-4, False)])
def test_only_what_is_short_runs_there(steps: int, step_s: float, ran: bool) -> None:
    slow: dict[str, Any] = {"measure": lambda runner: Pace((step_s, 0.0), (step_s, 0.0))}
    with engine(_Where(), **slow) as started:
        assert eventually(lambda: sleeps(started))
        assert _rested(started, _job(steps)) is ran


def test_what_is_long_with_filters_does_not_run_there() -> None:
    slow: dict[str, Any] = {"measure": lambda runner: Pace((1e-6, 0.0), (1.0, 0.0))}
    with engine(_Where(), **slow) as started:
        assert eventually(lambda: sleeps(started))
        filtered = _job()
        filtered.filtered = True
        assert not _rested(started, filtered)
        assert _rested(started, _job())


def test_more_steps_than_a_chunk_has_do_not() -> None:
    with engine(_Where(), chunk=4) as started:
        assert eventually(lambda: sleeps(started))
        assert not _rested(started, _job(5))
        assert _rested(started, _job(4))


def test_the_thread_keeps_time_for_others() -> None:
    with engine(_Where(during=lambda number: time.sleep(0.1))) as started:
        assert eventually(lambda: sleeps(started))
        began_s = time.monotonic()
        assert started.run_now(_job())
        most_s = time.monotonic() - began_s  # that it took, on a busy machine more than it slept
        assert not started.run_now(_job())
        assert started._now_again_s - began_s <= most_s * 3 / 2 + 1e-3
        assert eventually(lambda: started.run_now(_job()))


def test_no_more_than_two_thirds_of_it_are_taken() -> None:
    taken_s = 0.05
    with engine(_Where(during=lambda number: time.sleep(taken_s))) as started:
        assert eventually(lambda: sleeps(started))
        began_s = time.monotonic()
        assert started.run_now(_job())
        assert started._now_again_s - began_s >= taken_s * 3 / 2


def test_a_job_that_comes_too_late_is_refused_by_the_queue() -> None:
    with engine(_Where()) as started:
        assert eventually(lambda: sleeps(started))
        terms.agree(-1.0)
        assert not _rested(started, _job())
        with pytest.raises(DeadlineExceeded):
            started.submit([_job()])
        terms.agree(1e9)
        assert _rested(started, _job())


@pytest.mark.parametrize(
    ("what", "value"), [("_failed", OSError("gone")), ("ready", False), ("_stopping", True)]
)
def test_nothing_runs_on_what_is_no_good_though_its_thread_has_yet_to_look(
    what: str, value: object
) -> None:
    with engine(_Where()) as started:
        assert eventually(lambda: _rested(started, _job()))
        before = getattr(started, what)
        with started._wake:  # so that its thread sees nothing of this
            setattr(started, what, value)
            assert not _rested(started, _job())
            setattr(started, what, before)
        assert eventually(lambda: _rested(started, _job()))


def test_who_asks_while_the_engine_looks_at_its_queue_does_not_wait() -> None:
    looks, asked = threading.Event(), threading.Event()

    def look(started: Engine) -> None:
        with started._wake:
            looks.set()
            asked.wait(2)

    with engine(_Where()) as started:
        assert eventually(lambda: _rested(started, _job()))
        looking = threading.Thread(target=look, args=(started,))
        looking.start()
        assert looks.wait(20)
        assert not _rested(started, _job())
        asked.set()
        looking.join()


def test_an_engine_that_has_stopped_runs_nothing() -> None:
    with engine(_Where()) as started:
        assert eventually(lambda: _rested(started, _job()))
    assert not started.run_now(_job())


class _Failing(_Where):
    def __init__(self, spoil: float | None) -> None:
        super().__init__()
        self._spoil = spoil

    def run(self, slots: Sequence[int], steps: Arrays, row: Arrays, *, filtered: bool) -> Arrays:
        outputs = super().run(slots, steps, row, filtered=filtered)
        if self._spoil is None:
            raise OSError("the device fell off the bus")
        outputs["logits"][0, 0, 65] = self._spoil
        return outputs


@pytest.mark.parametrize("spoil", [None, np.nan, np.inf])
def test_after_one_that_fails_another_runner_is_attested_on_the_engines_thread(
    spoil: float | None,
) -> None:
    metrics, fresh, attested = Metrics(), _Where(), []

    def attest(runner: Any) -> bool:
        attested.append((runner, threading.get_ident()))
        return True

    more = {"metrics": metrics, "attest": attest, "another": lambda: fresh}
    with engine(_Failing(spoil), **more) as started:
        assert eventually(lambda: sleeps(started))
        with pytest.raises(EngineFault, match="the run of the model failed"):
            started.run_now(_job())
        job = _job()
        assert eventually(lambda: _rested(started, job))
        assert _wrote(job) == _SCRIPT[:3]
        assert attested[1][0] is fresh
        assert attested[1][1] != threading.get_ident()
        assert started.ready
    found = metrics.registry.get_sample_value
    assert found("evenkeel_engine_faults_total", {"model": "scripted"}) == 1


def test_a_recovery_from_one_that_hangs_is_seen() -> None:
    healed = threading.Event()
    attests = iter([lambda: True, lambda: healed.wait(20)])
    more: dict[str, Any] = {"attest": lambda runner: next(attests)(), "another": _Where}
    with engine(_Failing(None), **more) as started:
        assert eventually(lambda: sleeps(started))
        with pytest.raises(EngineFault):
            started.run_now(_job())
        assert eventually(lambda: started.stalled_s > 0)
        healed.set()
        assert eventually(lambda: _rested(started, _job()))
        assert started.stalled_s == 0


def test_failures_in_a_row_make_it_not_ready() -> None:
    with engine(_Failing(None), another=lambda: _Failing(None)) as started:
        for _ in range(MOST_FAILURES):
            assert eventually(lambda: sleeps(started) and started._failed is None)
            with pytest.raises(EngineFault):
                started.run_now(_job())
        assert eventually(lambda: not started.ready)
        assert not started.run_now(_job())


class _Shaky(_Where):
    """Fails at every other run; all such runners count them together."""

    runs_of_all = 0

    def run(self, slots: Sequence[int], steps: Arrays, row: Arrays, *, filtered: bool) -> Arrays:
        _Shaky.runs_of_all += 1
        if _Shaky.runs_of_all % 2:
            raise OSError("the device fell off the bus")
        return super().run(slots, steps, row, filtered=filtered)


def test_failures_with_others_between_do_not() -> None:
    with engine(_Shaky(), another=_Shaky) as started:

        def fails() -> bool:
            try:
                _rested(started, _job())
            except EngineFault:
                return True
            return False

        for _ in range(MOST_FAILURES + 1):
            assert eventually(fails)
            assert eventually(lambda: _rested(started, _job()))
        assert started.ready


def test_threads_that_submit_and_one_that_runs_are_never_two_at_once() -> None:
    runner = _Where()
    results: list[str] = []

    def ask() -> None:
        for _ in range(30):
            call = Call(max_tokens=5)
            started.submit([call.job])
            results.append(call.result().text)

    with engine(runner, queue=100) as started:
        askers = [threading.Thread(target=ask) for _ in range(3)]
        for asker in askers:
            asker.start()
        ran = 0
        while any(asker.is_alive() for asker in askers):
            job = _job(first=2)
            if started.run_now(job):
                ran += 1
                assert _wrote(job) == _SCRIPT[2:5]
        assert results == [_SCRIPT[:5].decode()] * 90
        assert ran
