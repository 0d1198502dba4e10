"""Measures tell one hand from another by its ink."""

import numpy as np
import pytest
from numpy.typing import NDArray

from service.ink.measure import measure


def _fence(lean_degrees: float, noise: float = 0.0) -> NDArray[np.float32]:
    """Forty pickets two units high, joined by arches, sheared; the pen is lifted at each tenth."""
    random = np.random.default_rng(1)
    picket = np.stack([np.zeros(20), np.linspace(2, 0, 20)], axis=1)
    rise = np.linspace(0, 1, 20)
    arch = np.stack([0.5 - 0.5 * np.cos(np.pi * rise), 2 * rise], axis=1)
    unit = np.concatenate([picket, arch])
    points = np.concatenate([unit + np.array([i, 0]) for i in range(40)])
    points[:, 0] += points[:, 1] * np.tan(np.radians(lean_degrees))
    points += random.normal(0, noise, points.shape)
    offsets = np.diff(points, axis=0, prepend=np.zeros((1, 2)))
    pen_up = (np.arange(len(points)) % 400 == 399)[:, None]
    return np.concatenate([offsets, pen_up], axis=1, dtype=np.float32)


@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize("lean_degrees", [-35, -10, 0, 5, 12.5, 30, 45])
def test_the_slant_is_the_lean_of_the_down_strokes(lean_degrees: float, noise: float) -> None:
    slant = measure(_fence(lean_degrees, noise), 40).slant_degrees
    assert slant == pytest.approx(lean_degrees, abs=2)


def test_size_speed_and_advance_grow_with_the_writing() -> None:
    small = _fence(10)
    large = small * np.array([2, 2, 1], np.float32)
    one, two = measure(small, 40), measure(large, 40)
    assert one.size_units == pytest.approx(1.6, abs=0.05)
    assert one.units_per_character == pytest.approx(1, abs=0.05)
    assert two.size_units == pytest.approx(2 * one.size_units, rel=1e-5)
    assert two.units_per_point == pytest.approx(2 * one.units_per_point, rel=1e-5)
    assert two.slant_degrees == one.slant_degrees


def test_the_way_between_strokes_is_not_speed() -> None:
    offsets = np.array([[50, 9, 0], [3, 4, 1], [80, -70, 0], [0, 5, 1]], np.float32)
    assert measure(offsets, 2).units_per_point == 5


def test_a_line_is_as_long_as_its_ink_reaches() -> None:
    """As where the pen goes back to cross a t last of all."""
    offsets = np.array([[3, 0, 0], [10, 2, 1], [-4, 0, 1]], np.float32)
    assert measure(offsets, 2).units_per_character == 5


@pytest.mark.parametrize("count", [0, 1])
def test_what_has_no_ink_measures_nothing(count: int) -> None:
    measures = measure(np.ones((count, 3), np.float32), 0)
    assert measures.slant_degrees == measures.size_units == measures.units_per_point == 0


def _leaning(degrees: float, length: float) -> list[list[float]]:
    """A down-stroke and the way back, off the paper."""
    x, y = length * np.sin(np.radians(degrees)), length * np.cos(np.radians(degrees))
    return [[-x, -y, 1], [x, y, 0]]


@pytest.mark.parametrize(("degrees", "told"), [(10.4, 10), (10.6, 11), (-10.4, -10)])
def test_a_slant_is_told_to_the_nearest_degree(degrees: float, told: float) -> None:
    ink = np.array([[0, 0, 0], *_leaning(degrees, 3.0) * 5], np.float32)
    assert measure(ink, 5).slant_degrees == told


def test_long_strokes_say_more_of_a_slant_than_short_ones() -> None:
    strokes = _leaning(20, 5.0) * 3 + _leaning(-20, 0.5) * 6
    ink = np.array([[0, 0, 0], *strokes], np.float32)
    assert measure(ink, 5).slant_degrees == 20


@pytest.mark.parametrize("side", [1, -1])
def test_what_is_flatter_than_60_degrees_says_nothing_of_a_slant(side: float) -> None:
    for flat, told in ((58, 58 * side), (64, 10)):
        strokes = _leaning(flat * side, 5.0) * 3 + _leaning(10, 1.0) * 3
        ink = np.array([[0, 0, 0], *strokes], np.float32)
        assert measure(ink, 5).slant_degrees == pytest.approx(told, abs=1)


def test_strokes_that_lean_nearly_alike_are_those_of_one_hand() -> None:
    strokes = [m for lean in (16, 20, 24) for m in _leaning(lean, 2.0)] + _leaning(-20, 3.0)
    ink = np.array([[0, 0, 0], *strokes], np.float32)
    assert measure(ink, 5).slant_degrees == 20
