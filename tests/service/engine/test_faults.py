"""A run that fails ends its rows and nobody else's; a model that keeps failing is not ready."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from contract.golden import Arrays
from service.engine.engine import MOST_FAILURES
from service.engine.given import GivenSteps, Replay, run_steps
from service.engine.pace import Pace
from service.engine.runners import Runner
from service.errors import EngineFault, NotReady
from service.metrics import Metrics
from service.text.sampling import Sampling
from tests.service.engine.scripted import Call, NoFilters, ScriptedRunner, engine, made_engine
from tests.service.serving import Service, eventually, held, running, settings

_SCRIPT = b"every byte of this text is known beforehand, so a wrong one would show"


class _Failing(ScriptedRunner):
    """Fails at the runs whose numbers are given, or puts out what `spoil` makes of its logits."""

    def __init__(self, *numbers: int, spoil: float | None = None) -> None:
        super().__init__(_SCRIPT)
        self._numbers, self._spoil = numbers, spoil

    def run(self, slots: Sequence[int], steps: Arrays, row: Arrays, *, filtered: bool) -> Arrays:
        number = len(self.runs)
        outputs = super().run(slots, steps, row, filtered=filtered)
        if number in self._numbers:
            if self._spoil is None:
                raise OSError("the device fell off the bus")
            outputs["logits"][0, 0, 65] = self._spoil
        return outputs


@pytest.mark.parametrize("spoil", [None, np.nan, np.inf])
def test_the_rows_of_a_run_that_fails_end_and_the_next_are_served(spoil: float | None) -> None:
    metrics, fresh = Metrics(), ScriptedRunner(_SCRIPT)
    with engine(_Failing(1, spoil=spoil), another=lambda: fresh, metrics=metrics) as started:
        calls = [Call(max_tokens=20) for _ in range(3)]
        started.submit([call.job for call in calls])
        for call in calls:
            assert isinstance(call.result().pieces[-1].error, EngineFault)
        after = Call(max_tokens=20)
        started.submit([after.job])
        assert after.result().text == _SCRIPT[:20].decode()
        assert started.ready
        assert fresh.runs
    found = metrics.registry.get_sample_value
    assert found("evenkeel_engine_faults_total", {"model": "scripted"}) == 1
    # Three of each of the first, and all that came after: those of the failed run do not count.
    assert found("evenkeel_steps_total", {"model": "scripted"}) == 3 * 3 + 20


def test_what_waits_while_a_run_fails_is_served_whole() -> None:
    with engine(_Failing(1), another=lambda: ScriptedRunner(_SCRIPT)) as started:
        calls = [Call(max_tokens=20) for _ in range(7)]  # of which four run at once
        started.submit([call.job for call in calls])
        results = [call.result() for call in calls]
        served = [result for result in results if result.pieces[-1].error is None]
        assert len(served) == 3
        assert {result.text for result in served} == {_SCRIPT[:20].decode()}


def test_a_new_runner_is_attested_before_it_serves() -> None:
    asked: list[Runner] = []
    first, second = _Failing(0), ScriptedRunner(_SCRIPT)

    def attest(runner: Runner) -> bool:
        asked.append(runner)
        return runner is first

    with engine(first, another=lambda: second, attest=attest) as started:
        calls = [Call() for _ in range(6)]
        started.submit([call.job for call in calls])
        errors = [call.result().pieces[-1].error for call in calls]
        assert [type(e) for e in errors] == [EngineFault] * 4 + [NotReady] * 2
        assert asked == [first, second]
        assert second.runs == []
        assert not started.ready
        with pytest.raises(NotReady):
            started.submit([Call().job])


def test_failures_in_a_row_make_it_not_ready_and_others_between_do_not() -> None:
    runners, metrics = iter([_Failing(0) for _ in range(MOST_FAILURES + 5)]), Metrics()
    with engine(next(runners), another=lambda: next(runners), metrics=metrics) as started:
        for number in range(MOST_FAILURES):
            assert started.ready
            call = Call()
            started.submit([call.job])
            assert isinstance(call.result().pieces[-1].error, EngineFault), number
        assert eventually(lambda: not started.ready)
    faults = metrics.registry.get_sample_value(
        "evenkeel_engine_faults_total", {"model": "scripted"}
    )
    assert faults == MOST_FAILURES
    with engine(_Failing(*range(1, 40, 3)), another=None) as started:
        for _ in range(3 * MOST_FAILURES):  # one run in three fails
            call = Call(max_tokens=8)
            started.submit([call.job])
            call.result()
        assert started.ready


def test_a_graph_that_keeps_failing_makes_it_not_ready_though_the_other_does_not() -> None:
    runner = NoFilters(_SCRIPT, width=2)

    def apart(runner: Runner) -> Pace:
        return Pace((1e-6, 0.0), (1e-6, 1.0))

    with engine(runner, another=lambda: runner, measure=apart) as started:
        plain = Call(max_tokens=len(_SCRIPT))
        filtered = [Call(sampling=Sampling(top_k=1)) for _ in range(MOST_FAILURES)]
        started.submit([call.job for call in (plain, *filtered)])
        assert {type(call.result().pieces[-1].error) for call in filtered} == {EngineFault}
        assert isinstance(plain.result().pieces[-1].error, NotReady)
        assert runner.runs
        assert not started.ready


def test_one_that_no_longer_agreed_is_ready_with_a_runner_that_does() -> None:
    failing = _Failing(0)
    with engine(failing, another=lambda: ScriptedRunner(_SCRIPT)) as started:
        failing._during = lambda number: setattr(started, "ready", False)
        call = Call()
        started.submit([call.job])
        assert isinstance(call.result().pieces[-1].error, EngineFault)
        assert eventually(lambda: started.ready)


class _Lost(ScriptedRunner):
    """Has a device that is lost between two runs, once it has served somebody, while it loads."""

    def load(self, slot: int, state: Arrays) -> None:
        if self.runs and slot:
            raise OSError("the device fell off the bus")

    def read(self, slot: int) -> Arrays:
        raise OSError("the device fell off the bus")


def test_nobody_waits_for_a_device_that_is_lost_between_two_runs() -> None:
    with engine(_Lost(_SCRIPT)) as started:
        first = Call()
        started.submit([first.job])
        assert first.result().finish_reason == "length"
        calls = [Call() for _ in range(6)]
        started.submit([call.job for call in calls])
        errors = [call.result().pieces[-1].error for call in calls]
        assert [type(error) for error in errors] == [NotReady] * 6
        assert not started.ready


def test_a_run_that_hangs_shows_and_ends() -> None:
    hold, held = threading.Event(), threading.Event()

    def wait(number: int) -> None:
        held.set()
        hold.wait(20)

    with engine(ScriptedRunner(_SCRIPT, during=wait)) as started:
        assert eventually(lambda: started.stalled_s == 0)
        call = Call()
        started.submit([call.job])
        assert held.wait(20)
        assert eventually(lambda: started.stalled_s > 0.05)
        hold.set()
        call.result()
        assert eventually(lambda: started.stalled_s == 0)


def test_who_leaves_a_model_that_is_stuck_is_let_go_of() -> None:
    """It kept all they had asked for, prompts too, until it was replaced."""
    hold, held, metrics = threading.Event(), threading.Event(), Metrics()

    def wait(number: int) -> None:
        held.set()
        hold.wait(20)

    def waiting() -> float | None:
        name = "evenkeel_requests_waiting"
        return metrics.registry.get_sample_value(name, {"model": "scripted"})

    with engine(ScriptedRunner(_SCRIPT, during=wait), metrics=metrics) as started:
        first, last = Call(), Call()
        started.submit([first.job])
        assert held.wait(20)
        for _ in range(5):
            gone = Call()
            started.submit([gone.job])
            gone.job.cancelled = True
            started.wake()
        started.submit([last.job])
        assert waiting() == 1
        hold.set()
        assert first.result().text == last.result().text


def test_a_run_that_never_ends_is_given_up_with_its_engine(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("service.engine.engine._PATIENCE_S", 0.1)
    hold = threading.Event()

    def wait(number: int) -> None:
        assert not hold.wait(120), "terminated"

    runner = ScriptedRunner(_SCRIPT, during=wait)
    monkeypatch.setattr(runner, "give_up", hold.set)
    made: list[Runner] = []
    with engine(runner, another=lambda: made.append(runner) or runner) as started:
        call = Call()
        started.submit([call.job])
        assert eventually(lambda: started.stalled_s > 0.01)
    assert isinstance(call.result().pieces[-1].error, NotReady)
    try:
        assert eventually(lambda: not started._thread.is_alive())
    finally:
        hold.set()
    assert not made  # there is nobody left that another would run for
    told = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert ("WARNING", "engine-scripted was given up in the midst of a run") in told
    assert "ERROR" not in {level for level, _ in told}


def test_who_is_told_to_stop_again_has_no_more_time_for_it() -> None:
    """Of several engines that are stuck each is told, and then waited for."""
    stuck = made_engine(ScriptedRunner(_SCRIPT))
    stuck.tell_to_stop()
    until_s = stuck._patient_until_s
    stuck.tell_to_stop()
    assert stuck._patient_until_s == until_s


@pytest.fixture
def hung(artifacts: Path) -> Iterator[Service]:
    with running(settings(artifacts)) as service:
        # Now that it has loaded, for which a busy machine may take longer.
        service.app.state.settings = settings(artifacts, stall_timeout_s=0.1)
        yield service


def _stalled_s(service: Service) -> float:
    stalled_s: float = service.app.state.models.stalled_s["letters"]
    return stalled_s


def test_liveness_is_red_while_a_model_is_stuck(hung: Service) -> None:
    assert eventually(lambda: hung.client.get("/livez").status_code == 200)
    thread = threading.Thread(target=hung.post, kwargs={"max_tokens": 2})
    with held(hung.app.state.models["letters"]):
        thread.start()
        assert eventually(lambda: hung.client.get("/livez").status_code == 503)
        told = hung.client.get("/livez")
        assert (told.text, told.headers["retry-after"]) == ("stuck: letters", "2")
        assert hung.client.get("/health").json()["models"]["letters"]["stalled_s"] > 0.1
        before_s = _stalled_s(hung)
        assert before_s <= hung.metric("stalled_seconds") <= _stalled_s(hung)
    thread.join(20)
    assert eventually(lambda: hung.client.get("/livez").status_code == 200)
    assert eventually(lambda: hung.metric("stalled_seconds") == 0)


def test_a_failed_run_is_a_500_and_the_next_request_is_answered(artifacts: Path) -> None:
    with running(settings(artifacts)) as service:
        model = service.app.state.models["letters"]
        model.engine._slots.runner.run = None  # not callable: the next run raises
        answer = service.post(max_tokens=5)
        assert answer.status_code == 500
        assert answer.json()["error"]["code"] == "engine_fault"
        assert service.post(max_tokens=5).status_code == 200
        assert service.client.get("/readyz").status_code == 200


class _FailsTheFirst:
    """An engine that ends its jobs at once, the first by an error."""

    def submit(self, jobs: Sequence[GivenSteps], *, admitted: bool) -> None:
        first, *others = jobs
        first.fail(EngineFault("it broke"))
        for job in others:
            job.finish(None)


def test_of_steps_that_run_together_the_first_error_is_told_and_ends_all() -> None:
    jobs = [GivenSteps({}, {}, {"x": np.zeros(3)}) for _ in range(2)]
    broken: Any = _FailsTheFirst()
    unexpected: list[object] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: unexpected.append(context))
        await run_steps(broken, jobs)

    with pytest.raises(EngineFault):
        asyncio.run(run())
    assert all(job.cancelled for job in jobs)
    assert not unexpected  # of the second, whose end nobody waits for


def test_where_no_other_runner_can_be_made_the_one_whose_run_failed_is_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    runner, attested = _Failing(1), []

    def gone() -> Runner:
        raise OSError("the folder holds something else by now")

    def attest(asked: Runner) -> bool:
        attested.append(asked)
        return True

    with engine(runner, another=gone, attest=attest) as started:
        failed, after = Call(max_tokens=20), Call(max_tokens=20)
        started.submit([failed.job])
        assert isinstance(failed.result().pieces[-1].error, EngineFault)
        assert eventually(lambda: started.ready)
        started.submit([after.job])
        assert after.result().text == _SCRIPT[:20].decode()
        assert attested == [runner, runner]
    assert caplog.messages == [
        "a run of engine-scripted failed",
        "scripted has no other runner, and keeps the one whose run failed",
    ]
    why = [str(record.exc_info and record.exc_info[1]) for record in caplog.records]
    assert why == ["the device fell off the bus", "the folder holds something else by now"]


def test_who_waits_for_an_end_that_fails_is_not_told_the_state_on_the_way_there() -> None:
    told: list[Any] = []
    job: Any = SimpleNamespace(row={}, fail=lambda error, state=None: told.append((error, state)))
    steps = {"forced": np.zeros((2, 1), np.int64)}
    error = NotReady("gone")
    Replay(job, {"h": np.zeros(3)}, steps).fail(error, {"h": np.ones(3)})
    assert told == [(error, None)]
