"""Loads and what is said of them: times are from when a request was meant, and whoever was refused
is no capacity."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from bench.http import schedule
from bench.rows import spread
from tests.reliability import load, overload
from tests.reliability.overload import CallerRow
from tests.reliability.work import INK, TEXT, Reply, Work

_S = 0.05


def _reply(status: str, begin_s: float = 1.0, late_s: float = 0.0) -> Reply:
    """To a request that was sent so much later than meant."""
    sent_s = begin_s + late_s
    return Reply(
        status=status, intended_s=begin_s, sent_s=sent_s, first_s=sent_s + 0.01,
        ended_s=sent_s + 0.03, retry_after_s="0.001",
    )  # fmt: skip


@asynccontextmanager
async def _connect(address: str = "127.0.0.1") -> AsyncIterator[str]:
    yield address


def test_each_work_arrives_by_a_schedule_of_its_own_in_the_order_of_time() -> None:
    """And is known by when it was meant to be asked for, however late that is."""
    asked: list[tuple[Work, float, int]] = []

    async def one(work: Work, due_s: float, number: int) -> int:
        asked.append((work, due_s, number))
        time.sleep(0.003)  # the driver itself is late
        return number

    found = asyncio.run(load.offer({TEXT: 300.0, INK: 300.0}, _S, 1, one))
    due = {TEXT: schedule(300.0, _S, 1), INK: schedule(300.0, _S, 2)}
    assert found == {work: list(range(len(moments))) for work, moments in due.items()}
    moments = [due_s for _, due_s, _ in asked]
    assert moments == sorted(moments)
    began_s = {round(due_s - due[work][number], 6) for work, due_s, number in asked}
    assert len(began_s) == 1


def test_capacity_is_what_was_answered_to_clients_who_share_the_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever is refused comes back when it may, and is none that could be served."""
    now_s, asked = [0.0], list[tuple[Work, bool]]()
    slept, sizes = list[float](), list[int]()

    async def ask(_: str, url: str, work: Work, number: int, *, streamed: bool) -> Reply:
        asked.append((work, streamed))
        now_s[0] += 0.25
        await asyncio.sleep(0)
        return _reply("200" if work is TEXT else "503")

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    def gather(*waiting: Awaitable[Any]) -> Awaitable[list[Any]]:
        sizes.append(len(waiting))
        return asyncio.gather(*waiting)

    monkeypatch.setattr(load, "connect", _connect)
    monkeypatch.setattr(load, "ask", ask)
    monkeypatch.setattr(load, "time", SimpleNamespace(perf_counter=lambda: now_s[0]))
    monkeypatch.setattr(load, "asyncio", SimpleNamespace(sleep=sleep, gather=gather))
    found = asyncio.run(load.capacity_per_s("", (TEXT, INK), 4.0, clients=4))
    texts = sum(work is TEXT for work, _ in asked)
    assert sizes == [2, 2, 2]  # two works, and two clients of each
    assert found == {TEXT: pytest.approx(texts / now_s[0]), INK: 0.0}
    assert not any(streamed for _, streamed in asked)
    assert 0 < texts < len(asked)
    assert slept == [0.001] * (len(asked) - texts)


def test_a_load_is_told_of_each_work_after_its_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """At its share of the capacity of that work, though that is more than it can do."""
    offered: list[tuple[Mapping[Work, float], float]] = []

    async def ask(*_: object, intended_s: float) -> Reply:
        return _reply("200", intended_s)

    async def offer(
        rates: Mapping[Work, float], seconds: float, seed: int, one: Callable[..., Any]
    ) -> dict[Work, list[Reply]]:
        offered.append((rates, seconds))
        due = [100.0 + seconds * tenth / 11 for tenth in range(11)]
        return {work: [await one(work, due_s, 1) for due_s in due] for work in rates}

    monkeypatch.setattr(overload, "connect", _connect)
    monkeypatch.setattr(overload, "ask", ask)
    monkeypatch.setattr(overload, "offer", offer)
    clocks = {"perf_counter": iter([100.0, 111.0]), "process_time": iter([5.0, 7.2])}
    stands_for = SimpleNamespace(**{name: clock.__next__ for name, clock in clocks.items()})
    monkeypatch.setattr(overload, "time", stands_for)
    rows = asyncio.run(overload._offer("", {TEXT: 10.0, INK: 4.0}, 3.0, 10.0))
    assert offered == [({TEXT: 30.0, INK: 12.0}, 11.0)]
    told = [(row.what, row.offered_per_s, row.seconds, row.requests) for row in rows]
    assert told == [("text", 30.0, 10.0, 10), ("ink", 12.0, 10.0, 10)]
    assert {row.driver_cores for row in rows} == {0.2}  # that it was busy for, of those it had


def test_a_row_of_a_load_tells_each_of_its_own() -> None:
    fine = [_reply("200", late_s=0.002), _reply("200", late_s=0.004)]
    refused = [_reply("503", late_s=0.006)] * 2
    row = overload._row(TEXT, 1.0, 5.0, [*fine, *refused], (0.5, 2.5), 0.1)
    assert (row.refused_share, row.retry_after_s) == (0.5, {"0.001": 2})
    assert row.whole_ms is not None
    assert row.late_ms is not None
    assert (row.whole_ms.p50, row.whole_ms.p99, row.whole_ms.samples) == (32.0, 34.0, 2)
    assert (row.late_ms.p50, row.late_ms.p99) == (4.0, 6.0)


def _caller(beside: int, *first_s: float) -> CallerRow:
    return CallerRow(beside, 10, 0, {}, spread(first_s), spread([9.0]))


@pytest.mark.parametrize(("slow_s", "met"), [(0.05, True), (0.051, False)])
def test_a_caller_is_judged_beside_the_other_by_the_last_in_a_hundred(
    slow_s: float, met: bool
) -> None:
    callers = [_caller(0, 0.001), _caller(200, *[0.001] * 50, slow_s)]
    (first, _) = overload.goals({"overload": []}, callers)
    assert (first.met, first.value) == (met, slow_s * 1e3)


def test_a_greedy_caller_has_an_address_of_its_own_and_begins_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    did: list[tuple[Any, ...]] = []

    async def repeat(clients: int, seconds: float, one: Any) -> list[Reply]:
        did.append((one.args[0], clients, seconds))
        mine = ["200", "503", "500"] if clients == 1 else []
        return [_reply(status, late_s=0.5) for status in mine]

    async def sleep(seconds: float) -> None:
        did.append(("rest", seconds))
        await asyncio.sleep(0)

    monkeypatch.setattr(overload, "connect", _connect)
    monkeypatch.setattr(overload, "repeat", repeat)
    stands_for = SimpleNamespace(ensure_future=asyncio.ensure_future, sleep=sleep)
    monkeypatch.setattr(overload, "asyncio", stands_for)
    row = asyncio.run(overload._one_caller("", 200, 10.0))
    assert (row.beside, row.answers, row.refused, row.failed) == (200, 1, 1, {"500": 1})
    assert row.first_ms
    assert row.whole_ms
    assert (row.first_ms.p50, row.whole_ms.p50) == (10.0, 30.0)  # from when it was sent
    rest, theirs, mine = did
    assert rest == ("rest", 1.0)
    assert (theirs[1:], mine[1:]) == ((200, 11.0), (1, 10.0))
    assert (theirs[0], mine[0]) == ("127.0.0.2", "127.0.0.1")


@pytest.mark.parametrize(("slow_s", "met"), [(0.005, True), (0.0051, False)])
def test_refusals_and_the_driver_are_judged_by_the_last_in_a_hundred(
    slow_s: float, met: bool
) -> None:
    fine = [_reply("200") for _ in range(50)]
    refused = [
        Reply(status="503", intended_s=1.0, sent_s=1.0, first_s=1.0 + s, ended_s=1.0 + s)
        for s in [0.001] * 50 + [slow_s]
    ]
    row = overload._row(TEXT, 3.0, 5.0, [*fine, *refused], (0.5, 2.5), 0.1)
    named = {goal.name: goal for goal in overload.goals({"overload": [row]}, [])}
    assert named["refusal at 3 times capacity, p99"].met is met
    late = [_reply("200", late_s=0.02 if n == 50 else 0.0) for n in range(51)]
    row = overload._row(INK, 3.0, 5.0, late, (0.5, 2.5), 0.1)
    (busy,) = overload.goals({"overload": [], "beside": [row]}, [])
    assert (busy.met, busy.value) == (False, 20.0)
