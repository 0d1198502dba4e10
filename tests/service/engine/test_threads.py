"""How many threads a model gets: as many as make it faster."""

import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from service.artifact import Artifact, load_artifact
from service.engine.pace import median_step_s
from service.engine.runners import Runner, given_up
from service.engine.runtime import Runtime
from service.engine.threads import fastest_runners, usable_cores
from tests.service.engine.scripted import ScriptedRunner
from tests.service.serving import Service, running, settings

_RUNTIME = Runtime("cpu", "scan", 0, 4)


class Watch:
    """Says how long the first, second, ... runner takes, with one row and with many."""

    def __init__(self, *seconds: tuple[float, float]) -> None:
        self._seconds = seconds
        self.runners: list[Runner] = []

    def __call__(self, artifact: Artifact, runner: Runner, rows: int) -> float:
        if runner not in self.runners:
            self.runners.append(runner)
        return self._seconds[self.runners.index(runner)][rows > 1]


@pytest.mark.parametrize(
    ("cores", "seconds", "threads", "other"),
    [
        (1, (), 1, 0),
        (2, ((1.0, 4.0), (0.7, 2.8)), 2, 1),
        (2, ((1.0, 4.0), (1.4, 5.6)), 1, 2),
        (2, ((1.0, 4.0), (0.99, 3.96)), 1, 2),  # not worth a core
        (2, ((1.0, 4.0), (0.99, 2.8)), 2, 1),  # for the crowd
        (2, ((1.0, 4.0), (0.7, 4.4)), 2, 1),  # for one alone
        (2, ((1.0, 4.0), (1.1, 2.8)), 1, 2),  # who is alone would wait for it
        (6, ((1.0, 4.0), (0.7, 3.0), (0.5, 2.0)), 6, 3),
        (5, ((1.0, 4.0), (0.7, 3.0), (0.8, 3.5)), 2, 5),
        (64, ((1.0, 4.0), (0.7, 3.0), (0.6, 2.0), (0.9, 3.0)), 4, 8),
    ],
)
def test_threads_are_added_while_they_make_it_faster(
    artifacts: Path,
    cores: int,
    seconds: tuple[tuple[float, float], ...],
    threads: int,
    other: int,
) -> None:
    """And the runner with the next number is kept, which may be faster at another time."""
    artifact, watch = load_artifact(artifacts / "letters"), Watch(*seconds)
    runners, runtime = fastest_runners(artifact, _RUNTIME, cores=cores, step_s=watch)
    assert (runtime.threads, runtime.other_threads) == (threads, other)
    assert len(watch.runners) == len(seconds)
    assert {n: runner.threads for n, runner in runners.items()} == {n: n for n in runners}
    assert runners.keys() == {threads, other} - {0}
    if other:
        assert [runners[n] for n in sorted(runners)] == watch.runners[-2:]


def test_what_was_found_of_threads_is_told_in_the_log(
    artifacts: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever wonders at a pace sees why it is so."""
    artifact, watch = (
        load_artifact(artifacts / "letters"),
        Watch((1.0, 4.0), (0.7, 3.0), (0.5, 2.0)),
    )
    with caplog.at_level("INFO", "service"):
        fastest_runners(artifact, _RUNTIME, cores=6, step_s=watch)
    found = "3 take 0.70 of the time of 1; 6 take 0.71 of the time of 3"
    assert caplog.messages == [f"letters: 6 threads of 6; {found}"]


@pytest.mark.parametrize("disturbed", [1, 2, 3])
def test_a_burst_of_other_work_decides_nothing(artifacts: Path, disturbed: int) -> None:
    """It falls on some measurements, whichever runner they are of."""

    def measure(artifact: Artifact, runner: Runner, rows: int) -> float:
        seen.append(runner)
        burst = len(seen) // 2 % 7 < disturbed
        return (1.0 if runner is seen[0] else 5.0 if burst else 0.6) * rows

    seen: list[Runner] = []
    artifact = load_artifact(artifacts / "letters")
    _, runtime = fastest_runners(artifact, _RUNTIME, cores=2, step_s=measure)
    assert runtime.threads == 2
    assert all(before is not after for before, after in zip(seen[::2], seen[1::2], strict=True))


def test_what_is_measured_is_a_row_alone_and_a_crowd_on_the_cores_that_are_usable(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(artifact: Artifact, runner: Runner, rows: int, *, runs: int) -> float:
        measured.setdefault(runner, set()).add(rows)
        # More are faster with many rows, and make no difference with one.
        return 1 / (1 + list(measured).index(runner) * (rows > 1))

    measured: dict[Runner, set[int]] = {}
    monkeypatch.setattr("service.engine.threads.median_step_s", measure)
    monkeypatch.setattr("service.engine.threads.usable_cores", lambda: 3)
    artifact = load_artifact(artifacts / "letters")
    _, runtime = fastest_runners(artifact, replace(_RUNTIME, slots=24))
    assert runtime.threads == 3
    assert list(measured.values()) == [{1, 8}] * 2  # with one and three
    measured.clear()
    fastest_runners(artifact, replace(_RUNTIME, slots=1))
    assert list(measured.values()) == [{1}] * 2


@pytest.mark.parametrize("slow", [1, 2])
def test_a_runner_that_takes_too_long_is_given_up_and_that_is_logged(
    artifacts: Path, caplog: pytest.LogCaptureFixture, slow: int
) -> None:
    def measure(artifact: Artifact, runner: Runner, rows: int) -> float:
        runners.append(runner)
        until_s = time.monotonic() + (10 if len(runners) == slow else 0)
        while time.monotonic() < until_s:
            median_step_s(artifact, runner, rows, runs=1)
        return 1 / len(runners)

    runners: list[Runner] = []
    artifact = load_artifact(artifacts / "letters")
    with pytest.raises(Exception, match="terminate flag"):
        fastest_runners(artifact, _RUNTIME, cores=2, limit_s=0.2, step_s=measure)
    assert len(runners) == slow
    assert caplog.messages == ["a run of a model is given up after 0.2 s"]


def test_a_runner_that_was_in_time_is_given_up_by_nobody_later() -> None:
    others = threading.enumerate()
    with given_up(ScriptedRunner(b""), 60):
        (waiting,) = set(threading.enumerate()) - set(others)
    waiting.join(2)
    assert not waiting.is_alive()


def _v1(group: str, quota: int) -> dict[str, str]:
    """The files of a group of version 1, by the period of 100 ms."""
    return {f"{group}/cpu.cfs_quota_us": f"{quota}\n", f"{group}/cpu.cfs_period_us": "100000\n"}


_IN_A_SLICE = "0::/a.slice/b.service"
_QUOTAS: dict[str, tuple[str, dict[str, str], int]] = {
    "none": (_IN_A_SLICE, {}, 8),
    "v2, a container": ("0::/", {"cpu.max": "150000 100000"}, 1),
    "v2, two cores": ("0::/", {"cpu.max": "200000 100000"}, 2),
    "v2, another period": ("0::/", {"cpu.max": "35000 10000"}, 3),
    "v2, less than one": ("0::/", {"cpu.max": "20000 100000"}, 1),
    "v2, more than there are": ("0::/", {"cpu.max": "6400000 100000"}, 8),
    "v2, unlimited": ("0::/", {"cpu.max": "max 100000"}, 8),
    "v2, its own group": (_IN_A_SLICE, {"a.slice/b.service/cpu.max": "300000 100000"}, 3),
    "v2, the group around it": (
        _IN_A_SLICE,
        {"a.slice/b.service/cpu.max": "max 100000", "a.slice/cpu.max": "250000 100000"},
        2,
    ),
    "v2, the path of its host": ("0::/docker/b6", {"cpu.max": "400000 100000"}, 4),
    "v1": ("4:cpu,cpuacct:/x\n0::/", _v1("cpu/x", 150000), 1),
    "v1, the path of its host": ("9:name=systemd:/\n4:cpu:/docker/b6", _v1("cpu", 500000), 5),
    "v1, unlimited": ("4:cpu:/", _v1("cpu", -1), 8),
    "v1, another controller": ("4:cpuset:/", _v1("cpu", 100000), 8),
}


@pytest.mark.parametrize("name", _QUOTAS)
def test_threads_keep_within_the_quota_of_the_process(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups, files, cores = _QUOTAS[name]
    content = {f"sys/fs/cgroup/{path}": text for path, text in files.items()}
    for path, text in (content | {"proc/self/cgroup": groups + "\n"}).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert usable_cores(tmp_path) == cores


def test_without_control_groups_the_affinity_decides(tmp_path: Path) -> None:
    assert usable_cores(tmp_path) == len(os.sched_getaffinity(0))


def test_a_measured_model_says_its_threads_and_answers_as_any_other(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even one that finds the other number faster on its way."""

    def threads(service: Service) -> int:
        models = service.client.get("/health").json()["models"]
        return int(models["letters"]["threads"])

    request = {"prompt": "a", "max_tokens": 800, "seed": 3}
    with running(settings(artifacts, threads=1)) as one:
        expected = one.text(**request)
        assert one.client.get("/v1/models/letters").json()["threads"] == 1
    for module in ("engine.threads", "loading"):
        monkeypatch.setattr(f"service.{module}.usable_cores", lambda: 2)
    for name, value in (("_EVERY_S", 0.0), ("_LEAST_S", 0.0), ("_PAUSE_S", 1e9)):
        monkeypatch.setattr(f"service.engine.preference.{name}", value)
    with running(settings(artifacts, threads=0)) as measured:
        before = threads(measured)
        for name, many in (("_TO_FEW", 2), ("_TO_MANY", 1)):
            faster = 1e9 if before == many else 0.0
            monkeypatch.setattr(f"service.engine.preference.{name}", faster)
        assert measured.text(**request) == expected
        assert {before, threads(measured)} == {1, 2}
