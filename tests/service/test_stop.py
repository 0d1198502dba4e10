"""A service that is told to stop says so first, finishes what it can, and tells the others."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.service.serving import eventually

_ROOT = Path(__file__).parents[2]
_ENDLESS = {"model": "letters", "max_tokens": 50_000_000}


class _Process:
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
def _service(artifacts: Path, **environment: str) -> Iterator[_Process]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    usual = {
        "EVENKEEL_ARTIFACTS": str(artifacts),
        "EVENKEEL_PORT": str(port),
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
    service = _Process(process, f"http://127.0.0.1:{port}")
    try:
        assert eventually(lambda: service.status("/readyz") == 200)
        yield service
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


class _Stream:
    """A streamed completion that somebody reads in the background."""

    def __init__(self, service: _Process, **body: Any) -> None:
        self.events: list[str] = []
        self._began = threading.Event()
        self._thread = threading.Thread(target=self._read, args=(service, body))
        self._thread.start()
        assert self._began.wait(20)

    def _read(self, service: _Process, body: dict[str, Any]) -> None:
        request = {"model": "letters", "stream": True} | body
        url = f"{service.url}/v1/completions"
        with httpx.stream("POST", url, json=request, timeout=30) as response:
            for line in response.iter_lines():
                if line.startswith("data: "):
                    self.events.append(line.removeprefix("data: "))
                    self._began.set()

    def end(self) -> list[str]:
        self._thread.join(30)
        return self.events


def test_readiness_turns_red_first_while_requests_are_accepted(artifacts: Path) -> None:
    with _service(artifacts, EVENKEEL_SHUTDOWN_DELAY_S="3") as service:
        service.tell(signal.SIGTERM)
        assert eventually(lambda: service.status("/readyz") == 503)
        assert service.status("/livez") == 200
        assert service.post(max_tokens=5).status_code == 200
        assert service.running()
        assert service.ended() == 0


def test_what_runs_is_finished(artifacts: Path) -> None:
    with _service(artifacts) as service:
        stream = _Stream(service, max_tokens=60_000, seed=1)
        service.tell(signal.SIGTERM)
        *texts, done = stream.end()
        assert done == "[DONE]"
        assert json.loads(texts[-1])["choices"][0]["finish_reason"] == "length"
        assert service.ended() == 0


def test_what_cannot_be_finished_ends_with_an_error(artifacts: Path) -> None:
    with _service(artifacts, EVENKEEL_DRAIN_TIMEOUT_S="1") as service:
        stream = _Stream(service, **_ENDLESS)
        whole: list[httpx.Response] = []

        def ask() -> None:
            url = f"{service.url}/v1/completions"
            whole.append(httpx.post(url, json=_ENDLESS, timeout=30))

        thread = threading.Thread(target=ask)
        thread.start()
        more = _Stream(service, max_tokens=100)  # by now the other one runs as well
        more.end()
        service.tell(signal.SIGTERM)
        *_, last, done = stream.end()
        assert done == "[DONE]"
        assert json.loads(last)["error"]["code"] == "not_ready"
        thread.join(30)
        assert whole[0].status_code == 503
        assert whole[0].json()["error"]["code"] == "not_ready"
        assert service.ended() == 0


def test_a_second_signal_ends_it_at_once(artifacts: Path) -> None:
    with _service(artifacts, EVENKEEL_SHUTDOWN_DELAY_S="60") as service:
        service.tell(signal.SIGTERM)
        assert eventually(lambda: service.status("/readyz") == 503)
        service.tell(signal.SIGTERM)
        assert service.ended(timeout_s=10) == 0


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_an_idle_service_ends_with_0(artifacts: Path, sig: signal.Signals) -> None:
    with _service(artifacts) as service:
        service.tell(sig)
        assert service.ended(timeout_s=15) == 0


def test_a_hang_up_does_not_end_it(artifacts: Path) -> None:
    with _service(artifacts) as service:
        service.tell(signal.SIGHUP)
        assert service.post(max_tokens=5).status_code == 200
        assert service.running()


def test_a_socket_is_closed_with_1012(artifacts: Path) -> None:
    with (
        _service(artifacts) as service,
        connect(f"{service.url.replace('http', 'ws')}/v1/online") as online,
    ):
        online.send(json.dumps({"model": "letters"}))
        online.recv()
        service.tell(signal.SIGTERM)
        with pytest.raises(ConnectionClosed) as closed:
            online.recv(timeout=20)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1012
