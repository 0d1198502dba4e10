"""What computes gives way to what answers: engines, and the threads of their sessions."""

import os
import sys
import threading
from pathlib import Path

import pytest

from service.artifact import load_artifact
from service.engine.priority import in_background
from service.engine.runtime import Runtime, make_runner
from tests.service.engine.scripted import Call, ScriptedRunner, engine

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="threads have one priority there")


def _priorities() -> dict[int, int]:
    """By the number of each thread of this process; a larger one waits."""
    threads = [int(name) for name in os.listdir("/proc/self/task")]
    return {thread: os.getpriority(os.PRIO_PROCESS, thread) for thread in threads}


def test_an_engine_gives_way_to_the_thread_that_started_it() -> None:
    mine = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    found: list[int] = []

    def look(run: int) -> None:
        found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    with engine(ScriptedRunner(b"0123456789", during=look)) as started:
        call = Call(max_tokens=6)
        started.submit([call.job])
        call.result()
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == mine
    assert min(found) > mine


def test_the_threads_of_a_session_give_way_too(artifacts: Path) -> None:
    before = _priorities()
    mine = before[threading.get_native_id()]
    runner = make_runner(load_artifact(artifacts / "letters"), Runtime("cpu", "scan", 3, 4))
    new = {number: each for number, each in _priorities().items() if number not in before}
    assert len(new) >= 2  # of three, whoever runs a session is one
    assert min(new.values()) > mine
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == mine
    del runner


def test_what_is_made_in_the_background_is_handed_over_and_so_is_what_went_wrong() -> None:
    mine = threading.get_ident()
    assert in_background(threading.get_ident) != mine
    with pytest.raises(ZeroDivisionError):
        in_background(lambda: 1 // 0)
