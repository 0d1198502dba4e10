"""What Locust's users ask for and count, by a client that stands for theirs; test_locustfile.py has
Locust run them."""

import importlib.util
import io
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, Self

import pytest

from bench.target import BYTES, MODEL, PROMPT

_FILE = Path(__file__).parents[2] / "bench" / "locustfile.py"
_STREAM = b'data: {"choices": [{"text": "a"}]}\n\n' * 3 + b"data: [DONE]\n\n"


class _Answer:
    """Takes a second for its first byte, two for the others, and is told what becomes of it."""

    def __init__(self, now_s: list[float], status: int, content: bytes) -> None:
        self.status_code, self.told = status, list[str]()
        self._now_s, self._left = now_s, io.BytesIO(content)

    def iter_content(self, size: int, *, decode_content: bool) -> Iterator[bytes]:
        self._now_s[0] += 1.0 if size == 1 else 2.0
        return iter(lambda: self._left.read(size), b"")

    def success(self) -> None:
        self.told.append("success")

    def failure(self, why: str) -> None:
        self.told.append(why)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


class _Users:
    """A user of the file, what it has asked for and what it has counted."""

    def __init__(self, writer: type[Any], now_s: list[float]) -> None:
        self.asked, self.counted = (
            list[tuple[str, dict[str, Any]]](),
            list[tuple[str, float, int]](),
        )
        self.answer = _Answer(now_s, 200, b"{}")
        self.user = writer()
        self.user.client = SimpleNamespace(post=self._post)
        request = SimpleNamespace(fire=self._fire)
        self.user.environment = SimpleNamespace(events=SimpleNamespace(request=request))

    def _post(self, path: str, *, json: dict[str, Any], **_: Any) -> _Answer:
        self.asked.append((path, json))
        return self.answer

    def _fire(self, *, name: str, response_time: float, response_length: int, **_: Any) -> None:
        self.counted.append((name, response_time, response_length))


@pytest.fixture
def now_s() -> list[float]:
    return [0.0]


@pytest.fixture
def users(monkeypatch: pytest.MonkeyPatch, now_s: list[float]) -> _Users:
    def task(weight: int) -> Any:
        def weighted(asks: Any) -> Any:
            asks.weight = weight
            return asks

        return weighted

    stands_for = SimpleNamespace(FastHttpUser=object, between=lambda *_: None, task=task)
    monkeypatch.setitem(sys.modules, "locust", stands_for)
    spec = importlib.util.spec_from_file_location("locustfile", _FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: now_s[0]))
    monkeypatch.setattr(module, "random", Random(1))
    return _Users(module.Writer, now_s)


def test_users_ask_for_what_is_measured_and_now_and_then_for_ink(users: _Users) -> None:
    user = users.user
    asks = {name: asks.weight for name, asks in vars(type(user)).items() if hasattr(asks, "weight")}
    assert asks == {"completion": 4, "mixed": 4, "streamed": 4, "handwriting": 1}
    for name in asks:
        for _ in range(100):
            getattr(user, name)()
    text = {"model": MODEL, "prompt": PROMPT}
    seeds = [body.pop("seed") for _, body in users.asked]
    assert len(set(seeds)) == len(seeds)
    sizes = [body.pop("max_tokens") for _, body in users.asked[100:200]]
    assert 16 <= min(sizes) < 100
    assert 300 < max(sizes) <= 400
    told = Counter((path, tuple(sorted(body.items()))) for path, body in users.asked)
    assert told == {
        ("/v1/completions", tuple(sorted((text | more).items()))): 100
        for more in ({"max_tokens": BYTES}, {}, {"max_tokens": BYTES, "stream": True})
    } | {("/v1/handwriting", (("text", "What is served is what was trained."),)): 100}


def test_a_stream_is_timed_at_its_first_byte_and_whole_in_milliseconds(
    users: _Users, now_s: list[float]
) -> None:
    users.answer = _Answer(now_s, 200, _STREAM)
    users.user.streamed()
    assert users.answer.told == ["success"]
    assert users.counted == [
        ("stream, first event", 1000.0, 0),
        ("stream, 200 bytes", 3000.0, len(_STREAM)),
    ]


@pytest.mark.parametrize(
    ("status", "content", "why"),
    [
        (503, b"", "status 503"),
        (200, _STREAM[:-20], "the stream broke off"),
        (200, b'data: {"error": {}}\n\n' + _STREAM, "the stream broke off"),
        (200, b"", "the stream broke off"),
    ],
    ids=["refused", "cut", "error", "empty"],
)
def test_what_is_no_whole_stream_is_a_failure_and_no_time(
    status: int, content: bytes, why: str, users: _Users, now_s: list[float]
) -> None:
    users.answer = _Answer(now_s, status, content)
    users.user.streamed()
    assert (users.answer.told, users.counted) == ([why], [])
