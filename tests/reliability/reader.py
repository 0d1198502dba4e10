"""A client that streams one answer again and again and compares what arrives with the first."""

import threading
from collections.abc import Callable, Iterator
from typing import Any, Self

import httpx

from bench.target import MODEL, PROMPT
from clients.client import Client
from tests.reliability.work import content_of

_SILENCE_S = 3.0  # after which it asks another replica
_PATIENCE_S = 60.0
_LINE = "an even keel in a heavy sea\n"
_POINTS_PER_LINE = 250


class Reader:
    """Streams text, or every third one ink, of a length in characters or points, until `end`; what
    counts are the answers after the first."""

    def __init__(self, url: str, seed: int, length: int) -> None:
        self.expected: list[Any] = []
        self.lost: list[str] = []
        self.streams = self.requests = self.wrong = 0
        self._client = Client([url], patience_s=_PATIENCE_S, timeout_s=_SILENCE_S)
        self._client._http.event_hooks["request"] = [self._count]
        self._knows, self._ends = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._read)
        body: dict[str, Any]
        self._events: Callable[[], Iterator[Any]]
        if seed % 3 == 2:
            body = {"text": _LINE * max(1, length // _POINTS_PER_LINE), "seed": seed}
            self._events = lambda: self._client.write(**body)
        else:
            body = {"model": MODEL, "prompt": PROMPT, "max_tokens": length, "seed": seed}
            self._events = lambda: self._client.complete(**body)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def learn(self) -> None:
        """Wait for the first answer."""
        self._knows.wait()

    def end(self) -> None:
        """Let the present answer be the last."""
        self._ends.set()
        self._thread.join()

    def _read(self) -> None:
        with self._client:
            self.expected = self._answer()
            self._knows.set()
            self.requests = 0
            while self.expected and not self._ends.is_set():
                answer = self._answer()
                self.wrong += bool(answer) and answer != self.expected
                self.streams += 1

    def _answer(self) -> list[Any]:
        """All of one; none where it is lost, whatever for: nobody hears of what ends a thread."""
        try:
            if answer := content_of(self._events()):
                return answer
            self.lost.append("an answer without text or ink")
        except Exception as error:
            self.lost.append(f"{type(error).__name__}: {error}")
        return []

    def _count(self, _: httpx.Request) -> None:
        self.requests += 1
