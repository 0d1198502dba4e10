"""The probability that a reader's outputs say a text: beside every path there is, one by one."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest

from contract.logits import log_probabilities
from contract.reader import BLANK
from service.reader import likelihood

_SYMBOLS = 3  # and the blank


def _logits(steps: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 2, (steps, _SYMBOLS + 1)).astype(np.float32)


def log_likelihood(logits: np.ndarray, symbols: Sequence[int]) -> float:
    """Of one set of outputs."""
    (found,) = likelihood.log_likelihood(logits[None], symbols).tolist()
    return float(found)


def _said_by(path: tuple[int, ...]) -> list[int]:
    """Repeats as one, blanks as none."""
    return [symbol for symbol, _ in itertools.groupby(path) if symbol != BLANK]


def _by_all_paths(logits: np.ndarray, symbols: list[int]) -> float:
    log_p = log_probabilities(logits)
    paths = itertools.product(range(_SYMBOLS + 1), repeat=len(logits))
    total = math.fsum(
        math.exp(sum(log_p[step, symbol] for step, symbol in enumerate(path)))
        for path in paths
        if _said_by(path) == symbols
    )
    return math.log(total) if total else -math.inf


@pytest.mark.parametrize(
    "symbols", [[], [1], [2, 2], [1, 2], [1, 2, 1], [3, 3, 3], [1, 1, 2], [3, 2, 1, 2]]
)
@pytest.mark.parametrize("steps", [1, 2, 4, 6])
def test_it_is_the_sum_over_every_path(symbols: list[int], steps: int) -> None:
    logits = _logits(steps, seed=steps)
    expected = _by_all_paths(logits, symbols)
    assert log_likelihood(logits, symbols) == pytest.approx(expected, rel=1e-12)


def test_several_outputs_are_judged_as_each_is_alone() -> None:
    logits = np.stack([_logits(6, seed) for seed in range(3)])
    alone = [log_likelihood(one, [1, 2, 1]) for one in logits]
    assert likelihood.log_likelihood(logits, [1, 2, 1]).tolist() == alone


def test_all_that_can_be_said_is_certain_together() -> None:
    logits = _logits(4)
    texts = [t for n in range(5) for t in itertools.product(range(1, _SYMBOLS + 1), repeat=n)]
    assert math.fsum(math.exp(log_likelihood(logits, t)) for t in texts) == pytest.approx(1)


def test_a_text_with_too_few_steps_cannot_be_said() -> None:
    assert log_likelihood(_logits(2), [1, 2, 3]) == -math.inf
    assert log_likelihood(_logits(2), [1, 1]) == -math.inf  # a blank has to part them
    assert log_likelihood(_logits(3), [1, 1]) > -math.inf


def test_a_long_line_neither_underflows_nor_warns() -> None:
    found = log_likelihood(_logits(2000), [1, 2, 3] * 200)
    assert math.isfinite(found)
    assert found < -700  # less than float64 could have told as a probability
