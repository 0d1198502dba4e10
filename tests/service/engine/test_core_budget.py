"""Engines that share cores: who may use how many threads, and that no bit depends on it."""

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contract.golden import Arrays
from service.artifact import load_artifact
from service.attestation import attest
from service.engine.core_budget import CoreBudget, SharingRunner, sharing
from service.engine.runners import Runner, ScanRunner, SlotRunner, stack_rows
from service.engine.runtime import Runtime
from tests.service.engine.scripted import Call, ScriptedRunner, limits, made_engine
from tests.service.interleaved import WatchedLock
from tests.service.serving import eventually, running, settings

_TWO = Runtime("cpu", "scan", threads=2, slots=4)


def test_who_is_alone_has_all_threads_and_others_at_work_take_them() -> None:
    budget = CoreBudget(cores=2)
    one, other = budget.share(2), budget.share(2)
    assert not one.oversubscribed
    one.acquire()
    one.acquire()  # of the same engine, chunk after chunk
    assert (one.oversubscribed, other.oversubscribed) == (False, True)
    other.acquire()
    assert one.oversubscribed
    assert other.oversubscribed
    one.release()
    one.release()
    assert not other.oversubscribed
    other.release()
    assert budget.wanted == 0


def test_engines_that_begin_at_once_are_both_counted() -> None:
    """With one of them forgotten both would take all cores, for ever."""
    budget, lock = CoreBudget(cores=2), WatchedLock()
    one, other = budget.share(2), budget.share(2)

    class Wanted(int):
        def __add__(self, threads: int) -> int:
            lock.beside(other.acquire)
            return int(self) + threads

    budget.wanted, budget._lock = Wanted(), lock  # type: ignore[assignment]
    one.acquire()
    lock.join()
    assert budget.wanted == 4


@pytest.mark.parametrize(
    ("cores", "threads", "oversubscribed"), [(2, 1, False), (4, 2, False), (3, 2, True)]
)
def test_nobody_steps_back_while_there_are_cores_for_all(
    cores: int, threads: int, oversubscribed: bool
) -> None:
    budget = CoreBudget(cores)
    budget.share(threads).acquire()
    assert budget.share(threads).oversubscribed is oversubscribed


@pytest.mark.parametrize(("cores", "fewer"), [(1, 1), (2, 1), (5, 2), (8, 4)])
def test_who_steps_back_keeps_half_of_the_cores_and_one_at_least(cores: int, fewer: int) -> None:
    """0 threads would be all of them to onnxruntime."""
    assert CoreBudget(cores).share(8).fewer == fewer


def test_bits_are_the_same_whoever_runs_and_whenever_that_changes(artifacts: Path) -> None:
    artifact, budget = load_artifact(artifacts / "letters"), CoreBudget(cores=2)
    shared = sharing(artifact, _TWO, budget.share(2))
    assert isinstance(shared, SharingRunner)
    ran = _watched(shared)
    alone = ScanRunner(artifact, replace(_TWO, threads=1))
    other, rows = budget.share(2), artifact.golden.plain_rows[:2]
    steps = stack_rows([artifact.golden.step_inputs(row) for row in rows], axis=1)
    row = stack_rows([artifact.golden.row_inputs(row) for row in rows], axis=0)
    for runner in (shared, alone):
        for slot in (1, 3):
            runner.load(slot, artifact.initial_state())
    for oversubscribed in (False, True, True, False):
        other.acquire() if oversubscribed else other.release()
        found = [runner.run([1, 3], steps, row, filtered=False) for runner in (shared, alone)]
        _same(*found)
        _same(*(runner.read(3) for runner in (shared, alone)))
    assert ran == [0, 1, 1, 0]


def _watched(shared: SharingRunner) -> list[int]:
    """Which of its parts will have run."""
    ran: list[int] = []

    def watch(number: int, part: Runner) -> None:
        run = part.run

        def told(*given: Any, **named: Any) -> Arrays:
            ran.append(number)
            return run(*given, **named)

        part.run = told

    for number, part in enumerate(shared.parts):
        watch(number, part)
    return ran


def _same(one: Arrays, other: Arrays) -> None:
    assert one.keys() == other.keys()
    assert all(one[name].tobytes() == other[name].tobytes() for name in one)


@pytest.mark.parametrize(("threads", "cores"), [(1, 2), (2, 4)])
def test_a_model_that_fits_beside_another_keeps_its_one_runner(
    artifacts: Path, threads: int, cores: int
) -> None:
    artifact, runtime = load_artifact(artifacts / "letters"), replace(_TWO, threads=threads)
    assert type(sharing(artifact, runtime, CoreBudget(cores).share(threads))) is ScanRunner
    slots = replace(_TWO, runner="slots")
    assert type(sharing(artifact, slots, CoreBudget(2).share(2))) is SlotRunner


def test_what_was_made_already_is_not_made_again(artifacts: Path) -> None:
    artifact = load_artifact(artifacts / "letters")
    made = {n: ScanRunner(artifact, replace(_TWO, threads=n)) for n in (1, 2)}
    shared = sharing(artifact, _TWO, CoreBudget(2).share(2), made)
    assert list(shared.parts) == [made[2], made[1]]


def test_on_a_cpu_no_runner_waits_for_another_model_and_a_scan_may_run_in_parts(
    artifacts: Path,
) -> None:
    artifact = load_artifact(artifacts / "letters")
    scan, shared = ScanRunner(artifact, _TWO), sharing(artifact, _TWO, CoreBudget(2).share(2))
    slots = SlotRunner(artifact, replace(_TWO, runner="slots"))
    assert isinstance(shared, SharingRunner)
    assert [runner.taken for runner in (scan, shared, slots)] == [False] * 3
    assert [runner.divides for runner in (scan, shared, slots)] == [True, True, False]


def test_both_are_given_up(artifacts: Path) -> None:
    artifact = load_artifact(artifacts / "letters")
    shared = sharing(artifact, _TWO, CoreBudget(2).share(2))
    assert attest(artifact, shared).ok
    shared.give_up()
    for part in shared.parts:
        with pytest.raises(Exception, match="terminate flag"):
            attest(artifact, part)


def test_an_engine_has_its_share_while_it_has_work() -> None:
    budget, runs = CoreBudget(cores=2), threading.Event()
    share, other = budget.share(2), budget.share(2)
    runner = ScriptedRunner(b"abcdefgh" * 8, during=lambda number: runs.wait(10))
    engine = made_engine(runner, limits=limits(), share=share)
    engine.start()
    assert engine.attested.wait(10)
    assert not other.oversubscribed
    call = Call(max_tokens=4)
    engine.submit([call.job])
    assert eventually(lambda: other.oversubscribed)
    runs.set()
    assert eventually(lambda: not other.oversubscribed)
    runs.clear()
    engine.submit([Call(max_tokens=4).job])
    assert eventually(lambda: other.oversubscribed)
    engine.tell_to_stop()  # in the middle of it
    runs.set()
    engine.stop()
    assert budget.wanted == 0


def test_both_runners_of_a_service_prove_themselves(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.loading.usable_cores", lambda: 2)
    proved: list[object] = []
    monkeypatch.setattr(
        "service.models.attest",
        lambda artifact, runner: proved.append(runner) or attest(artifact, runner),
    )
    with running(settings(artifacts, threads=2, runner="scan")) as service:
        assert len({id(runner) for runner in proved}) == 2 * len(list(service.app.state.models))
