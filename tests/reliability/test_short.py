"""Short versions of what `python -m tests.reliability` does for long. What they find is true of any
machine; how fast it was is not judged here."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from bench.goal import Goal
from bench.peers.launch import launch
from bench.target import ARTIFACTS, SERVICE, Target
from tests.reliability import aborts, chaos, overload, soak
from tests.reliability.work import INK, TEXT

# Which is measured otherwise, and a second one spins where it has to wait.
_ONE_THREAD = {"EVENKEEL_THREADS": "1"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """With the models that are asked, and no others to load and prove."""
    folder = tmp_path_factory.mktemp("asked")
    for work in (TEXT, INK):
        shutil.copytree(ARTIFACTS / work.model, folder / work.model)
    with launch(SERVICE, artifacts=folder, settings=_ONE_THREAD) as target:
        yield target


def _rows(found: Any) -> dict[str, list[Any]]:
    """By table, goals aside."""
    tables: dict[str, list[Any]] = {}
    for one in found:
        if not isinstance(one, Goal):
            tables.setdefault(one[0], []).append(one[1])
    return tables


def test_nothing_stays_of_clients_that_leave_in_every_way(service: Target) -> None:
    clients = 2 * len(aborts.WAYS) * len(aborts.MOMENTS) * len(aborts.ENDS)  # one of each
    # A pool of threads may grow the first time so much comes at once, and keeps them: that is not
    # waited for as long as the last time, which finds what is left each time.
    for patience_s in (0.5, 0.5, 30.0):
        (row,) = _rows(aborts.measure(service, clients, patience_s))["aborts"]
        before, after = row.before, row.after
        gone = after.idle and after.threads <= before.threads and after.files <= before.files
        if gone:
            break
    assert gone, (before, after)
    assert row.aborted > 0
    assert row.wrong_answers == 0


def test_under_overload_requests_are_answered_or_refused_and_nothing_else(service: Target) -> None:
    tables = _rows(overload.measure(service, 0.3, 0.1, shares=(3.0,)))
    rows = tables["overload"] + tables["beside"]
    assert len(rows) == 3
    assert {row.what for row in rows} == {TEXT.name, INK.name}
    assert all(row.failed == {} for row in rows)
    assert all(row.answered_per_s > 0 or row.refused_share > 0 for row in rows)
    alone, beside = tables["callers"]
    assert (alone.refused, beside.refused) == (0, 0)
    assert beside.answers > 0


def test_a_soak_with_reloads_has_no_wrong_answer(
    service: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(soak, "_SEEDS", 4)  # so many answers have to be known first
    monkeypatch.setattr(soak, "_LEAVES_EVERY", 4)  # some do, however few can be asked for
    (row,) = _rows(soak.measure(service, minutes=0.04, reload_s=0.5, capacity_s=0.1))["soak"]
    assert row.answers > 0
    assert row.left > 0
    assert (row.wrong, row.failed) == (0, {})
    assert row.reloads > 0
    assert row.reloads_failed == 0


def test_clients_that_resume_lose_nothing_where_runs_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chaos, "_SETTINGS", chaos._SETTINGS | _ONE_THREAD)
    row = chaos.play("fail", pause_s=0.2, length=600, clients=3)
    assert row.streams >= 3
    assert row.requests > row.streams
    assert row.characters_and_points > 200 * row.streams
    assert (row.lost, row.wrong) == ([], 0)
    assert row.also == "6 faults; ok, ok, ok, ok"
