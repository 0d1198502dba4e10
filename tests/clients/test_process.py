"""How the process of the command begins and ends."""

import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_INTERRUPTED = """
import os, runpy, signal, sys
class Importing:
    def find_spec(self, name, *_):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Importing())
runpy.run_module("clients", run_name="__main__")
"""


def test_ctrl_c_while_it_is_loaded_leaves_no_traceback() -> None:
    command = [sys.executable, "-c", _INTERRUPTED]
    ended = subprocess.run(command, cwd=_ROOT, stderr=subprocess.PIPE, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_help_that_nothing_can_be_written_of_is_told_in_a_line() -> None:
    command = [sys.executable, "-m", "clients", "--help"]
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            command, cwd=_ROOT, stdout=full, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert ended.returncode == 1
    assert ended.stderr == b"evenkeel: [Errno 28] No space left on device\n"


def test_what_is_installed_is_this() -> None:
    scripts = tomllib.loads((_ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    assert scripts == {"evenkeel": "clients.__main__:main"}
