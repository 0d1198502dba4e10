"""The statistics of the noise, each with the power to see the defect it is there for.

Every bound is some five standard errors of 10^5 draws, so the fixed seeds are no lucky ones, and a
defect such as half the variance lies a hundred or more away.
"""

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from contract.noise import InkNoise, UniformStream

_DRAWS = 100_000
_ERROR = 1 / np.sqrt(_DRAWS)  # the standard error of a mean of unit variance, and of a correlation
_SEEDS = [0, 1, 7, -3, 2**40]

Array = NDArray[np.float64]


def _ink(seed: int) -> tuple[Array, Array]:
    uniforms, normals = InkNoise(seed).take(0, _DRAWS)
    return uniforms.astype(np.float64), normals.astype(np.float64)


def _in_portions(seed: int, size: int) -> Array:
    stream = UniformStream(seed)
    return np.concatenate([stream.take(first, size) for first in range(0, _DRAWS, size)])


def _correlation(one: Array, other: Array) -> float:
    return float(np.corrcoef(one, other)[0, 1])


@pytest.mark.parametrize("seed", _SEEDS)
def test_normals_have_the_moments_of_the_standard_normal(seed: int) -> None:
    for normal in _ink(seed)[1].T:
        assert abs(normal.mean()) < 5 * _ERROR
        assert abs(normal.var() - 1) < 5 * np.sqrt(2) * _ERROR
        assert abs((normal**3).mean()) < 5 * np.sqrt(15) * _ERROR
        assert abs((normal**4).mean() - 3) < 5 * np.sqrt(96) * _ERROR
        within = [(np.abs(normal) < edge).mean() for edge in (1, 2, 3)]
        assert within == pytest.approx([0.68269, 0.95450, 0.99730], abs=5 * 0.5 * _ERROR)


@pytest.mark.parametrize("seed", _SEEDS)
def test_the_parts_of_a_step_tell_nothing_of_each_other(seed: int) -> None:
    uniforms, normals = _ink(seed)
    along, across = normals.T
    radius = np.hypot(along, across)
    parts = [uniforms, along, across, radius, np.abs(along), np.abs(across)]
    bound = 5 * _ERROR
    related = {(3, 4), (3, 5)}  # a radius is no less than its parts
    for i, j in combinations(range(len(parts)), 2):
        if (i, j) not in related:
            assert abs(_correlation(parts[i], parts[j])) < bound, (i, j)


@pytest.mark.parametrize("lag", [1, 2, 3, 4, 8, 32, 64, 128, 256, 512])
def test_a_step_tells_nothing_of_the_ones_after_it(lag: int) -> None:
    uniforms, normals = _ink(5)
    parts = [uniforms, *normals.T, np.hypot(*normals.T)]
    for one in parts:
        for other in parts:
            assert abs(_correlation(one[:-lag], other[lag:])) < 5 * _ERROR


@pytest.mark.parametrize("size", [1, 8, 32, 250, _DRAWS])
def test_no_uniform_comes_twice_however_many_are_asked_for_at_once(size: int) -> None:
    """Single values of 2^23 do coincide; three in a row do not, unless they are the same three."""
    uniforms = _in_portions(11, size)
    whole = (uniforms.astype(np.float64) * 2**24).astype(np.int64)
    runs = np.stack([whole[:-2], whole[1:-1], whole[2:]], axis=1)
    assert len(np.unique(runs, axis=0)) == len(runs)
    coincide = len(whole) - len(np.unique(whole))
    expected = _DRAWS**2 / 2 / 2**23
    assert abs(coincide - expected) < 6 * np.sqrt(expected)


def test_no_step_of_ink_shares_a_word_with_another() -> None:
    uniforms, normals = _ink(13)
    radius = np.exp(-0.5 * (normals**2).sum(1))  # the word it was made of
    angle = np.arctan2(normals[:, 1], normals[:, 0]) / (2 * np.pi) % 1
    words = np.stack([uniforms, radius, angle], axis=1)
    for lag in range(1, 5):
        close = np.abs(words[:-lag, :, None] - words[lag:, None, :]) < 1e-6
        assert close.mean() < 1e-4


@pytest.mark.parametrize(
    "other", [(5 + 2**32, 0), (5 + 2**63 - 2**33, 0), (5, 1), (5, 127), (5, 256), (-5, 0), (6, 0)]
)
def test_streams_of_other_keys_have_nothing_in_common(other: tuple[int, int]) -> None:
    here, there = UniformStream(5).take(0, _DRAWS), UniformStream(*other).take(0, _DRAWS)
    assert abs(_correlation(here, there)) < 5 * _ERROR
    assert (here == there).mean() < 1e-4
