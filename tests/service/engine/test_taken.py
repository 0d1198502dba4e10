"""An engine does not run ahead of whoever takes what it puts out."""

import time
from collections.abc import Callable
from itertools import chain, repeat
from types import SimpleNamespace

import pytest

from service.metrics import Metrics
from tests.service.engine.scripted import Call, ScriptedRunner, engine
from tests.service.serving import eventually

_SCRIPT = b"abcdefgh" * 8


class _Loop:
    """Takes what was published when it is told to."""

    def __init__(self) -> None:
        self.lying: list[Callable[[], None]] = []

    def take(self) -> None:
        self.lying.pop(0)()


def _call(loop: _Loop, **spec: int) -> Call:
    call = Call(**spec)
    call.job.then = loop.lying.append
    return call


def _running(metrics: Metrics) -> float | None:
    labels = {"model": "scripted"}
    return metrics.registry.get_sample_value("evenkeel_requests_running", labels)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines that do not go on by themselves while a test looks at them."""
    monkeypatch.setattr("service.engine.engine._LOOK_S", 60.0)


@pytest.mark.usefixtures("patient")
def test_the_next_chunk_begins_when_the_last_has_been_taken() -> None:
    runner, loop = ScriptedRunner(_SCRIPT), _Loop()
    with engine(runner, chunk=8, first=8) as running:
        call, untaken = _call(loop, max_tokens=24), Call(max_tokens=24)  # by no other thread
        running.submit([untaken.job, call.job])
        for number in (1, 2):
            assert eventually(lambda: len(loop.lying) == 1)
            time.sleep(0.05)
            assert len(runner.runs) == number
            loop.take()
        assert eventually(lambda: len(runner.runs) == 3)
        loop.take()
        assert call.result().text == _SCRIPT[:24].decode()


@pytest.mark.usefixtures("patient")
def test_what_has_been_taken_at_once_is_not_waited_for() -> None:
    with engine(ScriptedRunner(_SCRIPT), chunk=8, first=8) as running:
        call = Call(max_tokens=24)
        call.job.then = lambda see_taken: see_taken()  # nothing lies there
        running.submit([call.job])
        assert call.result().text == _SCRIPT[:24].decode()


@pytest.mark.usefixtures("patient")
def test_what_comes_meanwhile_joins_the_next_chunk() -> None:
    runner, loop = ScriptedRunner(_SCRIPT), _Loop()
    with engine(runner, chunk=8, first=8) as running:
        one, other = _call(loop, max_tokens=16), _call(loop, max_tokens=8)
        running.submit([one.job])
        assert eventually(lambda: len(loop.lying) == 1)
        running.submit([other.job])
        loop.take()
        assert eventually(lambda: len(runner.runs) == 2)
        assert runner.runs[1].slots == (0, 1)


@pytest.mark.usefixtures("patient")
def test_who_has_been_answered_runs_no_more_by_the_metric_though_it_was_not_taken_yet() -> None:
    metrics, loop = Metrics(), _Loop()
    with engine(ScriptedRunner(_SCRIPT), metrics=metrics) as running:
        call = _call(loop, max_tokens=3)
        running.submit([call.job])
        call.result()
        assert _running(metrics) == 0


def test_nobody_who_takes_nothing_holds_it_up_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.engine.engine._LOOK_S", 0.05)
    loop = _Loop()
    with engine(ScriptedRunner(_SCRIPT), chunk=8, first=8) as running:
        call = _call(loop, max_tokens=24)
        running.submit([call.job])
        assert call.result().text == _SCRIPT[:24].decode()
        assert eventually(lambda: len(loop.lying) == 3)


@pytest.mark.usefixtures("patient")
def test_an_engine_that_waits_stops_when_it_is_told_to() -> None:
    loop = _Loop()
    with engine(ScriptedRunner(_SCRIPT), chunk=8, first=8) as running:
        running.submit([_call(loop, max_tokens=24).job])
        assert eventually(lambda: len(loop.lying) == 1)
        running.stop()  # which waits for its thread for some seconds
        assert not running._thread.is_alive()


@pytest.mark.usefixtures("patient")
def test_the_wait_counts_as_time_that_a_chunk_takes() -> None:
    loop = _Loop()
    with engine(ScriptedRunner(_SCRIPT), chunk=8, first=8) as running:
        running.submit([_call(loop, max_tokens=24).job])
        assert eventually(lambda: len(loop.lying) == 1)
        before = running._pace.wait_s(4)
        time.sleep(0.1)
        loop.take()
        assert eventually(lambda: running._pace.wait_s(4) > before)


def test_a_wait_counts_for_one_chunk_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    # The clock is looked at before and after a wait, and before and after a chunk.
    clock = chain([0.0] * 5, repeat(0.1))  # which waits for the second chunk
    slow = SimpleNamespace(monotonic=time.monotonic, perf_counter=lambda: next(clock))
    monkeypatch.setattr("service.engine.engine.time", slow)
    with engine(ScriptedRunner(_SCRIPT), chunk=8, first=8) as running:
        call, parts = Call(max_tokens=32), list[float]()

        def take(see_taken: Callable[[], None]) -> None:
            parts.append(running._pace.wait_s(4) / running._pace.step_s(4))
            see_taken()

        call.job.then = take
        running.submit([call.job])
        call.result()
    _, first, second, third = parts
    assert first < second > third
