"""Start the service or a peer as processes of its own on a free port, and end all of them again.

`python -m bench.peers.launch NAME` starts one, says its port and waits for enter.
"""

import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from bench.target import Target

ARTIFACTS = Path("artifacts")
MODEL = "shakespeare"
_START_LIMIT_S = 120.0
_STOP_LIMIT_S = 10.0
_POLL_S = 0.01


@dataclass(frozen=True, slots=True)
class _Kind:
    """How one server is started; `{port}` stands for the port, `{model}` for the artifact."""

    command: tuple[str, ...]
    health: str = "/readyz"
    whole: bool = True
    streams: bool = True
    wrapped: bool = False


_LITSERVE = ("bench.peers.litserve_peer", "--port", "{port}", "--artifact", "{model}")
_KINDS = {
    "service": _Kind(("service",)),
    "plain": _Kind(("bench.peers.plain_peer", "--port", "{port}", "--artifact", "{model}")),
    "litserve": _Kind(_LITSERVE, health="/health", streams=False),
    "litserve-stream": _Kind((*_LITSERVE, "--stream"), health="/health", whole=False),
    "bentoml": _Kind(
        ("bentoml", "serve", "bench.peers.bentoml_peer:Peer", "--port", "{port}",
         "--host", "127.0.0.1", "--api-workers", "1"),
        streams=False, wrapped=True,
    ),
}  # fmt: skip
NAMES = tuple(_KINDS)
PEERS = NAMES[1:]


@contextmanager
def launch(
    name: str, *, artifacts: Path = ARTIFACTS, settings: Mapping[str, str] | None = None
) -> Iterator[Target]:
    """A server of `NAMES` that is ready; `settings` are more environment variables.

    The model is `shakespeare` of the folder `artifacts`; the service serves all in that folder.
    Raises `RuntimeError` if the server ends or is not ready within two minutes.
    """
    _allow_connections()
    kind = _KINDS[name]
    port = _free_port()
    places = {"port": port, "model": artifacts / MODEL}
    command = [sys.executable, "-m", *(part.format(**places) for part in kind.command)]
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {
            "BENTOML_DO_NOT_TRACK": "true",
            "BENTOML_HOME": home,
            "EVENKEEL_ARTIFACTS": str(artifacts),
            "EVENKEEL_LOG_LEVEL": "error",
            "EVENKEEL_PORT": str(port),
            "ORT_DISABLE_TELEMETRY": "1",
            "PEER_ARTIFACT": str(artifacts / MODEL),
        }
        began_s = time.perf_counter()
        process = subprocess.Popen(
            command, env=environment | dict(settings or {}), start_new_session=True,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            ready_s = _wait(name, process, port, kind.health, began_s)
            yield Target(
                name=name, port=port, pid=process.pid, ready_s=ready_s, whole=kind.whole,
                streams=kind.streams, wrapped=kind.wrapped,
                model=MODEL if name == "service" else None,
            )  # fmt: skip
        finally:
            _end(process)


def _allow_connections() -> None:
    """Let this process and those it starts open as many sockets as the system allows."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _wait(
    name: str, process: subprocess.Popen[bytes], port: int, health: str, began_s: float
) -> float:
    while not _ready(port, health):
        waited_s = time.perf_counter() - began_s
        if process.poll() is not None:
            raise RuntimeError(f"{name} ended with {process.returncode} before it was ready")
        if waited_s > _START_LIMIT_S:
            raise RuntimeError(f"{name} is not ready after {waited_s:.0f} s")
        time.sleep(_POLL_S)
    return time.perf_counter() - began_s


def _ready(port: int, health: str) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", health)
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the whole group: some frameworks leave their workers to themselves."""
    for order in (signal.SIGTERM, signal.SIGKILL):
        _tell_group(process.pid, order)
        try:
            process.wait(_STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            continue
        if _gone(process.pid):
            return


def _gone(group: int) -> bool:
    deadline_s = time.perf_counter() + _STOP_LIMIT_S
    while time.perf_counter() < deadline_s:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(_POLL_S)
    return False


def _tell_group(group: int, order: signal.Signals) -> None:
    try:
        os.killpg(group, order)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    with launch(sys.argv[1]) as target:
        input(
            f"{target.name} on port {target.port}, ready after {target.ready_s:.2f} s; enter ends "
        )
