"""When the artifacts are looked at."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.watch import Watch
from tests.service.altered import copy_of
from tests.service.interleaved import wakes
from tests.service.processes import ready, spawned
from tests.service.serving import eventually

_NEVER_S = 1e9


class _Models:
    """Notes each look, and does something at some of them."""

    def __init__(self, *during: Callable[[], object]) -> None:
        self.looks: list[bool] = []
        self._during = dict(enumerate(during))

    async def look(self, *, again: bool) -> None:
        self.looks.append(again)
        self._during.get(len(self.looks) - 1, lambda: None)()


async def _rounds() -> None:
    """As many of the event loop as a look takes, and more."""
    for _ in range(50):
        await asyncio.sleep(0)


def _looks(models: _Models, watch_s: float, asks: int) -> list[bool]:
    """After it was asked to look so many times, whenever it waited."""

    async def follow() -> None:
        watch = Watch(models, watch_s)  # type: ignore[arg-type]
        running = asyncio.ensure_future(watch.run())
        await _rounds()
        for _ in range(asks):
            watch.ask()
            await _rounds()
        while not models.looks:  # it has an interval
            await asyncio.sleep(0.001)
        running.cancel()

    asyncio.run(follow())
    return models.looks


def test_it_looks_when_it_is_asked_to_and_then_at_what_failed_as_well() -> None:
    assert _looks(_Models(), _NEVER_S, asks=2) == [True, True]


def test_with_an_interval_of_0_it_looks_only_then() -> None:
    assert _looks(_Models(), 0.0, asks=1) == [True]


def test_at_its_interval_it_leaves_what_failed() -> None:
    assert not any(_looks(_Models(), 1e-4, asks=0))


def test_a_look_that_fails_is_followed_by_others(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> Any:
        raise RuntimeError("the disk is gone")

    assert _looks(_Models(fail), _NEVER_S, asks=3) == [True] * 3
    assert "a look at the artifacts failed" in caplog.text


def test_looks_that_fail_alike_are_told_once_and_again_after_one_that_does_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As where there is no thread for them: that may last for hours, and each was a traceback."""

    def fail() -> Any:
        raise RuntimeError("can't start new thread")

    _looks(_Models(fail, fail, lambda: None, fail, fail), _NEVER_S, asks=5)
    assert len(caplog.records) == 2


def test_whoever_asks_before_it_begins_has_its_first_look() -> None:
    models = _Models()

    async def follow() -> None:
        watch = Watch(models, _NEVER_S)  # type: ignore[arg-type]
        watch.ask()
        running = asyncio.ensure_future(watch.run())
        await _rounds()
        running.cancel()

    asyncio.run(follow())
    assert models.looks == [True]


def test_whoever_asks_after_its_end_is_not_heard() -> None:
    """A hang-up may come while the process ends, when the event loop is closed."""
    watch = Watch(_Models(), _NEVER_S)  # type: ignore[arg-type]

    async def follow() -> None:
        running = asyncio.ensure_future(watch.run())
        await _rounds()
        running.cancel()

    asyncio.run(follow())
    watch.ask()


def test_a_loop_that_sleeps_is_woken_by_whoever_asks() -> None:
    """A signal's handler only interrupts its sleep, which then goes on."""
    models = _Models()

    async def follow() -> int:
        woken = wakes(asyncio.get_running_loop())
        watch = Watch(models, _NEVER_S)  # type: ignore[arg-type]
        running = asyncio.ensure_future(watch.run())
        await _rounds()
        watch.ask()
        await _rounds()
        running.cancel()
        return len(woken)

    assert (asyncio.run(follow()), models.looks) == (1, [True])


def test_who_asks_during_a_look_has_another() -> None:
    """What the first has passed already may be what they changed."""
    looks: list[bool] = []

    class Models:
        async def look(self, *, again: bool) -> None:
            looks.append(again)
            if len(looks) == 1:
                watch.ask()
                await _rounds()

    watch = Watch(Models(), _NEVER_S)  # type: ignore[arg-type]

    async def follow() -> None:
        running = asyncio.ensure_future(watch.run())
        await _rounds()
        watch.ask()
        for _ in range(3):
            await _rounds()
        running.cancel()

    asyncio.run(follow())
    assert looks == [True, True]


def test_who_cancels_it_during_a_look_ends_it() -> None:
    class Slow:
        async def look(self, *, again: bool) -> None:
            await asyncio.sleep(_NEVER_S)

    async def follow() -> bool:
        watch = Watch(Slow(), _NEVER_S)  # type: ignore[arg-type]
        running = asyncio.ensure_future(watch.run())
        await _rounds()
        watch.ask()
        await _rounds()
        running.cancel()
        await _rounds()
        return running.cancelled()

    assert asyncio.run(follow())


_CHANGED_AS_IT_LOADS = """
import os, runpy, shutil, signal, sys
from service.catalogue import Models
read = Models.__init__
folder, other = sys.argv.pop(), sys.argv.pop()
def and_hang_up(*given):
    read(*given)
    shutil.copytree(other, folder)
    os.kill(os.getpid(), signal.SIGHUP)
Models.__init__ = and_hang_up
runpy.run_module("service", run_name="__main__")
"""


def test_a_hang_up_as_it_loads_has_it_look_once_it_serves(artifacts: Path, tmp_path: Path) -> None:
    """What has come since the folder was read would wait for the next."""
    copy_of(artifacts / "letters", tmp_path)
    changed = (str(artifacts / "noise"), str(tmp_path / "noise"))
    program = ("-c", _CHANGED_AS_IT_LOADS, *changed)
    with spawned(tmp_path, program=program, watch_s=0) as (_, url):
        assert eventually(lambda: ready(url))
        assert eventually(lambda: "noise" in httpx.get(f"{url}/health").json()["models"])
