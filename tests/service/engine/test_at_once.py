"""What comes to an engine in the midst of something else, which its lock or an order guards."""

import time
from collections.abc import Callable
from threading import Event
from typing import Any

import pytest

from service.engine import terms
from service.engine.engine import Engine
from service.engine.pace import Pace
from service.errors import DeadlineExceeded, EngineFault, NotReady, ServiceError
from service.text.sampling import Sampling
from tests.service.engine.scripted import Call, ScriptedRunner, limits, made_engine, sleeps
from tests.service.engine.scripted import engine as engine_of
from tests.service.interleaved import WatchedLock
from tests.service.serving import eventually


def _started(runner: ScriptedRunner, lock: WatchedLock, **more: Any) -> Engine:
    engine = made_engine(runner, **more)
    engine._wake = engine._slots.lock = lock
    engine.start()
    assert eventually(lambda: engine.ready)
    return engine


def _waiting() -> Call:
    """One that is not run, whatever happens first."""
    call = Call()
    call.job.paused = True
    return call


def _in_the_midst(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> None:
    """Of whoever is about to queue jobs, and has found the engine ready."""
    usual = terms.current

    def current() -> terms.Terms:
        meanwhile()
        return usual()

    monkeypatch.setattr(terms, "current", current)


def test_a_job_that_comes_as_the_engine_stops_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody would look at it any more."""
    lock, call = WatchedLock(), _waiting()
    engine = _started(ScriptedRunner(b""), lock)
    _in_the_midst(monkeypatch, lambda: lock.beside(engine.stop))
    engine.submit([call.job])
    lock.join()
    assert isinstance(call.result().pieces[-1].error, NotReady)


def test_a_job_that_comes_as_the_engine_fails_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    lock, running, fail = WatchedLock(), Event(), Event()

    def during(number: int) -> None:
        running.set()
        fail.wait()
        raise RuntimeError("the device is lost")

    monkeypatch.setattr("service.engine.engine.MOST_FAILURES", 1)
    engine = _started(ScriptedRunner(b"", during=during), lock)
    end_all = engine._slots.end_all

    def ended(error: ServiceError, *, states_known: bool) -> None:
        end_all(error, states_known=states_known)
        lock.ended()

    monkeypatch.setattr(engine._slots, "end_all", ended)
    engine.submit([Call().job])
    assert running.wait(20)
    late = _waiting()
    _in_the_midst(monkeypatch, lambda: lock.meet(fail.set))
    engine.submit([late.job])
    assert isinstance(late.result().pieces[-1].error, NotReady)


def test_who_asks_while_jobs_change_places_counts_none_of_them_twice() -> None:
    """One that gives its slot to another stands in the slot and in the queue for a moment: a queue
    that has room would be called full."""
    lock, refused = WatchedLock(), list[Any]()

    class Places(dict[int, Any]):
        def __delitem__(self, slot: int) -> None:
            lock.beside(lambda: refused.append(engine.refusal(1)))
            super().__delitem__(slot)

    some = limits(chunk_steps=4, first_chunk_steps=4, slice_s=0.0, queue_size=2)
    engine = made_engine(ScriptedRunner(b"abcdefgh", width=1), limits=some)
    engine._wake = engine._slots.lock = lock
    engine._slots.schedule.slots = Places()
    engine.start()
    assert eventually(lambda: engine.ready)
    calls = [Call(), Call()]
    engine.submit([call.job for call in calls])
    assert [call.result().text for call in calls] == ["abcdefgh"] * 2
    engine.stop()
    lock.join()
    assert refused == [None]


def test_nor_while_they_go_on_to_another_runner() -> None:
    lock, refused, moving = WatchedLock(), list[Any](), Event()

    def fail(number: int) -> None:
        raise RuntimeError("the device is lost")

    def another() -> ScriptedRunner:
        moving.set()
        return ScriptedRunner(b"abcdefgh", width=2)

    class Places(dict[int, Any]):
        def __delitem__(self, slot: int) -> None:
            if moving.is_set():
                lock.beside(lambda: refused.append(engine.refusal(1)))
            super().__delitem__(slot)

    some, pace = limits(queue_size=0), Pace((1e-6, 0.0), (1e-6, 1.0))  # plain and filtered apart
    engine = made_engine(
        ScriptedRunner(b"", width=2, during=fail),
        limits=some,
        measure=lambda runner: pace,
        another=another,
    )
    engine._wake = engine._slots.lock = lock
    engine._slots.schedule.slots = Places()
    engine.start()
    assert eventually(lambda: engine.ready)
    lost, moved = Call(), Call(sampling=Sampling(top_k=3))
    engine.submit([lost.job, moved.job])
    assert isinstance(lost.result().pieces[-1].error, EngineFault)
    assert moved.result().text == "abcdefgh"
    engine.stop()
    lock.join()
    assert refused == [None]


def test_who_waits_for_the_verdict_finds_what_came_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that is proved would be refused, one that has ended be taken for one that serves."""
    engine, found = made_engine(ScriptedRunner(b"")), list[bool]()
    end_all = engine._slots.end_all

    class Attested(Event):
        def set(self) -> None:
            found.append(engine.ready)
            super().set()

    def ended(error: ServiceError, *, states_known: bool) -> None:
        found.append(engine.ready)  # or another job would come after all have been ended
        end_all(error, states_known=states_known)

    monkeypatch.setattr(engine._slots, "end_all", ended)
    engine.attested = Attested()
    engine.start()
    assert engine.attested.wait(20)
    engine.stop()
    assert found == [True, False, False]


def test_a_job_whose_reader_does_not_come_back_ends_at_its_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing else happens that would have the engine look at it again."""
    monkeypatch.setattr("service.engine.engine._LOOK_S", 0.001)
    call = _waiting()
    with engine_of(ScriptedRunner(b"")) as started:
        assert eventually(lambda: sleeps(started))
        monkeypatch.setattr(
            terms, "current", lambda: terms.Terms(deadline_s=time.monotonic() + 0.2)
        )
        started.submit([call.job])
        assert isinstance(call.result().pieces[-1].error, DeadlineExceeded)


@pytest.mark.parametrize("proving", [True, False])
def test_what_is_given_up_because_the_engine_has_to_stop_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, proving: bool
) -> None:
    """Whoever stops a service that still proves its models reads of none that has failed."""
    running, given_up = Event(), Event()

    def run(*_: object) -> bool:
        running.set()
        given_up.wait()
        raise RuntimeError("terminate flag being set to true")

    monkeypatch.setattr("service.engine.engine._PATIENCE_S", 0.0)
    runner = ScriptedRunner(b"", during=run)  # type: ignore[arg-type]

    def give_up() -> None:
        given_up.set()
        engine._thread.join(20)  # all that it tells, it tells now

    runner.give_up = give_up  # type: ignore[method-assign]
    engine = made_engine(runner, **({"attest": run} if proving else {}))
    engine.start()
    if not proving:
        assert eventually(lambda: engine.ready)
        engine.submit([Call().job])
    assert running.wait(20)
    engine.stop()
    assert not engine._thread.is_alive()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "engine-scripted was given up in the midst of a run" in caplog.text
    assert not caplog.records[0].exc_info


def test_nothing_is_queued_at_an_engine_that_was_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is stuck, and would never say that it has stopped."""
    running, go_on = Event(), Event()

    def during(number: int) -> None:
        running.set()
        go_on.wait()

    monkeypatch.setattr("service.engine.engine._PATIENCE_S", 0.0)
    engine = made_engine(ScriptedRunner(b"abc", during=during))
    engine.start()
    assert eventually(lambda: engine.ready)
    engine.submit([Call(max_tokens=3).job])
    assert running.wait(20)
    engine.stop()
    with pytest.raises(NotReady):
        engine.submit([_waiting().job])
    go_on.set()


def test_nothing_comes_after_the_end_of_a_job_that_is_given_up_as_it_is_handed_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run that took as long as the patience lasts may end just then."""
    lock, call = WatchedLock(), Call()
    monkeypatch.setattr("service.engine.engine._PATIENCE_S", 0.0)
    engine = made_engine(ScriptedRunner(b"abcdefgh"))
    engine._slots.handing_out = lock  # type: ignore[assignment]
    flush = call.job._flush

    def meanwhile() -> None:
        lock.beside(engine.stop)
        flush()

    monkeypatch.setattr(call.job, "_flush", meanwhile)
    engine.start()
    assert eventually(lambda: engine.ready)
    engine.submit([call.job])
    pieces = call.result().pieces
    lock.join()
    engine._thread.join(20)
    assert call.pieces.empty()
    assert ("".join(piece.text for piece in pieces), type(pieces[-1].error)) == ("abc", NotReady)


def test_a_job_whose_run_fails_as_it_is_given_up_ends_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By what came first, and its engine by the stop alone."""
    lock, call = WatchedLock(), Call()

    def fail(number: int) -> None:
        raise OSError("the device is lost")

    class Places(dict[int, Any]):
        def __delitem__(self, slot: int) -> None:
            lock.beside(engine.stop)
            super().__delitem__(slot)

    monkeypatch.setattr("service.engine.engine._PATIENCE_S", 0.0)
    engine = made_engine(ScriptedRunner(b"", during=fail))
    engine._slots.handing_out = lock  # type: ignore[assignment]
    engine._slots.schedule.slots = Places()
    engine.start()
    assert eventually(lambda: engine.ready)
    engine.submit([call.job])
    assert isinstance(call.result().pieces[-1].error, EngineFault)
    lock.join()
    engine._thread.join(20)
    assert call.pieces.empty()
    assert caplog.messages == ["a run of engine-scripted failed"]
