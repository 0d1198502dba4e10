"""Which loads the servers get and in which order, and what is measured beside them."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from bench import servers
from bench.goal import Goal
from bench.in_process import InProcessRow
from bench.rows import Load, LoadRow, Window, summarise
from bench.servers import LoadPlan, closed, opened
from bench.target import SERVERS, SERVICE, Target
from service.engine.threads import usable_cores

_PLAIN, _WHOLE = "plain", "litserve"
# Requests a second that a server can do, streamed or not.
_ABLE = {
    (SERVICE, False): 100.0,
    (SERVICE, True): 50.0,
    (_PLAIN, True): 10.0,
    (_WHOLE, False): 55.0,
}


class Measured:
    """Stands for servers, loads and sessions; `done` is what was asked of them, in order."""

    def __init__(self) -> None:
        self.done: list[tuple[Any, ...]] = []
        self.seconds = set[float]()

    @contextmanager
    def launch(self, name: str, *, settings: Any) -> Iterator[Target]:
        assert settings == {"EVENKEEL_THREADS": str(usable_cores())}
        self.done.append(("start", name))
        yield Target(name, 0, server=SERVERS[name])

    def load(
        self, target: Target, *, seconds: float, clients: int | None = None,
        rate_per_s: float | None = None, streamed: bool = False, lengths: Any = "fixed",
    ) -> LoadRow:  # fmt: skip
        self.done.append((target.name, clients or rate_per_s, streamed, lengths))
        self.seconds.add(seconds)
        loop = "closed" if clients else "open"
        asked = Load(target.name, loop, clients, rate_per_s, streamed, lengths)
        row = summarise(asked, [], Window(0.0, seconds), 0.0)
        return replace(row, requests_per_s=_ABLE.get((target.name, streamed), 0.0))

    def measure(self, rows: int) -> InProcessRow:
        self.done.append(("session", rows))
        return InProcessRow("m", rows, 2, 8, 32, 5, 1.0, 1.0)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Measured:
    fake = Measured()
    monkeypatch.setattr(servers, "launch", fake.launch)
    monkeypatch.setattr(servers.http, "load", fake.load)
    monkeypatch.setattr(servers, "InProcess", lambda: fake)
    return fake


def _tables(found: Iterable[Any]) -> list[str]:
    return [each[0] for each in found if not isinstance(each, Goal)]


def test_every_server_is_measured_once_a_round_and_the_session_about_the_service(
    measured: Measured,
) -> None:
    found = list(closed(True, LoadPlan((SERVICE, _PLAIN), seconds=1.0, repeats=2)))
    session = [("session", 1), ("session", 32)]

    def of(name: str) -> list[tuple[Any, ...]]:
        return [(name, clients, mode, "fixed") for clients in (1, 32) for mode in (False, True)]

    a_round = [("start", SERVICE), *session, *of(SERVICE), *session, ("start", _PLAIN), *of(_PLAIN)]
    assert (measured.done, measured.seconds) == (a_round * 2, {1.0})
    assert _tables(found) == 2 * (
        2 * ["in_process"] + 4 * ["load"] + 2 * ["in_process"] + 4 * ["load"]
    )
    assert {goal.met for goal in found if isinstance(goal, Goal)} <= {None, False}


def test_the_service_alone_has_the_loads_that_the_rounds_have_not(measured: Measured) -> None:
    plan = LoadPlan((), seconds=1.0, repeats=1, service_clients=(1, 8))
    assert _tables(closed(True, plan)) == 6 * ["load"]
    modes = (False, True)
    assert measured.done == [
        ("start", SERVICE),
        *((SERVICE, 1, mode, "mixed") for mode in modes),
        *((SERVICE, 8, mode, lengths) for lengths in ("fixed", "mixed") for mode in modes),
    ]


def test_rates_are_shares_of_what_the_service_can_do_in_that_mode(measured: Measured) -> None:
    """Each with a server of its own; the service in both modes, others in their last, and up to the
    first rate that is beyond them."""
    plan = LoadPlan((SERVICE, _PLAIN, _WHOLE), seconds=1.0, repeats=1, shares=(0.5, 0.8, 1.2))
    found = list(opened(True, plan))
    assert measured.seconds == {plan.open_seconds} != {plan.seconds}
    starts, loads = measured.done[::2], measured.done[1::2]
    assert starts == [("start", load[0]) for load in loads]
    assert [load[:3] for load in loads] == [
        (SERVICE, 32, False), (SERVICE, 32, True), (_PLAIN, 32, True), (_WHOLE, 32, False),
        (SERVICE, 50.0, False), (_WHOLE, 50.0, False),
        (SERVICE, 80.0, False), (_WHOLE, 80.0, False),
        (SERVICE, 120.0, False),
        (SERVICE, 25.0, True), (_PLAIN, 25.0, True),
        (SERVICE, 40.0, True),
        (SERVICE, 60.0, True),
    ]  # fmt: skip
    assert _tables(found) == ["load"] * len(loads)
    assert all(isinstance(goal, Goal) for goal in found[len(loads) :])


def test_shares_of_nothing_are_not_offered(
    measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the service answered nobody in the time it had."""
    monkeypatch.setitem(_ABLE, (SERVICE, False), 0.0)
    found = list(opened(True, LoadPlan((SERVICE, _WHOLE), seconds=1.0, repeats=1, shares=(0.5,))))
    assert [load[:3] for load in measured.done[1::2]] == [
        (SERVICE, 32, False), (SERVICE, 32, True), (_WHOLE, 32, False), (SERVICE, 25.0, True),
    ]  # fmt: skip
    assert {goal.met for goal in found if isinstance(goal, Goal)} == {None}
