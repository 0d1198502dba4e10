"""Memory is that of a process and of everything it started."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import generate_latest

from bench import memory
from bench.client import Answer
from bench.goal import Goal
from bench.memory import MemoryRow, StartRow, WaitingRow, resident_mb
from bench.peers.launch import family
from bench.target import Target
from service.metrics import Metrics
from service.settings import Settings

_SERVICE = Target("service", 1)

_CHILD = "import sys; print(flush=True); sys.stdin.read()"
_PARENT = f"""
import subprocess, sys
pipes = {{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}}
block = bytearray(30_000_000)
with subprocess.Popen([sys.executable, "-c", {_CHILD!r}], **pipes) as child:
    child.stdout.readline()
    print(flush=True)
    sys.stdin.read()
    child.communicate()
"""


def test_children_count() -> None:
    command = [sys.executable, "-c", _PARENT]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout is not None
        process.stdout.readline()
        parent, child = family(process.pid)
        alone = parent.memory_info().rss / 1e6
        assert alone > 30
        assert resident_mb(process.pid) > alone + 1
        both = alone + child.memory_info().rss / 1e6
        assert resident_mb(process.pid) == pytest.approx(both, rel=0.1)
        assert child.ppid() == process.pid
        process.communicate()
    assert family(process.pid) == []


def test_what_waits_takes_what_the_service_holds_more_than_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """150 MB for 100 with 200 that wait: 250 for 1,000."""
    asked: list[int] = []
    held, did = iter([100.0, 150.0]), list[object]()

    async def ask(session: Any, service: Target, size: int, seed: int, *, streamed: bool) -> None:
        asked.append(seed)
        await asyncio.Event().wait()

    async def until_waiting(session: Any, service: Target, queued: int) -> None:
        await asyncio.sleep(0)
        assert len(asked) == memory._SLOTS + queued
        did.append(queued)

    async def sleep(seconds: float) -> None:
        did.append(seconds)
        await asyncio.sleep(0)

    def resident_mb(pid: int) -> float:
        did.append("held")
        return next(held)

    monkeypatch.setattr(memory, "ask", ask)
    monkeypatch.setattr(memory, "_until_waiting", until_waiting)
    stands_for = SimpleNamespace(
        create_task=asyncio.create_task, gather=asyncio.gather, sleep=sleep
    )
    monkeypatch.setattr(memory, "asyncio", stands_for)
    monkeypatch.setattr(memory, "resident_mb", resident_mb)
    row = asyncio.run(memory._fill(_SERVICE, 200))
    assert did == [0, memory._SETTLE_S, "held", 200, memory._SETTLE_S, "held"]
    assert row == WaitingRow(200, 150.0, 250.0)


def _asked(page: str) -> int:
    async def text() -> str:
        return page

    session: Any = SimpleNamespace(get=lambda url: nullcontext(SimpleNamespace(text=text)))
    return asyncio.run(memory._waiting(session, _SERVICE))


def test_who_waits_for_any_model_is_counted_once() -> None:
    """And not again under vLLM's name, nor who runs."""
    metrics = Metrics()
    for model, waiting in (("one", 3), ("two", 4)):
        metrics.of_engine(model).waiting.set(waiting)
        metrics.of_engine(model).running.set(8)
    assert _asked(generate_latest(metrics.registry).decode()) == 7
    with pytest.raises(RuntimeError, match="how many requests wait"):
        _asked("")


def test_more_that_wait_are_as_little_what_was_asked_for_as_fewer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = [0, 5]

    async def waiting(session: Any, service: Target) -> int:
        return seen.pop(0)

    async def no_pause(seconds: float) -> None:
        pass

    monkeypatch.setattr(memory, "_waiting", waiting)
    monkeypatch.setattr(memory, "asyncio", SimpleNamespace(sleep=no_pause))
    monkeypatch.setattr(memory, "_PATIENCE_S", 1e-9)
    session: Any = None
    with pytest.raises(RuntimeError, match="0 requests wait after"):
        asyncio.run(memory._until_waiting(session, _SERVICE, 3))
    with pytest.raises(RuntimeError, match="5 requests wait after"):
        asyncio.run(memory._until_waiting(session, _SERVICE, 3))


class Launched:
    """Stands for services: what each was started with, in order, and how long it took."""

    def __init__(self, *ready_s: float) -> None:
        self.with_settings: list[dict[str, str]] = []
        self.of: list[tuple[str, ...]] = []
        self._ready_s = iter(ready_s)

    @contextmanager
    def __call__(self, name: str, *, artifacts: Path, settings: Any = None) -> Iterator[Target]:
        self.with_settings.append(settings)
        self.of.append(tuple(sorted(folder.name for folder in artifacts.iterdir())))
        yield Target(name, 1, pid=len(self.of[-1]), ready_s=next(self._ready_s, 0.0))


def test_a_queue_is_that_of_a_service_that_refuses_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fill(service: Target, waiting: int) -> WaitingRow:
        return WaitingRow(waiting, 0.0, 0.0)

    launched = Launched()
    monkeypatch.setattr(memory, "launch", launched)
    monkeypatch.setattr(memory, "_fill", fill)
    memory._queue(tmp_path, 1000)
    for name, value in launched.with_settings[0].items():
        monkeypatch.setenv(name, value)
    settings = Settings()
    assert settings.slots == memory._SLOTS  # so all but so many wait
    assert settings.queue_size > 1000
    assert settings.max_connections // 2 > 1000 + memory._SLOTS
    assert min(settings.max_wait_s, settings.deadline_s) > 1e6


@pytest.mark.parametrize(
    ("full", "starts", "waiting"),
    [(False, [1.0, 5.0, 2.0], 200), (True, [4.0, 1.0, 3.0, 2.0, 2.0], 1000)],
)
def test_memory_and_start_are_of_services_with_the_models_that_are_told(
    full: bool, starts: list[float], waiting: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a full run more."""

    async def ask(session: Any, service: Target, *request: Any, streamed: bool) -> Answer:
        return Answer("200", 0.0, 0.0, [])

    for model in ("letters", "squint"):
        (tmp_path / model).mkdir()
    launched, queue = Launched(9.0, 9.0, *starts), WaitingRow(waiting, 1.0, 1.0)
    filled = list[tuple[set[str], int]]()

    def fill(artifacts: Path, waiting: int) -> WaitingRow:
        filled.append(({folder.name for folder in artifacts.iterdir()}, waiting))
        return queue

    monkeypatch.setattr(memory, "launch", launched)
    monkeypatch.setattr(memory, "ask", ask)
    monkeypatch.setattr(memory, "ARTIFACTS", tmp_path)
    monkeypatch.setattr(memory, "MODELS", ("letters", "squint"))
    monkeypatch.setattr(memory, "resident_mb", lambda pid: 100.0 * pid)
    monkeypatch.setattr(memory, "_queue", fill)
    found = list(memory.measure(full))
    assert filled == [({"letters"}, waiting)]
    one, two = ("letters",), ("letters", "squint")
    assert launched.of == [one, two, *[two] * len(starts)]
    assert [each for each in found if not isinstance(each, Goal)] == [
        ("resident", MemoryRow(one, 100.0)),
        ("resident", MemoryRow(two, 200.0)),
        ("waiting", queue),
        ("start", StartRow(two, 2.0, tuple(starts))),
    ]


def test_a_service_that_answers_nothing_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(session: Any, service: Target, *request: Any, streamed: bool) -> Answer:
        return Answer("503", 0.0, 0.0, [])

    monkeypatch.setattr(memory, "ask", ask)
    with pytest.raises(RuntimeError, match="answers 503"):
        asyncio.run(memory._ask_once(_SERVICE))


def test_memory_is_that_of_a_service_that_has_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    done = list[object]()

    async def ask_once(service: Target) -> None:
        done.append(service)

    monkeypatch.setattr(memory, "launch", lambda *_, **__: nullcontext(_SERVICE))
    monkeypatch.setattr(memory, "_ask_once", ask_once)
    monkeypatch.setattr(memory, "resident_mb", lambda pid: done.append(pid) or 12.34)
    row = memory._resident(Path("any"), ("one",))
    assert (row.models, row.resident_mb) == (("one",), 12.3)
    assert done == [_SERVICE, _SERVICE.pid]
