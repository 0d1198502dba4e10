"""Medians and tails of what was timed: each is of the samples it says, in the units it says."""

import random
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch

from bench import floor, training, websocket
from bench.sides import Side
from bench.step import StepRow, compare

_STEPS = 200


def _compared(*, rounds: int = 1, **seconds: list[float]) -> dict[str, StepRow]:
    """Rows of sides that take so long in each round, by the clock that they alone move, and what
    passes before each begins."""
    now_s, rests = [0.0], list[float]()

    def pass_by(seconds: float) -> None:
        now_s[0] += seconds

    def rest(settle_s: float) -> None:
        rests.append(settle_s)
        pass_by(1000.0)

    def side(times: list[float]) -> Side:
        left = iter(s for timed in times for s in (100 * timed, timed))  # once to be warm
        return Side(lambda: pass_by(next(left)))

    sides = {name: side(times) for name, times in seconds.items()}
    rows = compare("m", 1, sides, _STEPS, rounds, clock=lambda: now_s[0], sleep=rest)
    assert len(rests) == sum(map(len, seconds.values()))  # one before each
    return {row.side: row for row in rows}


def test_the_quantiles_of_a_step_are_samples_by_nearest_rank() -> None:
    """Of twelve rounds: the sixth of them, the second, and the last."""
    slow = [float(n) for n in range(1, 13)]
    random.Random(0).shuffle(slow)
    rows = _compared(rounds=12, served=[2.0] * 12, eager=slow, floor=[0.5] * 12)
    eager, second_us = rows["eager"], 1e6 / _STEPS
    assert (eager.us_median, eager.us_p99) == (6 * second_us, 12 * second_us)
    assert (eager.ratio_median, eager.ratio_p10, eager.ratio_p99) == (3.0, 1.0, 6.0)
    assert (eager.over_floor_median, eager.over_floor_p99) == (12.0, 24.0)
    assert rows["served"].us_median == 2 * second_us
    assert (rows["served"].ratio_p10, rows["served"].ratio_p99) == (1.0, 1.0)
    assert rows["floor"].over_floor_p99 == 1.0


def test_ratios_are_of_the_same_round() -> None:
    """Every round is twice as slow as the one before, for all: each ratio is 3 still, and 1/2."""
    slowing = [2.0**turn for turn in range(9)]
    eager, low = [3 * s for s in slowing], [s / 2 for s in slowing]
    rows = _compared(rounds=8, served=slowing, eager=eager, floor=low)
    eager, served = rows["eager"], rows["served"]
    assert (eager.ratio_median, eager.ratio_p10, eager.ratio_p99) == (3, 3, 3)
    assert (rows["floor"].ratio_median, rows["floor"].over_floor_median) == (0.5, 1)
    assert (served.over_floor_median, served.over_floor_p99) == (2, 2)
    assert {row.rounds for row in rows.values()} == {9}  # a multiple of three sides
    assert "2.00 floors" in served.line()


def test_a_ratio_is_the_median_of_ratios_and_none_of_medians() -> None:
    rows = _compared(rounds=4, served=[1.0, 4.0, 3.0, 2.0], eager=[2.0, 2.0, 12.0, 2.0])
    # Of the rounds 2, 0.5, 4 and 1; of the medians, it would be 1.
    assert rows["eager"].ratio_median == 1.0
    rows = _compared(rounds=4, served=[9.0, 9.0, 1.0, 1.0], eager=[27.0, 1.0, 3.0, 3.0])
    assert rows["eager"].ratio_median == 3.0
    assert rows["eager"].over_floor_median is None  # there was none


def test_an_update_is_compared_with_that_of_the_same_round() -> None:
    assert training._ratios([1.0, 2.0, 9.0], [1.0, 4.0, 3.0]) == [1.0, 0.5]
    assert training._ratios([float(n) for n in range(1, 21)], [2.0] * 20) == [5.0, 1.0]


@pytest.mark.parametrize(("steps", "p999"), [(9_999, None), (10_000, 9990.0)])
def test_steps_of_a_websocket_are_told_in_microseconds(steps: int, p999: float | None) -> None:
    seconds = [n / 1e6 for n in range(steps, 0, -1)]
    row = websocket._row("websocket", 2, seconds)
    assert (row.way, row.threads, row.steps, row.p999_us) == ("websocket", 2, steps, p999)
    assert (row.p50_us, row.p90_us, row.p99_us) == (5000.0, 9000.0, 9900.0)


def _reader(now_s: list[float], costs_s: list[float]) -> Callable[[torch.Tensor], torch.Tensor]:
    left = iter(costs_s)

    def read(buffer: torch.Tensor) -> torch.Tensor:
        now_s[0] += next(left)
        return buffer

    return read


@pytest.mark.parametrize("last", ["sum", "amax"])
def test_the_floor_is_that_of_the_reader_which_is_fastest_by_median(
    last: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow spell of some trials, and those before it is warm, do not count."""
    now_s, calls = [0.0], floor._WARM_UP + floor._TRIALS
    spell, warm = floor._TRIALS // 2 - 1, floor._WARM_UP
    quick = [1000.0] * (warm + spell) + [2.0] * (floor._TRIALS - spell)
    costs = {"sum": quick, "amax": [3.0] * calls}
    readers = {name: _reader(now_s, some) for name, some in costs.items()}
    if last == "sum":  # in whatever order
        readers = dict(reversed(readers.items()))
    monkeypatch.setattr(floor, "_READERS", readers)
    monkeypatch.setattr(floor, "time", SimpleNamespace(perf_counter=lambda: now_s[0]))
    name, _ = floor.reads(400, 1)
    assert name == "sum"
