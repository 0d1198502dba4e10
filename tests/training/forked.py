"""Processes of a command that is imported once for all of them, since PyTorch takes seconds to
import: each is forked from one that has it, and ends as a process does."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryFile

_PATIENCE_S = 120.0
_MOST_BYTES = 1 << 10
# A program comes with its standard output and error and a socket of its own, on which its number
# goes back, then how it ended. What a first update would import, in a second, is there as well.
_FORKS = """
import argparse, gc, os, runpy, signal, socket, sys, torch._dynamo
from training.command import run
gc.freeze()  # or each would look for garbage in all of it as it ends, in a second
asked = socket.socket(fileno=int(sys.argv[1]))
while True:
    program, files, *_ = socket.recv_fds(asked, 1 << 16, 3)
    if not program:
        sys.exit()
    child = os.fork()
    if not child:
        break
    tells = socket.socket(fileno=files.pop())
    for file in files:
        os.close(file)
    tells.send(str(child).encode())
    tells.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())
    tells.close()
asked.close()
os.close(files.pop())
for number, file in enumerate(files, 1):
    os.dup2(file, number)
    os.close(file)
exec(program)
"""


@dataclass(frozen=True, slots=True)
class Fork:
    """One that runs, by its process number, and what tells how it ends."""

    number: int
    _told: socket.socket

    def code(self) -> int:
        """Its exit code, once it has ended; it is killed if it does not."""
        with self._told:
            try:
                return int(self._told.recv(_MOST_BYTES))
            except TimeoutError:
                os.kill(self.number, signal.SIGKILL)
                raise


@dataclass(frozen=True, slots=True)
class Forks:
    """Runs programs, one at a time, which find `run` of `training.command` and what they need
    beside it. The null device is standard output where no file is given."""

    _asked: socket.socket

    def begin(self, program: str, stderr: int, stdout: int | None = None) -> Fork:
        told, tells = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        told.settimeout(_PATIENCE_S)
        with tells, open(os.devnull, "wb") as null:
            files = null.fileno() if stdout is None else stdout, stderr, tells.fileno()
            socket.send_fds(self._asked, [program.encode()], files)
        return Fork(int(told.recv(_MOST_BYTES)), told)

    def ended(self, program: str, stdout: int | None = None) -> tuple[int, bytes]:
        """The exit code and standard error of a program."""
        with TemporaryFile() as told:
            code = self.begin(program, told.fileno(), stdout).code()
            told.seek(0)
            return code, told.read()


@contextmanager
def forking() -> Iterator[Forks]:
    """They buffer what they print to a file, as an interpreter does unless it is told not to, or
    nothing would be left for the end."""
    mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    mine.settimeout(_PATIENCE_S)
    command = [sys.executable, "-c", _FORKS, str(its.fileno())]
    with (
        mine,
        subprocess.Popen(  # pipes, since nobody can seek in what a program is given later
            command,
            env=os.environ | {"PYTHONUNBUFFERED": ""},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[its.fileno()],
        ) as process,
    ):
        its.close()
        try:
            yield Forks(mine)
        finally:
            mine.close()
            process.wait(_PATIENCE_S)
