"""Another model has the device: the engine waits for its turn, and nobody waits for the engine."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from contract.golden import Arrays
from service.engine.engine import Engine
from service.engine.pace import Pace
from service.engine.runners import Runner
from service.errors import NotReady
from service.text.sampling import Sampling
from tests.service.engine.scripted import Call, ScriptedRunner, engine
from tests.service.interleaved import WatchedTurn, another_has

_SCRIPT = b"every byte of this text is known beforehand, so a wrong one would show"
_IN_TIME_S = 10.0


class OnADevice(ScriptedRunner):
    """Loads and reads its slots on a device that it shares. A run has no part in this: with
    filters it fails."""

    def __init__(self, during: Callable[[int], None] = lambda number: None) -> None:
        super().__init__(_SCRIPT, during=during)
        self.turn: Any = WatchedTurn()

    def load(self, slot: int, state: Arrays) -> None:
        with self.turn:
            super().load(slot, state)

    def read(self, slot: int) -> Arrays:
        with self.turn:
            return super().read(slot)

    def run(self, slots: Sequence[int], steps: Arrays, row: Arrays, *, filtered: bool) -> Arrays:
        outputs = super().run(slots, steps, row, filtered=filtered)
        if filtered:
            raise OSError("no such kernel")
        return outputs

    def wanted(self) -> bool:
        """Whether somebody has come to want the turn."""
        return bool(self.turn.wanted.wait(_IN_TIME_S))


@pytest.fixture
def at_once() -> Iterator[Callable[[Callable[[], Any]], Any]]:
    """What a call returns, on a thread of its own, soon."""
    with ThreadPoolExecutor(1) as thread:
        yield lambda call: thread.submit(call).result(_IN_TIME_S)


class _Held:
    """A run that waits, once it has begun, until it may go on."""

    def __init__(self, number: int = 0) -> None:
        self._number, self._begun, self.may_go_on = number, Event(), Event()

    def __call__(self, number: int) -> None:
        if number == self._number:
            self._begun.set()
            assert self.may_go_on.wait(_IN_TIME_S)

    def begun(self) -> bool:
        return self._begun.wait(_IN_TIME_S)


def _ask(started: Engine, *calls: Call) -> None:
    started.submit([call.job for call in calls])


def test_who_asks_meanwhile_is_let_in_or_refused_at_once(
    at_once: Callable[[Callable[[], Any]], Any],
) -> None:
    runner, calls = OnADevice(), [Call(max_tokens=9) for _ in range(2)]
    with engine(runner) as started:
        with another_has(runner.turn):
            _ask(started, calls[0])
            assert runner.wanted()  # to load a slot
            at_once(lambda: _ask(started, calls[1]))
            at_once(lambda: started.wake())
            assert at_once(lambda: started.refusal(1)) is None
        assert [call.result().text for call in calls] == [_SCRIPT[:9].decode()] * 2


def test_a_job_that_comes_between_two_looks_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look that found nothing to do and the wait for something."""
    monkeypatch.setattr("service.engine.engine._LOOK_S", 60.0)
    call = Call(max_tokens=9)
    with engine(OnADevice()) as started:
        released = started._share.release

        def come(*_: Any) -> None:
            started._share.release = released  # type: ignore[method-assign]
            _ask(started, call)

        started._share.release = come  # type: ignore[method-assign]
        started.wake()
        assert call.result().text == _SCRIPT[:9].decode()


@pytest.mark.parametrize("at", ["a slot is loaded", "a chunk is handed out"])
def test_a_service_stops_though_a_device_is_never_given_back(
    at: str, at_once: Callable[[Callable[[], Any]], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.engine.engine._PATIENCE_S", 0.1)
    held = _Held()
    runner, call = OnADevice(during=held), Call(max_tokens=3, wants_state=True)  # a chunk
    with engine(runner) as started:
        if at == "a chunk is handed out":
            _ask(started, call)
            assert held.begun()
        with another_has(runner.turn):
            if at == "a slot is loaded":
                _ask(started, call)
            held.may_go_on.set()
            assert runner.wanted()
            at_once(started.stop)
            error = call.result().pieces[-1].error
            assert isinstance(error, NotReady)
            assert error.message == "the model is stuck"


@pytest.mark.parametrize("asked", ["load", "read"])
def test_a_device_that_is_stuck_as_jobs_change_places_holds_nobody_up(
    asked: str,
    at_once: Callable[[Callable[[], Any]], Any],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Neither who asks nor the stop; `/livez` can tell it, and nothing comes after the end."""
    monkeypatch.setattr("service.engine.engine._PATIENCE_S", 0.1)
    stuck, calls = _Held(), [Call(max_tokens=40) for _ in range(3)]
    runner = ScriptedRunner(_SCRIPT, width=1)  # the second is given the slot of the first
    usual = getattr(runner, asked)

    def sticks(*given: Any) -> Any:
        stuck(0)
        return usual(*given)

    monkeypatch.setattr(runner, asked, sticks)
    with engine(runner) as started:
        _ask(started, *calls[:2])
        assert stuck.begun()
        assert started.stalled_s > 0
        at_once(lambda: _ask(started, calls[2]))
        assert at_once(lambda: started.refusal(1)) is None
        at_once(started.stop)
        errors = [call.result().pieces[-1].error for call in calls]
        stuck.may_go_on.set()
        started._thread.join(_IN_TIME_S)
    assert [type(error) for error in errors] == [NotReady] * 3
    assert all(call.pieces.empty() for call in calls)
    assert not caplog.messages


@pytest.mark.parametrize("failures", [1, 3])
def test_an_engine_whose_run_fails_holds_nobody_up_while_it_reads_what_others_had(
    failures: int, at_once: Callable[[Callable[[], Any]], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For another runner, or for their last words."""
    monkeypatch.setattr("service.engine.engine.MOST_FAILURES", failures)
    held = _Held(number=1)  # the first is that of the plain rows
    runner, plain = OnADevice(during=held), Call(max_tokens=40)
    broken = Call(max_tokens=9, sampling=Sampling(top_p=0.5))

    def another() -> Runner:
        made = OnADevice()
        made.turn = runner.turn
        return made

    apart: dict[str, Any] = {"measure": lambda runner: Pace((1e-6, 0.0), (1e-6, 1e-6))}
    with engine(runner, another=another, **apart) as started:
        _ask(started, plain, Call(max_tokens=40), broken)
        assert held.begun()
        with another_has(runner.turn):
            held.may_go_on.set()
            assert runner.wanted()
            at_once(lambda: started.refusal(1))
            at_once(lambda: started.wake())
        assert broken.result().pieces[-1].error is not None
        result = plain.result()
    if failures == 1:
        assert isinstance(result.pieces[-1].error, NotReady)
    else:
        assert result.text == _SCRIPT[:40].decode()


@pytest.mark.parametrize(
    ("asked", "spec"),
    [("read", {}), ("read", {"checkpoint_steps": 1, "max_tokens": 40}), ("load", {})],
    ids=["its last state is read", "a state is read on its way", "it goes back to where it ended"],
)
def test_a_service_stops_though_its_device_is_stuck_as_a_chunk_is_handed_out(
    asked: str,
    spec: dict[str, Any],
    at_once: Callable[[Callable[[], Any]], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who waits for nothing of the device has its answer, and nothing comes after the end of who
    does."""
    monkeypatch.setattr("service.engine.engine._PATIENCE_S", 0.1)
    stuck = _Held()
    runner, whole = ScriptedRunner(_SCRIPT), Call(max_tokens=3)
    call = Call(**{"max_tokens": 3, "wants_state": True} | spec)
    usual = getattr(runner, asked)

    def sticks(*given: Any) -> Any:
        if runner.runs:
            stuck(0)
        return usual(*given)

    monkeypatch.setattr(runner, asked, sticks)
    with engine(runner) as started:
        _ask(started, call, whole)
        assert stuck.begun()
        assert whole.result().text == _SCRIPT[:3].decode()
        at_once(started.stop)
        error = call.result().pieces[-1].error
        stuck.may_go_on.set()
        started._thread.join(_IN_TIME_S)
    assert isinstance(error, NotReady)
    assert call.pieces.empty()
