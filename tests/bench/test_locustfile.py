"""What Locust's users ask and what they count, against a service that keeps what it hears."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

_FILE = Path(__file__).parents[2] / "bench" / "locustfile.py"
_EVENTS = b'data: {"choices": [{"text": "a"}]}\n\n' * 3
_DONE = b"data: [DONE]\n\n"
_STREAM_S = 0.05  # from the first byte to all others

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(find_spec("locust") is None, reason="Locust is not installed"),
]


@contextmanager
def _service(end: bytes) -> Iterator[tuple[str, list[tuple[str, dict[str, Any]]]]]:
    """Its URL and what it hears, path and body; streams end with `end`."""
    heard: list[tuple[str, dict[str, Any]]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            heard.append((self.path, body))
            content = _EVENTS + end if body.get("stream") else b"{}"
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[:1])
            if body.get("stream"):
                time.sleep(_STREAM_S)
            self.wfile.write(content[1:])

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", heard
        finally:
            server.shutdown()
            thread.join()


def _run(url: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Four users for two seconds: the exit status, and statistics by name."""
    users = ("--users", "4", "--spawn-rate", "4", "--run-time", "2s", "--host", url)
    command = (sys.executable, "-m", "locust", "--locustfile", str(_FILE), "--headless", "--json")
    done = subprocess.run([*command, *users], capture_output=True, text=True, timeout=60)
    return done.returncode, {row["name"]: row for row in json.loads(done.stdout)}


def test_users_ask_for_text_whole_and_streamed_and_for_a_line_of_ink() -> None:
    with _service(_DONE) as (url, heard):
        status, rows = _run(url)
    assert status == 0
    ink = [body for path, body in heard if path == "/v1/handwriting"]
    text = [body for path, body in heard if path == "/v1/completions"]
    assert len(ink) + len(text) == len(heard)
    assert 0 < len(ink) < len(text) / 4  # one of 13
    seeds = [body.pop("seed") for body in (*ink, *text)]
    assert len(set(seeds)) == len(seeds)
    assert all(body == {"text": "What is served is what was trained."} for body in ink)
    streamed = [body for body in text if body.pop("stream", False)]
    assert all(body.pop("max_tokens") == 200 for body in streamed)
    sizes = {body.pop("max_tokens") for body in text if "max_tokens" in body}
    assert 16 <= min(sizes) < 100
    assert 300 < max(sizes) <= 400
    assert all(body == {"model": "shakespeare", "prompt": "ROMEO:"} for body in text)
    assert rows.keys() == {
        "completion, 200 bytes", "completion, 16 to 400 bytes", "handwriting, a line",
        "stream, head", "stream, first event", "stream, 200 bytes",
    }  # fmt: skip
    assert {row["num_failures"] for row in rows.values()} == {0}
    whole, first = rows["stream, 200 bytes"], rows["stream, first event"]
    # A user who is ended in the middle of a request has not counted it.
    assert len(streamed) - 4 <= whole["num_requests"] == first["num_requests"] <= len(streamed)
    assert 0 < first["min_response_time"] < whole["min_response_time"] - 0.8 * _STREAM_S * 1e3
    assert whole["total_content_length"] == whole["num_requests"] * len(_EVENTS + _DONE)


@pytest.mark.parametrize("end", [b"", b'data: {"error": {}}\n\n' + _DONE], ids=["cut", "error"])
def test_a_stream_that_breaks_off_is_a_failure_and_no_time(end: bytes) -> None:
    with _service(end) as (url, heard):
        status, rows = _run(url)
    assert status == 1
    head = rows["stream, head"]
    streamed = sum("stream" in body for _, body in heard)
    assert 0 < head["num_failures"] == head["num_requests"] <= streamed <= head["num_failures"] + 4
    assert not {"stream, first event", "stream, 200 bytes"} & rows.keys()
