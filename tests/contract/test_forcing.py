"""What of a step breaks forcing, whatever its golden vectors show."""

from collections.abc import Callable

import numpy as np
import pytest

from contract.forcing import broken_forcing, forcing_runs
from contract.golden import Arrays

_ROWS = 3
# What a step emits, of whether it is forced to, what it is given and what it drew.
Choice = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def _golden(given: list[int], *, forced: bool) -> Arrays:
    """Steps of which each is given a number of its own."""
    steps = np.array(given)[:, None] + np.zeros((1, _ROWS), np.int64)
    return {"forced": steps, "force": np.full(steps.shape, forced), "uniform": steps / 100}


def _told(steps: Arrays, run: Callable[[Arrays], Arrays]) -> str | None:
    runs = forcing_runs(steps)
    return broken_forcing(runs, [run(each) for each in runs], "symbol")


def _network(choice: Choice, leak: float = 0.0) -> Callable[[Arrays], Arrays]:
    """Adds up what it emitted, and draws that and its noise; `leak` of what it is given as well."""

    def run(steps: Arrays) -> Arrays:
        pending, total, sums = np.zeros(_ROWS), np.zeros(_ROWS), []
        for t, force in enumerate(steps["force"]):
            given, noise = steps["forced"][t], steps["uniform"][t]
            total = total + pending + leak * np.where(force, 0, given)
            pending = choice(force, given, 7 + total + noise)
            sums.append(total)
        return {"symbol": pending, "total": total, "sums": np.stack(sums)}

    return run


@pytest.mark.parametrize("forced", [True, False])
@pytest.mark.parametrize("given", [[0, 0, 0], [4, 255, 1], [255]])
def test_a_step_that_heeds_it_is_well(given: list[int], forced: bool) -> None:
    assert _told(_golden(given, forced=forced), _network(np.where)) is None


@pytest.mark.parametrize("scale", [1.0, 1e5])
def test_a_device_may_add_up_in_another_order(scale: float) -> None:
    random = np.random.default_rng(3)

    def run(steps: Arrays) -> Arrays:
        found = _network(np.where)(steps)
        sums = found["sums"] * scale
        rounding = random.normal(scale=1e-6, size=_ROWS)
        return found | {"sums": sums * (1 + rounding), "all that is left": rounding}

    assert _told(_golden([0, 0], forced=False), run) is None


_BROKEN: dict[str, tuple[Choice, float, str]] = {
    "deaf": (lambda force, given, drawn: drawn, 0.0, "symbol is not"),
    "never draws": (lambda force, given, drawn: given, 0.0, "total depends"),
    "all as the first row": (
        lambda f, g, d: np.where(f[0], g[0], d) + f * [0, 0, 1],
        0.0,
        "symbol",
    ),
    "reads what is not emitted": (np.where, 0.5, "total depends"),
    "of halves": (lambda f, g, d: np.where(f, g / 2, d), 0.0, "symbol is not"),
}


@pytest.mark.parametrize("name", _BROKEN)
@pytest.mark.parametrize("forced", [True, False])
def test_a_step_that_does_not_is_told_of(name: str, forced: bool) -> None:
    choice, leak, told = _BROKEN[name]
    why = _told(_golden([0, 0, 3], forced=forced), _network(choice, leak))
    assert why is not None
    assert why.startswith(told)


def test_what_only_a_later_step_reads_is_told_of() -> None:
    def run(steps: Arrays) -> Arrays:
        given = steps["forced"].copy()
        given[0] *= steps["force"][0]
        return _network(np.where, leak=0.5)(steps | {"forced": given})

    why = _told(_golden([0, 0], forced=True), run)
    assert why == "symbol depends on what a step was given that was to draw"


def test_in_place_of_a_byte_another_byte_is_given() -> None:
    steps = _golden([0], forced=False) | {"forced": np.array([[0, 1, 255]])}
    given, other = (run["forced"][-1] for run in forcing_runs(steps)[:2])
    assert (given != other).all()
    assert ((other >= 0) & (other <= 255)).all()


def test_a_step_that_forgets_it_after_the_first_or_before_the_last_is_told_of() -> None:
    def only(place: int) -> Callable[[Arrays], Arrays]:
        def run(steps: Arrays) -> Arrays:
            here = np.arange(len(steps["force"]))[:, None] == place
            return _network(np.where)(steps | {"force": steps["force"] & here})

        return run

    for place in (0, 1):
        assert _told(_golden([0, 0], forced=True), only(place)) is not None


def test_a_first_step_that_emits_one_symbol_whatever_it_is_forced_to_is_told_of() -> None:
    def run(steps: Arrays) -> Arrays:
        forced, force = steps["forced"].copy(), steps["force"].copy()
        forced[0], force[0] = 0, True
        return _network(np.where)(steps | {"forced": forced, "force": force})

    assert (
        _told(_golden([0, 0], forced=True), run) == "symbol is not what a step was forced to emit"
    )
