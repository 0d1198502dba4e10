"""Start the service or a peer as processes of its own on a free port, and end all of them again.

`python -m bench.peers.launch NAME` starts one, says its port and waits for enter.
"""

import argparse
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NoReturn
from urllib.request import ProxyHandler, build_opener

import psutil

from bench.target import ARTIFACTS, MODEL, SERVERS, Server, Target
from training.output import leave_full_output, read_enough

_START_LIMIT_S = 120.0
_STOP_LIMIT_S = 10.0
_POLL_S = 0.01
# Servers of this machine are asked past a proxy that the environment may name.
unproxied = build_opener(ProxyHandler({}))


@contextmanager
def launch(
    name: str, *, artifacts: Path = ARTIFACTS, settings: Mapping[str, str] | None = None,
    server: Server | None = None, output: int | IO[str] = subprocess.DEVNULL,
    errors: IO[str] | None = None,
) -> Iterator[Target]:  # fmt: skip
    """A server that is ready, of `SERVERS` if none is given; `settings` are more environment
    variables, and what it says goes to `output` and `errors`.

    The model is `shakespeare` of the folder `artifacts`; the service serves all in that folder.
    Raises `NotReady` if the server ends or is not ready within two minutes.
    """
    _allow_connections()
    server, port = server or SERVERS[name], free_port()
    command = [sys.executable, "-m", *(part.format(port=port) for part in server.command)]
    with tempfile.TemporaryDirectory() as home:
        environment = without_settings() | {
            "BENTOML_DO_NOT_TRACK": "true",
            "BENTOML_HOME": home,
            "EVENKEEL_ARTIFACTS": str(artifacts),
            "EVENKEEL_LOG_LEVEL": "error",
            "EVENKEEL_PORT": str(port),
            "ORT_DISABLE_TELEMETRY": "1",
            "PEER_ARTIFACT": str(artifacts / MODEL),
            "PEER_PORT": str(port),
        }
        began_s = time.perf_counter()
        process = psutil.Popen(
            command, env=environment | dict(settings or {}), stdout=output, stderr=errors
        )
        try:
            _wait(name, process, Target(name, port).url(server.health), began_s)
            yield Target(name, port, process.pid, time.perf_counter() - began_s, server)
        finally:
            end(process)


class NotReady(RuntimeError):
    """A server that ended before it was ready, or takes too long."""


def end_in_order(main: Callable[[], int | None]) -> NoReturn:
    """Run a command and leave with its exit code. Ctrl-C, SIGTERM, and the SIGHUP of a terminal
    that is closed, end what was launched as well, without a traceback: for a service the last is no
    reason to end. So do, with 1, a reader of the output that has enough and a server that does not
    start, which has said why."""

    def ended(came: int, _: object) -> None:
        signal.signal(came, signal.SIG_IGN)  # the next would leave a server that takes its time
        with suppress(OSError):  # the same Ctrl-C ends whoever reads it, such as `tee`
            print("\ninterrupted", file=sys.stderr)
        sys.exit(128 + came)

    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, ended)
    try:
        code = main()
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        code = read_enough()
    except NotReady as error:
        print(f"error: {error}", file=sys.stderr)
        code = 1
    finally:
        leave_full_output()  # of what is interrupted too
    sys.exit(code)


def without_settings() -> dict[str, str]:
    """The environment of whoever measures, but for settings: they would be those of a service that
    no result tells of."""
    return {n: v for n, v in os.environ.items() if not n.startswith("EVENKEEL_")}


def family(pid: int) -> list[psutil.Process]:
    """A process and everything it started; nothing if it has ended."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _allow_connections() -> None:
    """Let this process and those it starts open as many sockets as the system allows."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def free_port() -> int:
    """One of this machine that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _wait(name: str, process: psutil.Popen, health: str, began_s: float) -> None:
    while not ready(health):
        waited_s = time.perf_counter() - began_s
        if process.poll() is not None:
            raise NotReady(f"{name} ended with {process.returncode} before it was ready")
        if waited_s > _START_LIMIT_S:
            raise NotReady(f"{name} is not ready after {waited_s:.0f} s")
        time.sleep(_POLL_S)


def ready(health: str) -> bool:
    """Whether what is asked there says 200."""
    try:
        with unproxied.open(health, timeout=2) as answer:
            return answer.status == 200
    except OSError:
        return False


def end(process: psutil.Popen, limit_s: float = _STOP_LIMIT_S) -> None:
    """End a process and all it started: some frameworks leave their workers to themselves. Kills
    those that are left after `limit_s`."""
    everyone = [process, *family(process.pid)[1:]]
    if process.poll() is None:
        process.terminate()
    _, left = psutil.wait_procs(everyone, limit_s)
    for each in left:
        each.kill()
    psutil.wait_procs(left, _STOP_LIMIT_S)
    process.wait()


def main(arguments: Sequence[str] | None = None) -> None:
    """Start one until someone has enough of it."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers.launch", description=__doc__)
    parser.add_argument("name", choices=SERVERS)
    with launch(parser.parse_args(arguments).name) as target:
        input(
            f"{target.name} on port {target.port}, ready after {target.ready_s:.2f} s; enter ends "
        )


if __name__ == "__main__":
    end_in_order(main)
