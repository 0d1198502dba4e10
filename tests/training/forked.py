"""Processes of a command that is imported once for all of them, since PyTorch takes seconds to
import: each is forked from one that has it, and ends as a process does."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_PATIENCE_S = 120.0
_MOST_BYTES = 1 << 16
# A program has the files that come with it.
_FORKS = """
import argparse, os, signal, socket, sys
from training.command import run
asked = socket.socket(fileno=int(sys.argv[1]))
while True:
    program, files, *_ = socket.recv_fds(asked, 1 << 16, 2)
    if not program:
        sys.exit()
    child = os.fork()
    if not child:
        break
    for file in files:
        os.close(file)
    asked.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())
asked.close()
for number, file in enumerate(files, 1):
    os.dup2(file, number)
    os.close(file)
exec(program)
"""


class Forked:
    """Runs programs, which find `run` of `training.command` and what they need beside it."""

    def __init__(self, asked: socket.socket) -> None:
        self._asked = asked

    def ended(self, program: str, stdout: int | None = None) -> tuple[int, bytes]:
        """The exit code and standard error of a program, whose standard output is the null device
        unless a file is given; what is not buffered here is there."""
        read, written = os.pipe()
        with open(os.devnull, "wb") as null, open(read, "rb") as told:
            self._send(program, null.fileno() if stdout is None else stdout, written)
            os.close(written)
            said = told.read()
        return int(self._asked.recv(_MOST_BYTES)), said

    def ended_into(self, program: str, both: int) -> int:
        """The exit code of a program, whose standard output and error are one file."""
        self._send(program, both, both)
        return int(self._asked.recv(_MOST_BYTES))

    def _send(self, program: str, *files: int) -> None:
        socket.send_fds(self._asked, [program.encode()], files)


@contextmanager
def forks() -> Iterator[Forked]:
    """They buffer what they print to a file, as an interpreter does unless it is told not to, or
    nothing would be left for the end."""
    mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    mine.settimeout(_PATIENCE_S)
    command = [sys.executable, "-c", _FORKS, str(its.fileno())]
    buffered = os.environ | {"PYTHONUNBUFFERED": ""}
    with (
        mine,
        subprocess.Popen(  # pipes, since nobody can seek in what a program is given later
            command,
            env=buffered,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[its.fileno()],
        ) as process,
    ):
        its.close()
        try:
            yield Forked(mine)
        finally:
            mine.close()
            process.wait(_PATIENCE_S)
