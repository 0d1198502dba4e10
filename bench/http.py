"""Closed-loop completions over HTTP: one client and sixteen, against a service of its own.

Clients and service share the machine. A full load test, with peers and open loops, is to come.
"""

import json
import os
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection

BYTES = 200
CLIENTS = 16
_START_LIMIT_S = 60


@dataclass(frozen=True, slots=True)
class HttpRow:
    """A closed loop of `clients`, each asking for 200 bytes again and again."""

    clients: int
    requests: int
    p50_ms: float
    p90_ms: float
    bytes_per_s: float


def measure() -> tuple[list[HttpRow], float]:
    """One client, then sixteen; and the seconds from start to ready."""
    with _service() as (port, ready_s):
        _loop(port, clients=1, each=10)  # warm up
        return [_loop(port, clients=1, each=100), _loop(port, clients=CLIENTS, each=20)], ready_s


@contextmanager
def _service() -> Iterator[tuple[int, float]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {"EVENKEEL_PORT": str(port), "EVENKEEL_LOG_LEVEL": "error"}
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "service"], env=environment)
    try:
        while not _ready(port):
            if process.poll() is not None or time.perf_counter() - began > _START_LIMIT_S:
                raise RuntimeError("the service did not become ready")
            time.sleep(0.02)
        yield port, time.perf_counter() - began
    finally:
        process.terminate()
        process.wait()


def _ready(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _loop(port: int, *, clients: int, each: int) -> HttpRow:
    latencies: list[float] = []

    def client() -> None:
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        body = {"model": "shakespeare", "prompt": "ROMEO:", "max_tokens": BYTES}
        for _ in range(each):
            began = time.perf_counter()
            connection.request(
                "POST", "/v1/completions", json.dumps(body), {"content-type": "application/json"}
            )
            response = connection.getresponse()
            content = response.read()
            if response.status != 200:
                raise RuntimeError(content.decode())
            latencies.append(time.perf_counter() - began)

    threads = [threading.Thread(target=client) for _ in range(clients)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed_s = time.perf_counter() - began
    return HttpRow(
        clients,
        len(latencies),
        round(statistics.median(latencies) * 1e3, 1),
        round(statistics.quantiles(latencies, n=10)[-1] * 1e3, 1),
        round(len(latencies) * BYTES / elapsed_s),
    )
