"""Memory is that of a process and of everything it started."""

import subprocess
import sys

from bench.memory import resident_mb
from bench.peers.launch import family

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
        assert child.ppid() == process.pid
        process.communicate()
    assert family(process.pid) == []
