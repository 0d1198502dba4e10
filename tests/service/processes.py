"""Services in processes of their own, and a stream that somebody reads from one."""

import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.service.serving import KEY, eventually

_ROOT = Path(__file__).parents[2]


@contextmanager
def spawned(
    artifacts: Path, *, files: int | None = None, output: int = subprocess.PIPE,
    shut: Sequence[int] = (), program: Sequence[str] = ("-m", "service"), **chosen: object,
) -> Iterator[tuple["subprocess.Popen[str]", str]]:  # fmt: skip
    """One that may have so many `files` open, of which those numbered `shut` are not, and where it
    will listen; `program` is what Python runs, `chosen` are settings. It is killed if it has not
    ended."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    usual = {"artifacts": artifacts, "port": port, "provider": "cpu", "threads": 1}
    usual |= {"state_key": KEY, "allow_unproved": 1} | chosen
    settings = {f"EVENKEEL_{name.upper()}": str(value) for name, value in usual.items()}

    def limit_files() -> None:
        if files is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
        for number in shut:
            os.close(number)

    process = subprocess.Popen(
        [sys.executable, *program],
        cwd=_ROOT,
        env=os.environ | settings,
        stdout=output,
        stderr=output,
        text=True,
        preexec_fn=limit_files,
    )
    with process:
        try:
            yield process, f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def expects_signals(pid: int) -> bool:
    """Whether a service that loads has begun to take signals its own way (proc_pid_status(5)): of
    those that it takes, SIGTERM is the one that Python itself does not catch, nor nohup ignore."""
    sets = dict(
        line.split(":") for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    )
    return bool(int(sets["SigCgt"], 16) >> (signal.SIGTERM - 1) & 1)


def ready(url: str) -> bool:
    """Whether it answers, and is. To ask with httpx takes so much of a core that what is waited for
    takes longer."""
    connection = HTTPConnection(urlsplit(url).netloc, timeout=30)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


class Process:
    """One that is ready, and what is asked of it."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self._process, self.url = process, url

    def status(self, path: str) -> int | None:
        try:
            return httpx.get(self.url + path).status_code
        except httpx.TransportError:
            return None

    def post(self, **body: Any) -> httpx.Response:
        return httpx.post(f"{self.url}/v1/completions", json={"model": "letters"} | body)

    def tell(self, sig: signal.Signals) -> None:
        self._process.send_signal(sig)

    def ended(self, timeout_s: float = 30) -> int:
        out, err = self._process.communicate(timeout=timeout_s)
        assert "Traceback" not in out + err
        return self._process.returncode

    def running(self) -> bool:
        return self._process.poll() is None


@contextmanager
def started(artifacts: Path, **chosen: object) -> Iterator[Process]:
    """One that is ready, for work without end."""
    endless = {"max_tokens": 10**8, "max_request_steps": 10**8} | chosen
    with spawned(artifacts, **endless) as (process, url):
        assert eventually(lambda: ready(url))
        yield Process(process, url)


class Stream:
    """A streamed answer that somebody reads in the background, until it ends or breaks off."""

    def __init__(self, service: Process, path: str = "/v1/completions", **body: Any) -> None:
        self.events: list[str] = []
        self._began = threading.Event()
        request = {"model": "letters", "stream": True} | body
        self._thread = threading.Thread(target=self._read, args=(service.url + path, request))
        self._thread.start()
        assert self._began.wait(20)

    def _read(self, url: str, request: dict[str, Any]) -> None:
        with (
            suppress(httpx.TransportError),
            httpx.stream("POST", url, json=request, timeout=30) as response,
        ):
            for line in response.iter_lines():
                if line.startswith("data: "):
                    self.events.append(line.removeprefix("data: "))
                    self._began.set()

    def end(self) -> list[str]:
        self._thread.join(30)
        return self.events
