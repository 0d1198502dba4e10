"""A model's runner with few threads and the one with many: which of them runs, and that no bit
depends on it."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from contract.golden import Arrays
from service.artifact import load_artifact
from service.attestation import attest
from service.engine.core_budget import CoreBudget
from service.engine.preference import Preference, Ran
from service.engine.runners import Runner, ScanRunner, SlotRunner, stack_rows
from service.engine.runtime import Runtime
from service.engine.sharing import SharingRunner, sharing
from tests.service.serving import running, settings

_TWO = Runtime("cpu", "scan", threads=2, slots=4)
_LETTERS = "letters"


class Whim(Preference):
    """Prefers what it is told to, and remembers what it is asked and told."""

    def __init__(self, many: bool = True) -> None:
        self.many = many
        self.asked: list[tuple[tuple[int, int, bool], float]] = []
        self.ran: list[tuple[Ran, bool]] = []

    def choose(self, load: tuple[int, int, bool], now_s: float) -> bool:
        self.asked.append((load, now_s))
        return self.many

    def follow(self, ran: Ran, *, many: bool) -> None:
        self.ran.append((ran, many))


def test_bits_are_the_same_whoever_runs_and_whenever_that_changes(artifacts: Path) -> None:
    artifact, budget, whim = load_artifact(artifacts / _LETTERS), CoreBudget(cores=2), Whim()
    one, two = (ScanRunner(artifact, replace(_TWO, threads=n)) for n in (1, 2))
    shared = SharingRunner(one, two, budget.share(2), whim)
    ran = _watched(shared)
    alone = ScanRunner(artifact, replace(_TWO, threads=1))
    other, rows = budget.share(2), artifact.golden.plain_rows[:2]
    steps = stack_rows([artifact.golden.step_inputs(row) for row in rows], axis=1)
    row = stack_rows([artifact.golden.row_inputs(row) for row in rows], axis=0)
    for runner in (shared, alone):
        for slot in (1, 3):
            runner.load(slot, artifact.initial_state())
    for oversubscribed, whim.many in product((False, True, True, False), (True, False, True)):
        other.acquire() if oversubscribed else other.release()
        found = [runner.run([1, 3], steps, row, filtered=False) for runner in (shared, alone)]
        _same(*found)
        _same(*(runner.read(3) for runner in (shared, alone)))
    assert ran == [2, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1, 2]
    assert [many for _, many in whim.ran] == [
        True,
        False,
        True,
    ] * 2  # nothing of what it was not asked


def _watched(shared: SharingRunner) -> list[int]:
    """How many threads its runs will have had."""
    ran: list[int] = []

    def watch(part: Runner) -> None:
        run = part.run

        def told(*given: Any, **named: Any) -> Arrays:
            ran.append(part.threads)
            return run(*given, **named)

        part.run = told

    for part in shared.parts:
        watch(part)
    return ran


def _same(one: Arrays, other: Arrays) -> None:
    assert one.keys() == other.keys()
    assert all(one[name].tobytes() == other[name].tobytes() for name in one)


@pytest.mark.parametrize(("threads", "cores"), [(1, 2), (2, 4)])
def test_a_model_that_fits_beside_another_keeps_its_one_runner(
    artifacts: Path, threads: int, cores: int
) -> None:
    artifact, runtime = load_artifact(artifacts / _LETTERS), replace(_TWO, threads=threads)
    assert type(sharing(artifact, runtime, CoreBudget(cores).share(threads))) is ScanRunner
    slots = replace(_TWO, runner="slots", other_threads=1)
    assert type(sharing(artifact, slots, CoreBudget(2).share(2))) is SlotRunner


def test_what_was_made_already_is_not_made_again(artifacts: Path) -> None:
    artifact = load_artifact(artifacts / _LETTERS)
    made = {n: ScanRunner(artifact, replace(_TWO, threads=n)) for n in (1, 2)}
    shared = sharing(artifact, _TWO, CoreBudget(2).share(2), made)
    assert list(shared.parts) == [made[2], made[1]]


def test_a_preference_is_told_of_every_run_and_how_long_it_took(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifact, whim = load_artifact(artifacts / _LETTERS), Whim(many=False)
    one, two = (ScanRunner(artifact, replace(_TWO, threads=n)) for n in (1, 2))
    shared = SharingRunner(one, two, CoreBudget(2).share(2), whim)
    clock = iter([7.0, 7.25])
    monkeypatch.setattr("service.engine.sharing.time", SimpleNamespace(perf_counter=clock.__next__))
    golden = artifact.golden
    row = golden.plain_rows[0]
    steps = {name: array[:5] for name, array in golden.step_inputs(row).items()}
    three = stack_rows([steps] * 3, axis=1), stack_rows([golden.row_inputs(row)] * 3, axis=0)
    shared.run([0, 1, 3], *three, filtered=True)
    assert whim.asked == [((3, 5, True), 7.0)]
    assert whim.ran == [(Ran((3, 5, True), 0.25, 7.25), False)]


@pytest.mark.parametrize(("threads", "other"), [(1, 2), (2, 1), (2, 4)])
def test_a_model_begins_with_the_threads_that_were_fastest_and_may_change(
    artifacts: Path, threads: int, other: int
) -> None:
    artifact = load_artifact(artifacts / _LETTERS)
    runtime = replace(_TWO, threads=threads, other_threads=other)
    shared = sharing(artifact, runtime, CoreBudget(2).share(max(threads, other)))
    assert isinstance(shared, SharingRunner)
    assert sorted(part.threads for part in shared.parts) == sorted((threads, other))
    assert shared.threads == threads
    assert shared._preference is not None
    shared._preference.many = threads < other
    assert shared.threads == other


def test_a_model_whose_threads_were_given_keeps_them(artifacts: Path) -> None:
    shared = sharing(load_artifact(artifacts / _LETTERS), _TWO, CoreBudget(2).share(2))
    assert isinstance(shared, SharingRunner)
    assert (shared.threads, shared._preference) == (2, None)


def test_on_a_cpu_every_runner_has_turns_of_its_own_and_a_scan_may_run_in_parts(
    artifacts: Path,
) -> None:
    artifact = load_artifact(artifacts / _LETTERS)
    scan, shared = ScanRunner(artifact, _TWO), sharing(artifact, _TWO, CoreBudget(2).share(2))
    slots = SlotRunner(artifact, replace(_TWO, runner="slots"))
    assert isinstance(shared, SharingRunner)
    assert len({id(runner.turn) for runner in (scan, shared, slots)}) == 3
    assert [runner.divides for runner in (scan, shared, slots)] == [True, True, False]


def test_both_are_given_up(artifacts: Path) -> None:
    artifact = load_artifact(artifacts / _LETTERS)
    shared = sharing(artifact, _TWO, CoreBudget(2).share(2))
    assert attest(artifact, shared).ok
    shared.give_up()
    for part in shared.parts:
        with pytest.raises(Exception, match="terminate flag"):
            attest(artifact, part)


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
