"""Jobs of a comparison, and how the processes that share them end."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from lab import jobs
from lab.shared import begin
from tests.service.serving import eventually

_ROOT = Path(__file__).parents[3]
# Six jobs for two workers, each of which notes in a file that it began.
_JOBS = """
import signal, sys, time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock
from tqdm import tqdm
# What trains takes seconds to load in each of three processes, and nothing is trained.
sys.modules |= dict.fromkeys(("torch", "lab.compare", "lab.experiment", "lab.plan"), MagicMock())
from lab import jobs
from training.machine import terminated_as_interrupted

signal.signal(signal.SIGINT, signal.default_int_handler)  # who is in the background ignores it

class Slow:
    def compete(self, norm, seeds):
        with tqdm(total=1), Path(sys.argv[1], "begun").open("a") as log:
            log.write("x")
            log.flush()
            # At work, as a training is: of two signals at once another thread may take both, and
            # who only waits hears of neither.
            for _ in range(600):
                time.sleep(0.1)

jobs._laboratory = lambda *_: Slow()
if __name__ == "__main__":
    task = SimpleNamespace(name="slow")
    with terminated_as_interrupted():
        jobs.carry_out(task, [task] * 3, ["layer", "none"], 1, None, Path(), workers=2)
"""


def _left(group: int) -> bool:
    """Whether any process of a group is there, but for those that have ended: whoever adopts them
    may take seconds to look."""
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                return True
    return False


@pytest.mark.parametrize(
    ("tell", "number"),
    [
        (os.killpg, signal.SIGINT),
        (os.kill, signal.SIGINT),
        (os.kill, signal.SIGTERM),
        (os.kill, signal.SIGKILL),
    ],
)
def test_a_signal_ends_the_jobs_there_are_and_begins_no_others(
    tmp_path: Path, tell: Callable[[int, int], None], number: signal.Signals
) -> None:
    """Ctrl-C comes to all processes of a terminal, others to the one that they were meant for, as
    `kill -INT` does."""
    script = tmp_path / "jobs.py"
    script.write_text(_JOBS)
    log = tmp_path / "begun"
    log.touch()
    told = tmp_path / "told"
    with told.open("w") as errors:
        jobs = subprocess.Popen(
            [sys.executable, str(script), str(tmp_path)],
            cwd=_ROOT,
            env=os.environ | {"PYTHONPATH": str(_ROOT)},
            start_new_session=True,
            stderr=errors,
        )
    try:
        assert eventually(lambda: len(log.read_text()) == 2)
        tell(jobs.pid, number)
        assert jobs.wait(30) != 0
        assert eventually(lambda: not _left(jobs.pid))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(jobs.pid, signal.SIGKILL)
        jobs.wait()
    assert len(log.read_text()) == 2, "of six"
    assert "Exception in thread" not in told.read_text(), "of the pool"
    assert number == signal.SIGKILL or "leaked" not in told.read_text(), "of a bar"


def test_ctrl_c_ends_a_process_of_the_pool_that_is_still_loading() -> None:
    """It would print where it was."""
    program = (
        "import multiprocessing, signal, sys, time\n"
        "from lab.shared import begin\n"
        "assert 'torch' not in sys.modules\n"
        "multiprocessing.parent_process = multiprocessing.current_process\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "multiprocessing.process.BaseProcess.join = lambda process: time.sleep(60)\n"
        "begin()\n"
        "signal.raise_signal(signal.SIGINT)\n"
    )
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, "")


def test_a_process_of_the_pool_ends_when_there_is_no_more_to_do() -> None:
    """Though it watches the one that began it, which waits for it then."""
    process = multiprocessing.get_context("spawn").Process(target=begin)
    process.start()
    process.join(60)
    ended = process.exitcode
    process.kill()
    process.join()
    assert ended == 0


def test_ctrl_c_is_heard_while_there_is_something_to_save(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Any] = []
    monkeypatch.setattr(jobs, "_compete", lambda: heard.append(signal.getsignal(signal.SIGINT)))
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        jobs._work()
        heard.append(signal.getsignal(signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.default_int_handler, signal.SIG_DFL]


class _Threads(ThreadPoolExecutor):
    """In the place of processes, which take seconds to begin."""

    def __init__(self, workers: int, *_: object, **options: object) -> None:
        super().__init__(workers)


@pytest.fixture
def carry_out(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Jobs of a task done by `work`, two at a time."""

    def done(work: Callable[..., object], jobs_of_task: str) -> None:
        monkeypatch.setattr(jobs, "ProcessPoolExecutor", _Threads)
        monkeypatch.setattr(jobs, "_work", work)
        task: Any = SimpleNamespace(name="toy")
        jobs.carry_out(task, [task], list(jobs_of_task), 1, None, workers=2)

    return done


def test_where_a_job_fails_no_others_are_begun(carry_out: Callable[..., None]) -> None:
    begun: list[Any] = []

    def fail(*job: Any) -> None:
        begun.append(job)
        time.sleep(0.1)
        raise ValueError("of one")

    with pytest.raises(ValueError, match="of one"):
        carry_out(fail, "abcdefghij")
    assert len(begun) < 10


def test_a_process_that_is_killed_is_told_in_a_line(carry_out: Callable[..., None]) -> None:
    """As one is by a system that is short of memory: it is no defect of this project's."""

    def be_killed(*job: Any) -> None:
        raise BrokenProcessPool("as the pool says it")

    with pytest.raises(ChildProcessError, match="was killed; the same command goes on"):
        carry_out(be_killed, "abc")
