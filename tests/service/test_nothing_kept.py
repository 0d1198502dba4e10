"""Whatever is asked, by whomever and however it ends, the service keeps nothing of it: all that it
is made of holds as many things after requests as before. To the entry, where of memory one could
only say that it grows by less than so much."""

import gc
import http.client
import json
import socket
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from types import MethodType
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakSet

from fastapi import FastAPI
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from service.http.gate import Gate
from tests.service.serving import eventually, listening, settings

_MANY = 5  # of each kind
_THINGS = (dict, list, set, deque, WeakSet)
_BETWEEN = (tuple, partial, MethodType)
_MADE_BY = ("service", "fastapi", "starlette", "uvicorn")
_TEXT = {"model": "letters", "max_tokens": 4}
_INK = {"model": "scrawl", "text": "an"}
_INK_READ = {"model": "squint", "strokes": [[[0, 0], [9, 9], [20, 3], [40, 9]]]}


class _Callers:
    """Those who ask, each from an address of its own, for what nobody has named before."""

    def __init__(self, url: str) -> None:
        host, _, port = urlsplit(url).netloc.partition(":")
        self._at = (host, int(port))
        self._numbers = count(1)

    def next(self) -> str:
        """The name of the next."""
        number = next(self._numbers)
        self._name, self._from = f"x{number}", (f"127.0.1.{number}", 0)
        return self._name

    def ask(self, path: str, body: Any = None, *, reads: bool = True) -> None:
        """A request, whose answer is taken, or left as soon as it begins."""
        to = http.client.HTTPConnection(*self._at, timeout=20, source_address=self._from)
        headers = {"Content-Type": "application/json", "X-Request-Id": self._name}
        headers["User-Agent"] = self._name
        content = body if body is None or isinstance(body, bytes) else json.dumps(body)
        try:
            to.request("GET" if body is None else "POST", path, content, headers)
            answer = to.getresponse()
            if reads:
                answer.read()
        finally:
            to.close()

    def say(self, raw: bytes) -> None:
        """What need not be HTTP; nobody waits for an answer."""
        with socket.create_connection(self._at, 20, self._from) as connection:
            connection.sendall(raw)

    def follow(self, *messages: dict[str, Any], leaves: bool = False) -> None:
        """A session of these messages, which is closed or breaks off."""
        own = socket.create_connection(self._at, 20, self._from)
        url = f"ws://{self._at[0]}:{self._at[1]}/v1/online"
        with suppress(WebSocketException), connect(url, sock=own) as session:
            for message in messages:
                session.send(json.dumps(message))
                session.recv(20)
            if leaves:
                own.shutdown(socket.SHUT_RDWR)


def _everything(callers: _Callers) -> None:
    """One request of every kind."""
    name = callers.next()
    long, more = _TEXT | {"max_tokens": 4000}, {"n": 3, "logprobs": 1, "return_state": True}
    for body in (_TEXT, _TEXT | more, _TEXT | {"stream": True, "resume": True}):
        callers.ask("/v1/completions", body)
    callers.ask("/v1/completions", long | {"deadline_s": 0.02})
    callers.ask("/v1/completions", long | {"stream": True}, reads=False)
    for body in (_TEXT | {name: 1}, _TEXT | {"model": name}, b"{", b" " * 5000):
        callers.ask("/v1/completions", body)
    for form in ("png", "pdf", "json"):
        callers.ask("/v1/handwriting", _INK | {"format": form, "best_of": 2})
    callers.ask("/v1/handwriting", _INK | {"stream": True}, reads=False)
    callers.ask("/v1/read", _INK_READ)
    for path in ("/v1/styles/upright/preview.svg", "/metrics", f"/{name}", f"/v1/models/{name}"):
        callers.ask(path)
    for model in (name, "letters"):
        callers.ask(f"/v1/models/{model}/reload", b"")
    callers.say(b"GET /" + name.encode())
    callers.say(name.encode() + b"\r\n\r\n")
    following, read = {"model": "letters"}, {"bytes": [82, 79]}
    callers.follow(following, read, {"write": 3})
    callers.follow(following, read, leaves=True)
    callers.follow({"model": name})
    callers.follow({"model": "squint"}, {name: 1})


def _held(app: FastAPI) -> Counter[str]:
    """How many things are in all of that, by the type of whatever holds them, and how many series
    are told to Prometheus."""
    held = Counter(series=sum(len(f.samples) for f in app.state.metrics.registry.collect()))
    for owner, part in _parts(app):
        if isinstance(part, _THINGS):
            held[owner] += len(part)
    return held


def _parts(app: FastAPI) -> Iterator[tuple[str, Any]]:
    """All that the service is made of, with the type it is in: objects of its own types and of what
    it is built on, and what these hold."""
    recorder = app.state.recorder
    known = [each for each in gc.get_objects() if type(each) is Gate]
    gates = [gate for gate in known if gate.refused == recorder.refused]
    left, seen = [("", part) for part in (app.state._state, *gates)], set[int]()
    while left:
        owner, part = left.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if not isinstance(part, (*_THINGS, *_BETWEEN)):
            owner = type(part).__qualname__
        yield owner, part
        left.extend((owner, each) for each in gc.get_referents(part) if _counts(each))


def _counts(thing: object) -> bool:
    if isinstance(thing, (*_THINGS, *_BETWEEN)):
        return True
    return not isinstance(thing, type) and type(thing).__module__.partition(".")[0] in _MADE_BY


def test_of_no_request_anything_is_kept(inks: Path) -> None:
    with listening(settings(inks, runner="scan", max_body_bytes=4096)) as (url, app):
        callers = _Callers(url)
        _everything(callers)  # what is made once, as the picture of a hand
        assert eventually(lambda: not app.state.models._leaving.engines)
        before = _held(app)
        for _ in range(_MANY):
            _everything(callers)

        def kept() -> dict[str, int]:
            """What holds one more for each; a first answer of its status is a series more."""
            more = _held(app) - before
            return {owner: number for owner, number in more.items() if number >= _MANY}

        eventually(lambda: not kept())
        assert kept() == {}
