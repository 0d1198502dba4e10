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
_SETTINGS = (
    "model.units=16",
    "batch.rows=6",
    "batch.steps=20",
    "training.epochs=1",
    "training.validate_every_epochs=0.2",
    "training.time_limit_s=1e9",  # which hastens no rate
    "training.warmup_updates=5",
)


def _start(folder: Path, out: str, *more: str) -> list[subprocess.Popen[str]]:
    """Both processes of a training that goes to `out`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [sys.executable, "-m", "training", "quickstart", "--device", "cpu"]
    command += ["--data", str(folder / "sheep.txt"), "--out", str(folder / out)]
    for setting in (*_SETTINGS, *more):
        command += ["--set", setting]
    place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    return [
        subprocess.Popen(
            command, env=os.environ | place | {"RANK": rank}, stderr=subprocess.PIPE, text=True
        )
        for rank in ("0", "1")
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
