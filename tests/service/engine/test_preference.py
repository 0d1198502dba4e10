"""Few threads or many: what is faster at present is preferred, and that is found out in passing."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import cycle

import pytest

from service.engine.preference import Preference, Ran

_LOAD = (24, 8, False)
_FEW_S = 0.01  # of a run with few threads


@dataclass
class Served:
    """Runs one after the other on a machine where many threads take `of_few` of few's time."""

    preference: Preference
    of_few: float | Callable[[], float]
    slower: float = 1.0
    now_s: float = 0.0
    with_many: list[bool] = field(default_factory=list)

    def one(self, load: tuple[int, int, bool] = _LOAD, pause_s: float = 0.001) -> bool:
        """A run of that load after a pause; whether it had many threads."""
        self.now_s += pause_s
        many = self.preference.choose(load, self.now_s)
        of_few = self.of_few() if callable(self.of_few) else self.of_few
        took_s = _FEW_S * self.slower * (of_few if many else 1.0)
        self.now_s += took_s
        self.preference.follow(Ran(load, took_s, self.now_s), many=many)
        self.with_many.append(many)
        return many

    def some(self, seconds: float) -> float:
        """The part of the runs of so long that had many threads."""
        end_s, first = self.now_s + seconds, len(self.with_many)
        while self.now_s < end_s:
            self.one()
        return sum(self.with_many[first:]) / len(self.with_many[first:])


def _served(of_few: float | Callable[[], float], *, many: bool) -> Served:
    return Served(Preference(many=many, now_s=0.0), of_few)


@pytest.mark.parametrize(
    ("of_few", "many", "later"),
    [
        (0.6, False, True),
        (0.6, True, True),
        (1.5, True, False),
        (1.5, False, False),
        (1.01, True, False),  # of no use: the core is better left to others
        (0.95, True, True),  # not worth a change either way
        (0.95, False, False),
    ],
)
def test_what_is_faster_is_preferred_soon_and_for_good(
    of_few: float, many: bool, later: bool
) -> None:
    served = _served(of_few, many=many)
    served.some(1.5)
    assert served.preference.many is later
    assert abs(served.some(60) - later) < 0.02  # trials are few


def test_a_machine_that_changes_is_followed() -> None:
    served = _served(0.6, many=True)
    for of_few in (1.5, 0.6, 1.2, 0.7):
        served.of_few = of_few
        served.some(1.5)
        assert served.preference.many is (of_few < 1)
        served.some(4)
        assert served.preference.many is (of_few < 1)


@pytest.mark.parametrize("usual", [0.6, 1.5])
def test_a_disturbed_run_now_and_then_changes_nothing(usual: float) -> None:
    """One run in ten takes as long as three."""
    chance = random.Random(3)
    served = _served(usual, many=usual < 1)
    for _ in range(60_000):
        served.slower = 3.0 if chance.random() < 0.1 else 1.0
        served.one()
        assert served.preference.many is (usual < 1)


@pytest.mark.parametrize(("trials", "many"), [((0.6, 2.0), False), ((0.6, 0.6, 2.0), True)])
def test_a_change_needs_a_majority_of_trials(trials: tuple[float, ...], many: bool) -> None:
    served = _served(cycle(trials).__next__, many=False)
    for _ in range(1000):
        if served.one() and not many:
            assert not served.preference.many
    assert True in served.with_many
    assert served.preference.many is many


def test_a_machine_that_is_slow_in_turns_is_slow_for_both() -> None:
    """A trial is compared with the run right before it, not with those of a while ago."""
    served, spells = _served(0.8, many=True), random.Random(5)
    for _ in range(100):
        served.slower = spells.choice((1.0, 3.0))
        assert served.some(1) > 0.9
        assert served.preference.many


@pytest.mark.parametrize(
    ("load", "pause_s"),
    [((23, 8, False), 0.001), ((24, 7, False), 0.001), ((24, 8, True), 0.001), (_LOAD, 0.06)],
    ids=["other rows", "other steps", "other options", "after a pause"],
)
def test_no_trial_of_what_cannot_be_compared(load: tuple[int, int, bool], pause_s: float) -> None:
    served = _served(0.6, many=False)
    served.now_s = 5.0  # long since a trial
    served.one()
    assert not served.one(load, pause_s)
    assert True in {served.one(), served.one()}


def test_no_trial_after_a_run_that_was_too_short() -> None:
    served = _served(0.6, many=False)
    served.now_s = 5.0
    for took_s in (0.001, 0.003):
        served.preference.follow(Ran(_LOAD, took_s, served.now_s), many=False)
        assert served.preference.choose(_LOAD, served.now_s) is (took_s > 0.002)


def test_no_trial_of_a_model_that_has_just_begun() -> None:
    """It is proved and its pace is measured then."""
    served = _served(0.6, many=False)
    assert served.some(0.9) == 0
    assert served.some(0.3) > 0


@pytest.mark.parametrize(("of_few", "many"), [(0.6, True), (1.5, False)])
def test_rows_with_filters_beside_rows_without_are_no_reason_to_try_nothing(
    of_few: float, many: bool
) -> None:
    """Every chunk has a run of either then, and a trial is compared with one of its own kind."""
    served = _served(of_few, many=not many)
    for _ in range(300):
        for filtered, served.slower in ((False, 1.0), (True, 3.0)):
            served.one((12, 8, filtered))
    assert served.preference.many is many
    assert abs(sum(served.with_many[-300:]) / 300 - many) < 0.1  # trials are few
