"""Where strokes end and their line stands: at the last point, and under most of the letters."""

import numpy as np
import pytest

from contract.strokes import UNITS_OF_SIZE, Measured, Points, measure, offsets


def _arches(count: int, descender: float = 0.0) -> Points:
    """Arcs that stand on y = 5, the third of which hangs `descender` below; higher than wide, so
    that nothing turns them."""
    points: list[tuple[float, float]] = []
    for arc in range(count):
        low = 5 - (descender if arc == 2 else 0.0)
        points += [(10.0 * arc + x, low + (305 - low) * abs(x - 5) / 5) for x in range(10)]
    return np.array([*points, (10.0 * count, 305.0)])


@pytest.mark.parametrize("descender", [0.0, 4.0, 100.0])
def test_the_baseline_is_under_most_letters_however_far_one_hangs_below(descender: float) -> None:
    line = measure([_arches(9, descender)], "arches")
    assert line is not None
    (stroke,) = line.strokes
    lows = stroke[stroke[:, 0] % 10 == 5, 1]
    assert len(lows) == 9
    assert np.median(lows) == pytest.approx(0.0, abs=1e-9)
    assert lows.min() == pytest.approx(-descender, abs=1e-9)


def test_a_point_is_a_mean_over_half_of_the_way_to_the_next() -> None:
    """Tremor of the tablet goes, and a corner is blunted no further."""
    x = np.arange(33.0)
    corner = np.stack([x, 16 - np.abs(x - 16)], axis=1)
    line = Measured((corner,), points_per_character=80.0, size=UNITS_OF_SIZE, advance=1.0)
    made = offsets(line, line.points_per_character, line.size)[:, :2].cumsum(0)
    assert made == pytest.approx(
        np.array([[0, 0], [8, 8], [16, 16 - 6 / 5], [24, 8], [32, 0]]), abs=1e-5
    )


def test_points_as_far_apart_as_is_wanted_are_taken_as_they_are() -> None:
    x = np.arange(17.0)
    corner = np.stack([x, 8 - np.abs(x - 8)], axis=1)
    line = Measured((corner,), points_per_character=10.0, size=UNITS_OF_SIZE, advance=1.0)
    made = offsets(line, line.points_per_character, line.size)[:, :2].cumsum(0)
    assert made == pytest.approx(corner, abs=1e-5)


@pytest.mark.parametrize("unit", [1e-7, 1e8])
def test_ink_is_ink_in_any_unit(unit: float) -> None:
    line, other = measure([_arches(3)], "m"), measure([_arches(3) * unit], "m")
    assert line is not None
    assert other is not None
    assert other.size == pytest.approx(line.size * unit)


def test_an_arc_with_a_long_flat_bottom_is_one_arc() -> None:
    letter = _arches(4)
    flat = np.stack([np.linspace(41, 44, 20), np.full(20, -90.0)], axis=1)
    line = measure([np.concatenate([letter, flat, [(45.0, 305.0)]])], "arches")
    assert line is not None
    assert line.strokes[0][0] == pytest.approx([0, 300])


def test_a_stroke_of_less_than_a_step_has_both_its_ends() -> None:
    dash = np.array([[0.0, 1.0], [0.5, 1.0], [1.0, 2.0]])
    line = Measured((dash,), points_per_character=80.0, size=UNITS_OF_SIZE, advance=1.0)
    made = offsets(line, line.points_per_character, line.size)
    assert made.tolist() == [[0, 1, 0], [1, 1, 1]]


@pytest.mark.parametrize("rest", [1e-3, 0.02, 0.05])
def test_a_pause_at_the_end_of_a_stroke_leaves_its_last_point(rest: float) -> None:
    moving = _arches(6)
    still = moving[-1] + np.outer([1, 2, 3], [rest, 0.0])
    line = measure([np.concatenate([moving, still])], "arches")
    assert line is not None
    (stroke,) = line.strokes
    assert stroke[0] == pytest.approx([0, 300])
    assert stroke[-1] == pytest.approx(still[-1] - [0, 5], abs=1e-9)
    assert len(stroke) < len(moving) + 3
    made = offsets(line, line.points_per_character, line.size)
    assert made[:, :2].sum(0) == pytest.approx(stroke[-1] * 1.5 / line.size, abs=1e-3)
    assert made[-1, 2] == 1
