"""How long a client asks again: as long as it was told to, after the first failure."""

import socket
import time
from collections.abc import Callable
from itertools import pairwise

import httpx
import pytest

from clients.client import Client
from clients.errors import Refused
from clients.replicas import Replicas, begin_again

_PATIENCE_S = 10.0


class _Clock:
    now_s = 1000.0
    look_s = 0.0  # what a look at it takes

    def look(self) -> float:
        self.now_s += self.look_s
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    """The time, which passes as it is told to and where somebody sleeps."""
    clock = _Clock()
    monkeypatch.setattr(time, "monotonic", clock.look)
    monkeypatch.setattr(time, "sleep", clock.sleep)
    return clock


def _asked(
    clock: _Clock, fails: Callable[[int], Exception | None], patience_s: float
) -> list[float]:
    """How long after the first a replica was asked, each try failing in its way; or having brought
    something before it is cut where that is None."""
    asked = list[float]()

    def tries() -> None:
        for attempt, _ in Replicas(["one"], patience_s).attempts():
            with attempt:
                asked.append(clock.now_s)
                error = fails(len(asked))
                if error is None:
                    begin_again(attempt)
                raise error or httpx.ReadError("cut")

    with pytest.raises((httpx.TransportError, Refused)):
        tries()
    return [at_s - asked[0] for at_s in asked]


def _cut(_: int) -> Exception:
    return httpx.ReadError("cut")


def test_a_connection_that_fell_silent_is_asked_again_all_the_same(clock: _Clock) -> None:
    def fails(number: int) -> Exception:
        clock.sleep(30 if number == 1 else 0)
        return httpx.ReadTimeout("silence")

    asked = _asked(clock, fails, _PATIENCE_S)
    assert len(asked) > 3
    assert asked[-1] == pytest.approx(30 + _PATIENCE_S, abs=0.01)


@pytest.mark.parametrize("patience_s", [0.3, 2, 10, 30])
def test_patience_is_never_over_early(clock: _Clock, patience_s: float) -> None:
    for _ in range(20):
        asked = _asked(clock, _cut, patience_s)
        assert asked[-1] == pytest.approx(patience_s, abs=0.01)  # a last try when it is over
        assert max(b - a for a, b in pairwise(asked)) <= 2


def test_no_patience_is_one_try(clock: _Clock) -> None:
    assert _asked(clock, _cut, 0) == [0]


def test_no_patience_is_one_try_on_a_busy_machine_too(clock: _Clock) -> None:
    clock.look_s = 0.01
    assert _asked(clock, _cut, 0) == [0]


def test_patience_begins_again_once_something_came(clock: _Clock) -> None:
    def fails(number: int) -> Exception | None:
        clock.sleep(5 if number < 9 else 0)
        return None if number < 9 else _cut(number)

    asked = _asked(clock, fails, _PATIENCE_S)
    assert asked[8] > 40
    assert asked[-1] - asked[8] == pytest.approx(_PATIENCE_S, abs=0.2)


def test_a_pause_that_was_asked_for_is_not_cut_short(clock: _Clock) -> None:
    asked = _asked(clock, lambda _: Refused("busy", temporary=True, pause_s=8), _PATIENCE_S)
    assert asked == [0, 8]


def test_a_replica_that_an_earlier_request_was_told_to_leave_alone_is_not_waited_for_longer(
    clock: _Clock,
) -> None:
    """Nor is it asked; one that may be asked within the patience is waited for."""
    began_s = clock.now_s

    def told(replicas: Replicas, *pauses_s: float) -> list[tuple[float, str]]:
        asked = list[tuple[float, str]]()
        for attempt, url in replicas.attempts():
            with attempt:
                asked.append((clock.now_s - began_s, url))
                if len(asked) <= len(pauses_s):
                    raise Refused("busy", temporary=True, pause_s=pauses_s[len(asked) - 1])
        return asked

    replicas = Replicas(["one", "two"], _PATIENCE_S)
    assert told(replicas, 40) == [(0, "one"), (0, "two")]
    with pytest.raises(Refused):
        told(replicas, 20)
    assert clock.now_s == began_s
    clock.sleep(35)
    assert told(replicas, 20) == [(35, "two"), (40, "one")]


def test_the_time_that_a_prompt_takes_to_be_read_comes_on_top(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits_s, connects_s = list[float](), list[float | None]()

    def stream(*_: object, timeout: httpx.Timeout, **__: object) -> None:
        waits_s.append(timeout.read or 0)
        connects_s.append(timeout.connect)
        raise httpx.UnsupportedProtocol("nobody is asked")

    with Client(["http://127.0.0.1:1"]) as client:
        monkeypatch.setattr(client._http, "stream", stream)
        for prompt in ("", "a" * 5000, ["a" * 2500] * 2):
            with pytest.raises(httpx.UnsupportedProtocol):
                next(client.complete(prompt=prompt))
    assert waits_s == pytest.approx([30, 40, 40], abs=0.1)
    assert connects_s == [30] * 3  # a replica that is gone is no slower for a long prompt


def test_a_whole_answer_is_waited_for_as_long_as_a_stream() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        began_s = time.monotonic()
        with (
            Client([url], timeout_s=0.05, patience_s=0) as client,
            pytest.raises(httpx.ReadTimeout),
        ):
            client.models()
    assert time.monotonic() - began_s < 3  # httpx's own patience is of 5 s


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"patience_s": -1}, "patience_s is -1; it must be 0 or more"),
        ({"patience_s": float("nan")}, "patience_s is nan; it must be 0 or more"),
        ({"timeout_s": 0}, "timeout_s is 0; it must be above 0, and finite"),
        ({"timeout_s": float("nan")}, "timeout_s is nan; it must be above 0, and finite"),
        ({"timeout_s": float("inf")}, "timeout_s is inf; it must be above 0, and finite"),
    ],
)
def test_a_time_that_none_can_be_is_refused_at_once(asked: dict[str, float], told: str) -> None:
    """With a patience of nan a service that fails was asked for ever, without a pause."""
    with pytest.raises(ValueError, match=f"^{told}$"):
        Client(["http://127.0.0.1:1"], **asked)
