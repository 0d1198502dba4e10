"""What the checks and the measurement of fleets say: each figure is of the process and the unit
that its name has, and each goal of its own figure."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from bench.goal import Goal
from bench.rows import Load, LoadRow, Spread, Window, summarise
from bench.target import SERVERS, SERVICE, Target
from tests.scale import checks, measured
from tests.scale.checks import _SHORT

_FRONT, _REPLICAS = [1], [2, 3]
_TARGET = Target("haproxy", 1, server=SERVERS[SERVICE])


class _Fleet:
    """Two replicas behind something."""

    target = _TARGET

    def pids(self) -> list[int]:
        return _REPLICAS

    def front(self) -> list[int]:
        return _FRONT


_FLEET: Any = _Fleet()


@pytest.fixture
def busy_s(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Processor time that the front and the replicas have taken so far."""
    spent = {"front": 100.0, "replicas": 500.0}

    def busy(pids: list[int]) -> float:
        return spent["front" if pids == _FRONT else "replicas"]

    monkeypatch.setattr(measured, "_busy_s", busy)
    return spent


def test_a_hop_costs_what_each_took_for_a_request(
    busy_s: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From asking to having its answer; 150 of one byte, one after the other."""
    now_s, sizes = [0.0], list[int]()

    @contextmanager
    def client(**_: Any) -> Iterator[Any]:
        yield SimpleNamespace(post=post)

    def post(url: str, *, content: bytes) -> Any:
        sizes.append(content.count(b'"max_tokens": 1,'))
        now_s[0] += 0.001 * len(sizes)
        busy_s["front"] += 0.002
        busy_s["replicas"] += 0.005
        return SimpleNamespace(raise_for_status=lambda: None)

    monkeypatch.setattr(measured, "httpx", SimpleNamespace(Client=client))
    monkeypatch.setattr(measured, "time", SimpleNamespace(perf_counter=lambda: now_s[0]))
    assert measured._alone(_FLEET) == {
        "alone_p50_ms": 75.5,
        "alone_p99_ms": 149.0,
        "alone_front_cpu_ms": 2.0,
        "alone_replica_cpu_ms": 5.0,
    }
    assert sizes == [1] * 150


def test_a_byte_costs_what_each_took_for_those_of_all_the_run(
    busy_s: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(target: Target, *, seconds: float, clients: int, streamed: bool) -> LoadRow:
        assert (target, clients, streamed) == (_TARGET, 8, True)
        busy_s["front"] += 0.08
        busy_s["replicas"] += 1.6
        row = summarise(Load("a", "closed", 8, None, True, "fixed"), [], Window(0, seconds), 0.0)
        first, whole = Spread(1.0, 2.0, 3.0, None, 9), Spread(4.0, 5.0, 6.0, None, 9)
        return replace(row, bytes_per_s=1000.0, first_byte_ms=first, latency_ms=whole)

    monkeypatch.setattr(measured, "load", load)
    row = measured._together(_FLEET)
    assert (row["front_cpu_us_per_byte"], row["replica_cpu_us_per_byte"]) == (10.0, 200.0)
    assert (row["first_byte_ms"], row["latency_ms"]) == ((1.0, 3.0), (4.0, 6.0))
    assert (row["bytes_per_s"], row["errors"]) == (1000, {})


def test_every_way_is_told_with_the_replicas_and_threads_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @contextmanager
    def way(name: str, size: int, threads: int = 1) -> Iterator[Any]:
        yield SimpleNamespace(target=replace(_TARGET, name=f"{name} {size} {threads}"))

    monkeypatch.setattr(measured, "direct", lambda threads=1: way("direct", 1, threads))
    monkeypatch.setattr(measured, "balanced", lambda size: way("haproxy", size))
    monkeypatch.setattr(measured, "rayed", lambda size: way("ray", size))
    monkeypatch.setattr(measured, "_alone", lambda _: {"alone": 1})
    monkeypatch.setattr(measured, "_together", lambda _: {"together": 2})
    rows = [row for _, row in measured.measure()]
    for row in rows:
        assert row["way"].split()[1:] == [str(row["replicas"]), str(row["threads"])]
    assert [row["way"].split()[0] for row in rows] == [
        "direct", "direct", "haproxy", "haproxy", "ray", "ray"
    ]  # fmt: skip
    assert all((row["alone"], row["together"]) == (1, 2) for row in rows)


def test_processor_time_is_that_of_the_process_and_of_the_system_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def process(pid: int) -> Any:
        return SimpleNamespace(cpu_times=lambda: SimpleNamespace(user=10.0 * pid, system=pid))

    monkeypatch.setattr(measured.psutil, "Process", process)
    assert measured._busy_s([1, 2]) == 33.0


@pytest.mark.parametrize(
    ("got", "expected", "wrong"),
    [("abc", "abc", 0), ("abd", "abc", 1), ("ab", "abc", 1), ("abcd", "abc", 1), ("", "abc", 3)],
)
def test_a_byte_that_is_lost_or_too_many_is_wrong(got: str, expected: str, wrong: int) -> None:
    assert checks._wrong(got, expected) == wrong


@pytest.mark.parametrize(
    ("lost", "wrong", "written", "missed"),
    [
        ({}, 0, [5.0, 9.0], []),
        ({"503": 1}, 0, [5.0, 9.0], ["many: requests lost"]),
        ({}, 1, [5.0, 9.0], ["many: answers with a wrong byte"]),
        ({}, 0, [0.0, 9.0], ["many: replicas that answered"]),
        ({}, 0, [9.0], ["many: replicas that answered"]),
    ],
)
def test_many_are_judged_by_what_was_lost_or_wrong_and_by_who_answered(
    lost: dict[str, int], wrong: int, written: list[float], missed: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    async def ask_all(*_: Any) -> tuple[dict[str, int], int]:
        return lost, wrong

    monkeypatch.setattr(checks, "_ask_all", ask_all)
    monkeypatch.setattr(checks, "_each", lambda *_: written)
    found = list(checks.many(_FLEET, 9))
    assert [one.name for one in found if isinstance(one, Goal) and not one.met] == missed


def test_each_answer_is_compared_with_that_of_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    came = 0

    async def ask(_: Any, url: str, work: Any, seed: int) -> Any:
        nonlocal came
        came += 1
        assert work is _SHORT
        status = "503" if came == checks._SEEDS + 3 else "200"
        return SimpleNamespace(status=status, content=[0 if came == 30 else seed + 1])

    monkeypatch.setattr(checks, "ask", ask)
    assert asyncio.run(checks._ask_all("", 40, 4)) == ({"503": 1}, 1)
    assert came == checks._SEEDS + 40


def test_a_series_is_asked_of_each_replica_by_when_it_was_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They have their turns, and nothing else says whose page it is."""
    pages = [
        f"evenkeel_a_created 1.{made}\nevenkeel_running 2.0\n" if made == 1 else
        f"evenkeel_a_created 1.{made}\nevenkeel_running 5.0\n" for made in (1, 1, 2)
    ]  # fmt: skip
    monkeypatch.setattr(checks, "metrics", lambda _: pages.pop(0))
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: None)
    monkeypatch.setattr(checks, "time", clock)
    assert checks._each(_FLEET, "running") == [2.0, 5.0]
