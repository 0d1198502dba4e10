"""What the image is asked by Docker: whether its own service is ready, wherever that listens."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]


class _Ready(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/readyz" else 404)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def _listening(host: str) -> Iterator[int]:
    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

        def server_bind(self) -> None:
            if ":" in host:  # as the service does
                self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            super().server_bind()

    try:
        server = Server((host, 0), _Ready)
    except OSError as why:
        pytest.skip(f"nobody can listen on {host}: {why}")
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def _asks(host: str, port: int) -> int:
    """The exit status of the check as the Dockerfile has it."""
    one_line_each = (_ROOT / "Dockerfile").read_text().replace("\\\n", "")
    (listed,) = re.findall(r"^HEALTHCHECK .*? CMD (\[.*\])$", one_line_each, re.M)
    program, *rest = json.loads(listed)
    assert program == "python"
    environment = os.environ | {"EVENKEEL_HOST": host, "EVENKEEL_PORT": str(port)}
    run = [sys.executable, *rest]
    return subprocess.run(run, env=environment, capture_output=True).returncode


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1", "::", "::1"])
def test_the_check_of_the_image_finds_its_service_wherever_it_listens(host: str) -> None:
    with _listening(host) as port:
        assert _asks(host, port) == 0
    assert _asks(host, port) != 0
