"""Whatever happens to an engine, in whatever order: who survives has what it would have had alone.

`EVENKEEL_FUZZ_MACHINE` says how many such stories are tried.
"""

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from contract.golden import Arrays
from contract.noise import UniformStream
from service.engine import terms
from service.engine.given import GivenSteps
from service.errors import DeadlineExceeded, EngineFault, NotReady, Overloaded
from service.text.sampling import Sampling
from tests.service.engine.scripted import (
    SEED,
    Call,
    Result,
    ScriptedRunner,
    complete,
    limits,
    made_engine,
)
from tests.service.serving import eventually

_SCRIPT = bytes(range(97, 123)) * 40
_STORIES = int(os.environ.get("EVENKEEL_FUZZ_MACHINE", "40"))

_specs = st.fixed_dictionaries({
    "prompt": st.binary(max_size=20),
    "max_tokens": st.integers(1, 60),
    "stops": st.sampled_from([(), (b"xyz",), (b"ef", b"q")]),
    "sampling": st.sampled_from([Sampling(), Sampling(top_k=3), Sampling(min_p=0.1)]),
    "wants_state": st.booleans(),
    "streamed": st.booleans(),
    "checkpoint_steps": st.sampled_from([None, 1, 7]),
})  # fmt: skip


class _Runner(ScriptedRunner):
    """Runs when it is allowed to, on its own thread, and fails when it is told to."""

    def __init__(self, story: "EngineStory") -> None:
        super().__init__(_SCRIPT, width=3)
        self.divides = story.divides
        self._story = story

    def run(self, slots: Any, steps: Arrays, row: Arrays, *, filtered: bool) -> Arrays:
        if threading.get_ident() != self._story.teller:
            assert self._story.permits.acquire(timeout=20)
        if self._story.faults:
            self._story.faults -= 1
            raise OSError("the device fell off the bus")
        return super().run(slots, steps, row, filtered=filtered)


class EngineStory(RuleBasedStateMachine):
    """Requests of three callers come, go, pause, run late and are not read on an engine that fails
    now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.permits = threading.Semaphore(0)
        self.teller = threading.get_ident()
        self.faults = 0
        self.divides = True
        self.takes = True
        self.lying: list[Callable[[], None]] = []
        # Those that were refused too, which is a matter of time: what may come next must not be.
        self.calls: list[tuple[dict[str, Any], Call]] = []
        self.refused: list[Call] = []
        some = limits(slice_s=0.0, queue_size=20)
        self.engine = made_engine(_Runner(self), limits=some, another=lambda: _Runner(self))
        self.engine.start()
        assert eventually(lambda: self.engine.ready)

    @initialize(piece_s=st.sampled_from([0.0, 0.001, 1e9]))
    def gather_or_not(self, piece_s: float) -> None:
        self.engine._limits = replace(self.engine._limits, piece_s=piece_s)

    @rule(spec=_specs, caller=st.sampled_from("abc"), late=st.sampled_from([1e9, 1e9, 0.002]))
    def ask(self, spec: dict[str, Any], caller: str, late: float) -> None:
        terms.agree(late, caller)
        call = Call(**spec)
        call.job.urgent, call.job.then = spec["streamed"], self._then
        try:
            self.engine.submit([call.job])
        except (Overloaded, NotReady, DeadlineExceeded):
            self.refused.append(call)
        finally:
            terms.agree(1e9, "")
        self.calls.append((spec, call))

    @rule(runs=st.integers(1, 6))
    def run(self, runs: int) -> None:
        for _ in range(runs):
            self.permits.release()

    @rule(steps=st.integers(1, 5))
    def run_now(self, steps: int) -> None:
        uniform = UniformStream(SEED).take(0, steps)
        unforced = {"forced": np.zeros(steps, np.int64), "force": np.zeros(steps, bool)}
        start = {"position": np.zeros((), np.int64)}
        job = GivenSteps(start, Sampling().row(), unforced | {"uniform": uniform})
        try:
            if self.engine.run_now(job):
                assert bytes(job.outputs["next"].astype(np.uint8)) == _SCRIPT[:steps]
        except EngineFault:
            assert eventually(lambda: self.engine._failed is None)

    @precondition(lambda self: self.calls)
    @rule(data=st.data(), to=st.booleans())
    def pause(self, data: st.DataObject, to: bool) -> None:
        _, call = data.draw(st.sampled_from(self.calls))
        call.job.paused = to
        self.engine.wake()

    @precondition(lambda self: self.calls)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        _, call = data.draw(st.sampled_from(self.calls))
        call.job.cancelled = True
        self.calls = [other for other in self.calls if other[1] is not call]
        self.engine.wake()

    @rule()
    def fail_once(self) -> None:
        self.faults = 1

    @rule()
    def divide_or_not(self) -> None:
        self.divides = not self.divides

    @rule(takes=st.booleans())
    def take_or_not(self, takes: bool) -> None:
        """What engines put out is taken at once from here on, or lies there."""
        self.takes = takes
        while takes and self.lying:
            self.lying.pop()()

    def _then(self, taken: Callable[[], None]) -> None:
        taken() if self.takes else self.lying.append(taken)

    def teardown(self) -> None:
        try:
            self.take_or_not(takes=True)
            self.permits.release(100_000)
            for _, call in self.calls:
                call.job.paused = False
            self.engine.wake()
            for spec, call in self.calls:
                if call not in self.refused:
                    _require_its_own(call.result(), complete(_SCRIPT, **spec), spec)
        finally:
            self.engine.stop()


def _require_its_own(result: Result, alone: Result, spec: dict[str, Any]) -> None:
    *_, last = result.pieces
    if last.error is not None:
        assert isinstance(last.error, EngineFault | DeadlineExceeded | NotReady)
        assert alone.text.startswith(result.text)
        if spec["streamed"]:
            assert last.text == ""  # an error comes alone
    for number, piece in enumerate(result.pieces):
        if piece.moment is None or piece.finish_reason is not None or not spec["streamed"]:
            continue
        told = "".join(piece.text for piece in result.pieces[: number + 1])
        left = spec["max_tokens"] - piece.moment.drawn
        rest = spec | {"prompt": b"", "max_tokens": left, "checkpoint_steps": None}
        assert told + complete(_SCRIPT, piece.moment, **rest).text == alone.text
    if last.error is not None:
        return
    assert result.text == alone.text
    assert result.finish_reason == alone.finish_reason
    if spec["wants_state"]:
        assert result.moment.drawn == alone.moment.drawn
        assert result.moment.edge == alone.moment.edge
        assert result.moment.state["position"] == alone.moment.state["position"]


TestEngineStory = EngineStory.TestCase
TestEngineStory.settings = settings(
    max_examples=_STORIES,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
