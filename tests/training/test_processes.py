"""Processes that train together, of which one is interrupted or fails."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from tests.training.tiny import tensors, write_corpus
from training import checkpoint
from training.loop import CHECKPOINT, LOG

_PATIENCE_S = 120.0
# The names of the threads that are there after a training.
_THREADS_AFTER = """
import sys
from pathlib import Path
from export.__main__ import main
assert main(sys.argv[1:]) == 0
for name in Path("/proc/self/task").glob("*/comm"):
    print(name.read_text().strip())
"""
_SETTINGS = (
    "model.units=16",
    "batch.rows=6",
    "batch.steps=20",
    "training.epochs=1",
    "training.validate_every_epochs=0.2",
    "training.time_limit_s=1e9",  # which hastens no rate
    "training.warmup_updates=5",
)


def _asked(folder: Path, out: str, *more: str) -> list[str]:
    """The arguments of a training that goes to `out`."""
    asked = ["quickstart", "--device", "cpu", "--data", str(folder / "sheep.txt")]
    for setting in (*_SETTINGS, *more):
        asked += ["--set", setting]
    return [*asked, "--out", str(folder / out)]


def _places(world: int) -> list[dict[str, str]]:
    """The environment of each of so many processes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    place = {"WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    return [os.environ | place | {"RANK": str(rank)} for rank in range(world)]


def _start(folder: Path, out: str, *more: str) -> list[subprocess.Popen[str]]:
    """Both processes of a training that goes to `out`."""
    command = [sys.executable, "-m", "training", *_asked(folder, out, *more)]
    return [
        subprocess.Popen(command, env=place, stderr=subprocess.PIPE, text=True)
        for place in _places(2)
    ]


def _ended(processes: list[subprocess.Popen[str]]) -> tuple[list[int], list[str]]:
    """With what both ended and what they told."""
    try:
        told = [process.communicate(timeout=_PATIENCE_S)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [process.returncode for process in processes], told


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_corpus(tmp_path)
    return tmp_path


def _wait_for_a_row(log: Path) -> None:
    until_s = time.monotonic() + _PATIENCE_S
    while not (log.exists() and log.stat().st_size) and time.monotonic() < until_s:
        time.sleep(0.01)


@pytest.mark.long
@pytest.mark.parametrize("whom", [0, 1])
def test_of_processes_of_which_one_is_interrupted_all_end_and_go_on_bit_for_bit(
    folder: Path, whom: int
) -> None:
    assert _ended(_start(folder, "whole"))[0] == [0, 0]
    processes = _start(folder, "parts")
    _wait_for_a_row(folder / "parts" / LOG)
    processes[whom].send_signal(signal.SIGTERM)
    codes, told = _ended(processes)
    assert codes == [128 + signal.SIGTERM] * 2, told
    assert not any("Traceback" in one for one in told)
    progress = checkpoint.load(folder / "parts" / CHECKPOINT)[1]["progress"]
    (row, *_) = (folder / "parts" / LOG).read_text("utf-8").splitlines()
    assert progress["update"] >= json.loads(row)["update"]
    assert _ended(_start(folder, "parts"))[0] == [0, 0]
    whole, parts = tensors(folder / "whole"), tensors(folder / "parts")
    assert whole.keys() == parts.keys()
    assert not [name for name in whole if not torch.equal(whole[name], parts[name])]


@pytest.mark.long
def test_a_process_whose_peer_is_killed_says_so_in_a_line(folder: Path) -> None:
    processes = _start(folder, "killed", "training.epochs=100")
    _wait_for_a_row(folder / "killed" / LOG)
    processes[1].kill()
    codes, (told, _) = _ended(processes)
    assert codes == [1, -signal.SIGKILL]
    assert "or one has ended; the same command goes on" in told
    assert "Traceback" not in told


def test_after_a_training_of_several_nothing_of_their_group_is_at_work(folder: Path) -> None:
    """What still lets go of a tensor while the interpreter ends aborts the process."""
    asked = ["train", *_asked(folder, "alone", "training.epochs=0.02")]
    (place,) = _places(1)
    ended = subprocess.run(
        [sys.executable, "-c", _THREADS_AFTER, *asked],
        env=place, capture_output=True, text=True, check=True, timeout=_PATIENCE_S,
    )  # fmt: skip
    assert "python" in ended.stdout
    assert "gloo" not in ended.stdout
