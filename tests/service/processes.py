"""A service in a process of its own, and a stream that somebody reads from it."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from tests.service.serving import KEY, eventually

_ROOT = Path(__file__).parents[2]


class Process:
    """A service in a process of its own."""

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
def started(artifacts: Path, **environment: str) -> Iterator[Process]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    usual = {
        "EVENKEEL_ARTIFACTS": str(artifacts),
        "EVENKEEL_PORT": str(port),
        "EVENKEEL_STATE_KEY": KEY,
        "EVENKEEL_PROVIDER": "cpu",
        "EVENKEEL_THREADS": "1",
        "EVENKEEL_ALLOW_UNPROVED": "1",
        "EVENKEEL_MAX_TOKENS": "100000000",
        "EVENKEEL_MAX_REQUEST_STEPS": "100000000",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "service"],
        cwd=_ROOT,
        env=os.environ | usual | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    service = Process(process, f"http://127.0.0.1:{port}")
    with process:
        try:
            assert eventually(lambda: service.status("/readyz") == 200)
            yield service
        finally:
            process.kill()  # nothing, if it has ended


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
