"""What an engine knows of its own speed."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from service.engine import chunk
from service.engine import pace as paces
from service.engine.chunk import Chunks
from service.engine.pace import Pace, measure_pace, median_step_s
from service.engine.slots import Slots
from service.engine.terms import Terms
from service.metrics import Metrics
from tests.service.engine.scripted import Call, ScriptedRunner, limits, made_engine


def _pace() -> Pace:
    """A step of 1 ms and 0.1 ms for each row more; twice that with filters."""
    return Pace((1e-3, 1e-4), (2e-3, 2e-4))


def test_a_step_takes_longer_with_more_rows() -> None:
    pace = _pace()
    assert pace.step_s(1) == 1e-3
    assert pace.step_s(11) == pytest.approx(2e-3)
    assert pace.step_s(11, filtered=True) == pytest.approx(4e-3)


def test_it_follows_a_machine_that_slows_down_and_recovers() -> None:
    pace = _pace()
    for _ in range(60):
        pace.follow(11, 6e-3)
    assert pace.step_s(1) == pytest.approx(3e-3, rel=0.01)
    assert pace.step_s(1, filtered=True) == 2e-3
    for _ in range(60):
        pace.follow(11, 2e-3)
    assert pace.step_s(1) == pytest.approx(1e-3, rel=0.01)


def test_one_pause_is_no_new_pace() -> None:
    pace = _pace()
    pace.follow(1, 10.0)
    assert pace.step_s(1) < 1.5e-3


def test_time_outside_of_runs_makes_waits_longer_but_no_step() -> None:
    pace = _pace()
    before = pace.wait_s(16)
    for _ in range(60):
        pace.follow_chunk(3e-3, 2e-3)
    assert pace.step_s(1) == 1e-3
    assert pace.wait_s(16) == pytest.approx(1.5 * before, rel=0.01)


def test_one_pause_outside_of_runs_is_no_longer_wait() -> None:
    pace = _pace()
    before = pace.wait_s(16)
    pace.follow_chunk(10.0, 1e-3)
    assert pace.wait_s(16) < 1.5 * before


def test_few_filtered_rows_run_apart_and_many_do_not() -> None:
    pace = _pace()
    assert not pace.parts(1, 1)  # 1 and 2 ms for 2.2
    assert pace.parts(15, 1)  # 2.4 and 2 ms for 5


def test_each_graph_has_a_pace_of_its_own() -> None:
    pace = _pace()
    for _ in range(60):
        pace.follow(1, 5e-3, filtered=True)
    assert pace.step_s(1) == 1e-3
    assert pace.step_s(1, filtered=True) == pytest.approx(5e-3, rel=0.01)


def test_one_step_of_each_row_is_shared_by_all_who_wait() -> None:
    assert _pace().wait_s(11) == pytest.approx(2e-3 / 11)


@pytest.mark.parametrize(("all_s", "more_s"), [(3e-3, 5e-4), (0.5e-3, 0.0)])
def test_what_is_measured_is_what_all_slots_take(
    monkeypatch: pytest.MonkeyPatch, all_s: float, more_s: float
) -> None:
    """No row makes a step faster, however the clock ran."""
    taken_s = {1: 1e-3, 5: all_s}
    monkeypatch.setattr(paces, "median_step_s", lambda artifact, runner, rows, **_: taken_s[rows])
    graphs = SimpleNamespace(scan=SimpleNamespace(filtered=None))
    artifact: Any = SimpleNamespace(manifest=SimpleNamespace(graphs=graphs))
    runner: Any = SimpleNamespace(width=5)
    pace = measure_pace(artifact, runner)
    assert [pace.step_s(rows) for rows in (1, 2, 5)] == pytest.approx(
        [1e-3, 1e-3 + more_s, 1e-3 + 4 * more_s]
    )


def test_each_graph_is_measured_and_of_one_slot_no_more_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where there is no other graph, its pace is that of the plain one."""

    def taken_s(artifact: Any, runner: Any, rows: int, *, runs: int, filtered: bool) -> float:
        return (2e-3 if filtered else 1e-3) * (1 + rows)

    monkeypatch.setattr(paces, "median_step_s", taken_s)
    for name, width in (("step-filtered.onnx", 5), (None, 5), (None, 1)):
        graphs = SimpleNamespace(scan=SimpleNamespace(filtered=name))
        artifact: Any = SimpleNamespace(manifest=SimpleNamespace(graphs=graphs))
        runner: Any = SimpleNamespace(width=width)
        pace = measure_pace(artifact, runner)
        steps_s = [pace.step_s(rows, filtered=name is not None) for rows in (1, width)]
        one_s = 1e-3 if name is None else 2e-3
        assert steps_s == pytest.approx([2 * one_s, (1 + width) * one_s])
        assert pace.step_s(width) == pytest.approx((1 + width) * 1e-3)


def test_runs_that_warm_up_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, takes_s = SimpleNamespace(now_s=0.0), iter([9.0, 9.0, 9e-3, 8e-3, 7e-3])
    monkeypatch.setattr(paces, "time", SimpleNamespace(perf_counter=lambda: clock.now_s))

    def run(slots: Any, steps: Any, row: Any, **_: Any) -> None:
        assert (len(slots), steps["x"].shape, row["y"].shape) == (2, (8, 2), (2,))
        clock.now_s += next(takes_s)

    golden = SimpleNamespace(
        plain_rows=[0],
        step_inputs=lambda row: {"x": np.zeros(20)},
        row_inputs=lambda row: {"y": np.zeros(())},
    )
    artifact: Any = SimpleNamespace(golden=golden, initial_state=dict)
    runner: Any = SimpleNamespace(load=lambda slot, state: None, run=run)
    assert median_step_s(artifact, runner, 2, runs=3) == pytest.approx(1e-3)


@pytest.mark.parametrize(("rows", "steps"), [(32, 4096), (1024, 128)])
def test_a_chunk_of_many_rows_is_one_that_a_session_has_memory_for(rows: int, steps: int) -> None:
    some = limits(chunk_steps=4096, first_chunk_steps=4096)
    idle = made_engine(ScriptedRunner(b"x", rows), limits=some)
    chunks = Chunks(idle._slots, _pace(), some, idle._metrics)
    assert chunks.steps_for([Call(max_tokens=5000).job] * rows, 1e-6) == steps


def test_a_step_of_a_chunk_took_its_share_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, pace = SimpleNamespace(now_s=0.0), Pace((1e-3, 0.0), (1e-3, 0.0))
    monkeypatch.setattr(chunk, "time", SimpleNamespace(perf_counter=lambda: clock.now_s))

    def takes_16_ms(number: int) -> None:
        clock.now_s += 16e-3

    metrics = Metrics().of_engine("it")
    slots = Slots(ScriptedRunner(b"x" * 8, during=takes_16_ms), metrics, slice_s=1e9)
    slots.schedule.add([Call(max_tokens=9).job], Terms())
    slots.tend(0.0)
    assert Chunks(slots, pace, limits(), metrics).run([0], 8, filtered=False) == 16e-3
    assert pace.step_s(1) == pytest.approx(1.1e-3)  # 2 ms it was, and a tenth of that counts
