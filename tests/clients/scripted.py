"""A service by script that keeps the contract of `resume`, and cuts its answers wherever a test
says so."""

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_SAID = "naïve 🦉"
_LINES, _POINTS = 3, 5
_HEAD = (
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n"
    "transfer-encoding: chunked\r\n\r\n"
)


class Scripted:
    """Takes one step of `script` a request: bytes to be sent instead, a number of bytes to stop
    after, or None, as when the script is over: the whole answer."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.script: list[bytes | int | None] = []
        self.requests: list[dict[str, Any]] = []
        self.headers: list[str] = []
        self.fingerprint = "fp"

    def answer(self, head: str, body: dict[str, Any]) -> bytes:
        """What is sent, or as much of it as the script allows."""
        self.headers.append(head)
        self.requests.append(body)
        step = self.script.pop(0) if self.script else None
        if isinstance(step, bytes):
            return step
        events = self._page(body) if "handwriting" in head else self._texts(body)
        return streamed([*events, "[DONE]"])[:step]

    def _texts(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        # Cut into other pieces by every request, as a service under another load would.
        size = 2 + len(self.requests) % 3
        start = int(body["state"]) if body.get("state") else 0
        for index in range(body.get("n", 1)):
            text = text_of(body["seed"], index) if not start else text_of(self._seed(), index)
            for at in range(start, len(text), size):
                choice: dict[str, Any] = {"index": index, "text": text[at : at + size]}
                if body["resume"] and at // size % 2:
                    choice["resume"] = resume_text(min(at + size, len(text)))
                yield {"system_fingerprint": self.fingerprint, "choices": [choice]}
            end = {"index": index, "text": "", "finish_reason": "length"}
            yield {"system_fingerprint": self.fingerprint, "choices": [end]}
        yield {"system_fingerprint": self.fingerprint, "choices": [], "usage": {}}

    def _page(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        size = 2 + len(self.requests) % 3
        seed = body["seed"] if not body.get("state") else self._seed()
        yield {"system_fingerprint": self.fingerprint, "lines": ["a"] * _LINES}
        for line in range(body.get("first_line", 0), _LINES):
            points = line_of(seed, line)
            for at in range(0, len(points), size):
                event: dict[str, Any] = {"line": line, "points": points[at : at + size]}
                if body["resume"] and at:
                    event["resume"] = {"state": "s", "seed": None, "first_line": line}
                yield event
            yield {"line": line, "finish_reason": "stop"}
        yield {"usage": {}}

    def _seed(self) -> int:
        return int(next(request["seed"] for request in self.requests if request["seed"]))


def answered(content: Any) -> bytes:
    """A whole answer of JSON."""
    body = json.dumps(content).encode()
    head = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
    return head % len(body) + body


def text_of(seed: int, index: int = 0) -> str:
    """What is said with a seed."""
    return f"{index}{_SAID}{seed % 100}"


def line_of(seed: int, line: int) -> list[list[int]]:
    """What is drawn with a seed."""
    return [[point, line, seed % 100] for point in range(_POINTS)]


def page_of(seed: int) -> list[list[list[int]]]:
    """All lines."""
    return [line_of(seed, line) for line in range(_LINES)]


def resume_text(place: int) -> dict[str, Any]:
    """The fields to change to go on from a place of the text."""
    return {"prompt": "", "state": str(place), "seed": None, "n": 1}


def streamed(events: list[Any]) -> bytes:
    """An answer of server-sent events, a chunk each, with comments between as proxies send."""
    chunks = []
    for number, event in enumerate(events):
        data = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
        chunk = f"id: {number}\ndata: {data}\n\n: alive\n\n".encode()
        chunks.append(b"%x\r\n%b\r\n" % (len(chunk), chunk))
    return _HEAD.encode() + b"".join(chunks) + b"0\r\n\r\n"


def refusal(status: int, retry_after: str = "", kind: str = "server_error") -> bytes:
    """An error with OpenAI's body."""
    content = json.dumps({"error": {"message": f"told {status}", "type": kind}})
    head = f"HTTP/1.1 {status} No\r\nconnection: close\r\ncontent-length: {len(content)}\r\n"
    head += f"retry-after: {retry_after}\r\n" if retry_after else ""
    return f"{head}\r\n{content}".encode()


@contextmanager
def scripted() -> Iterator[Scripted]:
    """One that listens on a free port."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            head = b"".join(iter(self.rfile.readline, b"\r\n")).decode()
            length = head.lower().partition("content-length: ")[2].partition("\r\n")[0]
            body = json.loads(self.rfile.read(int(length or 0)) or "{}")
            self.wfile.write(service.answer(head, body))

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        service = Scripted(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield service
        finally:
            server.shutdown()
            thread.join()
