"""Memory is that of a process and of everything it started."""

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from bench import memory
from bench.memory import WaitingRow, resident_mb
from bench.peers.launch import family
from bench.target import Target

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
    held = iter([100.0, 150.0])

    async def ask(session: Any, service: Target, size: int, seed: int, *, streamed: bool) -> None:
        asked.append(seed)
        await asyncio.Event().wait()

    async def until_waiting(session: Any, service: Target, queued: int) -> None:
        await asyncio.sleep(0)
        assert len(asked) == memory._SLOTS + queued

    monkeypatch.setattr(memory, "ask", ask)
    monkeypatch.setattr(memory, "_until_waiting", until_waiting)
    monkeypatch.setattr(memory, "_SETTLE_S", 0.0)
    monkeypatch.setattr(memory, "resident_mb", lambda pid: next(held))
    row = asyncio.run(memory._fill(Target("service", 1), 200))
    assert row == WaitingRow(200, 150.0, 250.0)
