"""Fleets to be asked: replicas behind HAProxy, as deploy/scale has it, or of deploy/ray_serve.py,
and one replica with nothing before it to be measured beside them.
"""

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import psutil

from bench.peers.launch import end, family, free_port, launch, ready, without_settings
from bench.target import SERVERS, SERVICE, Target
from tests.scale.haproxy import HAProxy, running
from tests.scale.waiting import wait_for

_ROOT = Path(__file__).parents[2]
RAY = _ROOT / "build" / "ray-venv" / "bin" / "python"
_ACTOR = "ray::ServeReplica"
_STOP_LIMIT_S = 60.0
_SETTINGS = {
    "EVENKEEL_STATE_KEY": "a key that all replicas share",
    "EVENKEEL_MAX_WAIT_S": "60",  # what is judged is loss, not who else uses the machine
    "EVENKEEL_SHUTDOWN_DELAY_S": "2",
    "EVENKEEL_TRUSTED_PROXIES": '["127.0.0.1"]',
    "EVENKEEL_THREADS": "1",
}


class Measured(Protocol):
    """Replicas behind one port of this machine, which is that of the target."""

    target: Target

    def pids(self) -> list[int]:
        """The processes of the replicas that run."""
        ...

    def front(self) -> list[int]:
        """The processes of what stands before them."""
        ...


class Fleet(Measured, Protocol):
    """Replicas that can be replaced."""

    def mend(self) -> None:
        """Wait until there are as many as there should be, starting what nobody else would."""
        ...

    def roll(self) -> None:
        """Replace every replica, as an update would, and let the old ones finish."""
        ...


@dataclass
class Direct:
    """One replica and nothing before it."""

    target: Target

    def pids(self) -> list[int]:
        return [self.target.pid]

    def front(self) -> list[int]:
        return []


@dataclass
class Balanced:
    """Replicas behind HAProxy."""

    stack: ExitStack
    proxy: HAProxy
    size: int
    target: Target
    replicas: dict[int, Target] = field(default_factory=dict)  # by the number of their place
    _places: int = 0

    def pids(self) -> list[int]:
        return [replica.pid for replica in self.replicas.values() if _runs(replica.pid)]

    def front(self) -> list[int]:
        return [self.proxy.pid]

    def mend(self) -> None:
        self.replicas = {n: r for n, r in self.replicas.items() if _runs(r.pid)}
        while len(self.replicas) < self.size:
            replica = self.stack.enter_context(launch(SERVICE, settings=_SETTINGS))
            self._places += 1
            self.replicas[self._places] = replica
            self.proxy.add(self._places, replica.port)
        wait_for("a fleet behind HAProxy", lambda: self.proxy.up() == self.size)

    def roll(self) -> None:
        for number in list(self.replicas):
            self.size += 1
            self.mend()
            old = self.replicas.pop(number)
            os.kill(old.pid, signal.SIGTERM)
            wait_for("a replica that stops", lambda: not _runs(old.pid))  # noqa: B023
            self.size -= 1


@dataclass
class Rayed:
    """Replicas of Ray Serve, behind its proxy."""

    process: psutil.Popen
    size: int
    target: Target

    def pids(self) -> list[int]:
        return [each.pid for each in family(self.process.pid) if _is_replica(each)]

    def front(self) -> list[int]:
        """All of Ray: proxy, controller, and what moves objects between them."""
        return [each.pid for each in family(self.process.pid) if not _is_replica(each)]

    def mend(self) -> None:
        url = self.target.url("/readyz")
        wait_for("a fleet of Ray", lambda: len(self.pids()) == self.size and ready(url))

    def roll(self) -> None:
        before = set(self.pids())
        _ray(self.target.port, self.size, _SETTINGS, "--roll").wait()
        wait_for("replicas that stop", lambda: not before & set(self.pids()))


@contextmanager
def direct(threads: int = 1) -> Iterator[Direct]:
    """One replica, asked by its own port."""
    with launch(SERVICE, settings=_SETTINGS | {"EVENKEEL_THREADS": str(threads)}) as replica:
        yield Direct(replace(replica, name="direct"))


@contextmanager
def balanced(size: int = 2) -> Iterator[Balanced]:
    """So many replicas behind HAProxy."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Path(folder)) as proxy,
        ExitStack() as stack,
    ):
        fleet = Balanced(stack, proxy, size, _front("haproxy", proxy.port))
        fleet.mend()
        yield fleet


@contextmanager
def rayed(size: int = 2, settings: Mapping[str, str] = _SETTINGS) -> Iterator[Rayed]:
    """So many replicas of Ray Serve, in an environment with `settings`."""
    port = free_port()
    process = _ray(port, size, settings)
    try:
        fleet = Rayed(process, size, _front("ray", port))
        fleet.mend()
        yield fleet
    finally:
        end(process, _STOP_LIMIT_S)


def require_ray() -> None:
    """Raises `RuntimeError` where Ray's environment is missing."""
    if not RAY.exists():
        raise RuntimeError("there is no Ray; `make ray-check` installs it")


def _front(name: str, port: int) -> Target:
    return Target(name, port, server=SERVERS[SERVICE])


def _ray(port: int, size: int, settings: Mapping[str, str], *more: str) -> psutil.Popen:
    environment = without_settings() | dict(settings) | {
        "EVENKEEL_LOG_LEVEL": "error",
        "EVENKEEL_LOG_REQUESTS": "0",
        "EVENKEEL_PORT": str(port),
        "PYTHONPATH": str(_ROOT),
        "RAY_USAGE_STATS_ENABLED": "0",
    }  # fmt: skip
    command = [str(RAY), "deploy/ray_serve.py", "--replicas", str(size), *more]
    return psutil.Popen(command, cwd=_ROOT, env=environment, stdout=subprocess.DEVNULL)


def _is_replica(process: psutil.Process) -> bool:
    try:
        return bool(process.cmdline()) and process.cmdline()[0].startswith(_ACTOR)
    except psutil.NoSuchProcess:
        return False


def _runs(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
