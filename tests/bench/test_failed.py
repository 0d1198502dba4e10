"""A percentile of those who were answered is none of all who asked, where too many were not."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from bench import servers
from bench.goal import Goal, judge
from bench.in_process import InProcessRow
from bench.rows import Load, LoadRow, Spread, Window, summarise
from bench.target import PEERS, SERVICE

_QUICK, _SLOW = (Spread(ms, ms, ms, None, 90) for ms in (10.0, 20.0))


def _row(failed: int, name: str = SERVICE, clients: int = 32, **columns: Any) -> LoadRow:
    """100 requests, of which some were refused."""
    asked = Load(name, "closed", clients, None, True, "fixed")
    row = summarise(asked, [], Window(0.0, 1.0), 0.0)
    some = {"latency_ms": _QUICK, "first_byte_ms": _QUICK, "errors": {"503": failed}}
    return replace(row, requests=100, **some | columns)


def _met(goals: Iterable[Goal], name: str) -> bool | None:
    (met,) = (goal.met for goal in goals if goal.name == name)
    return met


@pytest.mark.parametrize(("failed", "met"), [(1, True), (2, None)])
@pytest.mark.parametrize(
    ("share", "name"),
    [
        (0.8, "streamed, first byte, p99 up to 80% of capacity"),
        (0.95, "streamed, first byte, p99 at 95% of capacity"),
    ],
)
def test_arrivals_of_which_one_in_a_hundred_failed_have_no_p99(
    share: float, name: str, failed: int, met: bool | None
) -> None:
    assert _met(servers.open_goals({0.5: [_row(0)], share: [_row(failed)]}), name) is met


@pytest.mark.parametrize(("failed", "met"), [(1, True), (2, None)])
def test_clients_of_which_one_in_a_hundred_was_refused_have_no_p99(
    failed: int, met: bool | None
) -> None:
    assert _met(servers.goals([_row(failed)], []), "32 clients, streamed, first byte, p99") is met


@pytest.mark.parametrize(("failed", "met"), [(50, True), (51, None)])
def test_where_half_of_all_failed_there_is_no_median(failed: int, met: bool | None) -> None:
    rows = [
        _row(failed, streamed=False),
        _row(0, PEERS[0], streamed=False, latency_ms=_SLOW),
    ]
    name = "whole answers at each rate up to 95% of capacity, p50"
    assert _met(servers.open_goals({0.5: rows}), name) is met
    alone = [_row(failed, clients=1, streamed=False)]
    inside = [InProcessRow("m", 1, 2, 8, 32, 5, 20.0, 0.0)]
    name = "completion of 200 bytes, one client, p50"
    assert _met(servers.goals(alone, inside), name) is met


def test_a_goal_is_judged_before_its_figures_are_rounded() -> None:
    missed = judge("share", "its own", "at most", 1.0, 1.00004)
    assert (missed.met, missed.value, missed.bound) == (False, 1.0, 1.0)


def test_a_goal_is_told_in_the_unit_of_what_it_is_of() -> None:
    units = {"p50": "ms", "p99": "ms", "throughput": "bytes/s", "goodput": "requests/s"}
    for goal in (*servers.goals([], []), *servers.open_goals({})):
        assert goal.unit == next(unit for word, unit in units.items() if word in goal.name)
