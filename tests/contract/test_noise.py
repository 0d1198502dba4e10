"""The counter-based uniforms of a request, and the normals a pen makes of them."""

import math

import numpy as np
import pytest

from contract.noise import InkNoise, UniformStream


def test_any_portion_equals_the_whole() -> None:
    whole = UniformStream(7).take(0, 40)
    for first in range(40):
        for count in range(41 - first):
            assert (UniformStream(7).take(first, count) == whole[first : first + count]).all()


def test_portions_of_one_stream_in_any_order_equal_the_whole() -> None:
    whole, stream = UniformStream(7).take(0, 1000), UniformStream(7)
    for first, count in [(0, 8), (8, 300), (300, 8), (0, 1), (999, 1), (250, 10), (3, 997)]:
        assert (stream.take(first, count) == whole[first : first + count]).all()


def test_a_portion_far_away_equals_the_whole() -> None:
    far = 10**12 + 3
    assert (UniformStream(7).take(far, 9)[5:] == UniformStream(7).take(far + 5, 4)).all()


@pytest.mark.parametrize("far", [2**18, 2**32, 2**34, 2**40])
def test_a_portion_far_away_is_none_that_was(far: int) -> None:
    assert (UniformStream(7).take(far, 64) != UniformStream(7).take(0, 64)).all()


def test_a_seed_draws_today_what_it_drew_before() -> None:
    """Of Philox other words, or other digits of them, would be as good, and every seed another."""
    drawn = UniformStream(7, 1).take(0, 3), UniformStream(-3).take(10**9, 2)
    whole = [[int(uniform * 2**24) for uniform in uniforms] for uniforms in drawn]
    assert whole == [[14805337, 6191435, 8674989], [8304393, 1809375]]


def test_uniforms_fill_the_range_below_one() -> None:
    uniforms = UniformStream(1).take(0, 200_000)
    assert uniforms.dtype == np.float32
    assert 0 <= uniforms.min() < 1e-4
    assert 1 - 1e-4 < uniforms.max() <= 1 - 2**-24
    counts = np.bincount((uniforms * 20).astype(int), minlength=20)
    assert np.abs(counts - 10_000).max() < 500  # five standard deviations


def test_uniforms_are_odd_multiples_of_two_to_the_minus_24_so_none_is_0() -> None:
    scaled = UniformStream(3).take(0, 10_000).astype(np.float64) * 2**24
    assert (scaled % 2 == 1).all()


@pytest.mark.parametrize("other", [(1, 1), (2, 0), (-1, 0), (2**63 - 1, 0), (-(2**63), 0)])
def test_another_seed_or_choice_is_another_stream(other: tuple[int, int]) -> None:
    assert (UniformStream(1, 0).take(0, 100) != UniformStream(*other).take(0, 100)).mean() > 0.99


def test_negative_seeds_are_seeds_of_their_own() -> None:
    seeds = {*range(-50, 50), 2**63 - 1, -(2**63)}
    firsts = {float(UniformStream(seed).take(0, 1)[0]) for seed in seeds}
    assert len(firsts) == len(seeds)


def test_a_step_seldom_makes_a_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which takes a tenth of its time."""
    made: list[int] = []

    class Counts(np.random.Philox):
        def __init__(self, key: object, counter: int) -> None:
            made.append(counter)
            super().__init__(key=key, counter=counter)

    monkeypatch.setattr("contract.noise.Philox", Counts)
    stream = UniformStream(7)
    for step in range(1000, 2000):
        stream.take(step, 1)
    assert len(made) == 4


def test_normals_are_box_and_muller_of_the_stream_in_float64() -> None:
    """Their last digits too are part of what a seed gives, in a browser as well."""
    words = UniformStream(7, 3).take(0, 400).astype(np.float64).reshape(100, 4).tolist()
    uniforms, normals = InkNoise(7, 3).take(0, 100)
    radii = [math.sqrt(-2 * math.log(radius)) for _, radius, _, _ in words]
    angles = [2 * math.pi * angle for _, _, angle, _ in words]
    for axis, of in enumerate((math.cos, math.sin)):
        expected = [radius * of(angle) for radius, angle in zip(radii, angles, strict=True)]
        assert (normals[:, axis] == np.array(expected, np.float32)).all()
    assert uniforms.tolist() == [uniform for uniform, *_ in words]
