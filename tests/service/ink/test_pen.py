"""Offsets become points on the page, in whatever portions they come."""

import numpy as np
import pytest
from numpy.typing import NDArray

from service.ink.pen import LinePen, strokes
from tests.service.ink.sheets import sheet, some_offsets


def _uneven_offsets(count: int) -> NDArray[np.float32]:
    """Offsets of such different sizes that their sums in float64 round."""
    sizes = np.exp2(np.random.default_rng(1).uniform(-40, 4, (count, 1))).astype(np.float32)
    return np.concatenate([some_offsets(count)[:, :2] * sizes, some_offsets(count)[:, 2:]], axis=1)


@pytest.mark.parametrize("portion", [1, 2, 7, 100, 499])
def test_portions_of_any_size_give_the_bits_of_the_whole(portion: int) -> None:
    offsets = _uneven_offsets(500)
    whole = LinePen(sheet(), 3).move(offsets)
    pen = LinePen(sheet(), 3)
    portions = [pen.move(offsets[i : i + portion]) for i in range(0, len(offsets), portion)]
    assert np.concatenate(portions).tobytes() == whole.tobytes()


def test_a_sum_begun_anew_with_each_portion_would_have_other_bits() -> None:
    moves = _uneven_offsets(500)[:, :2].astype(np.float64)
    anew = moves[:7].sum(axis=0) + moves[7:].cumsum(axis=0)
    assert (anew != moves.cumsum(axis=0)[7:]).any()


def test_a_portion_of_no_offsets_moves_nothing() -> None:
    pen, offsets = LinePen(sheet(), 0), some_offsets(6)
    assert pen.move(offsets[:0]).shape == (0, 3)
    first, nothing, rest = pen.move(offsets[:2]), pen.move(offsets[:0]), pen.move(offsets[2:])
    assert nothing.shape == (0, 3)
    whole = LinePen(sheet(), 0).move(offsets)
    assert np.concatenate([first, rest]).tobytes() == whole.tobytes()


def test_a_point_of_one_stroke_stands_where_plain_arithmetic_puts_it() -> None:
    offsets = some_offsets(50)
    offsets[:, 2] = 0
    (x, y), scale = sheet().origin_px(2), 40.0 / 3.0
    for offset, point in zip(offsets, LinePen(sheet(), 2).move(offsets), strict=True):
        x, y = x + float(offset[0]) * scale, y - float(offset[1]) * scale
        assert point == pytest.approx([x, y, offset[2]], abs=1e-9)


def _zigzags(letters: int, climb: float) -> np.ndarray:
    """Letters of a down-stroke and an up-stroke three units high, each `climb` above the last."""
    letter = [[1, 3 + climb, 0], [0, -3, 0], [1, 0, 0], [0, 3, 1], [1, -3, 0]]
    return np.array(letter * letters, np.float32)


@pytest.mark.parametrize("climb", [-0.3, 0.3])
def test_a_line_that_climbs_or_sinks_is_kept_on_the_ruled_line(climb: float) -> None:
    layout = sheet()
    points = LinePen(layout, 0).move(_zigzags(60, climb))
    low = layout.origin_px(0)[1] - points[5 * 50 + 1 :: 5, 1]
    left_alone = 60 * abs(climb) * layout.px_per_unit
    assert np.abs(low).max() < 0.2 * left_alone


def test_level_ink_is_left_where_it_is() -> None:
    offsets = _zigzags(40, 0.0)
    points = LinePen(sheet(), 0).move(offsets)
    plain = offsets[:, 1].astype(float).cumsum()
    assert (sheet().origin_px(0)[1] - points[:, 1]) / sheet().px_per_unit == pytest.approx(
        plain, abs=1e-6
    )


@pytest.mark.parametrize(
    "stroke",
    [(3, 0, 3), (3, 0, 0, 3), (3, 0), (3, 0, 0), (0,)],
    ids=["arch", "flat", "down", "foot", "dot"],
)
@pytest.mark.parametrize(("low", "step"), [(1, -0.4), (-1, 0.4), (10, -0.8), (-10, 0.8)])
def test_after_five_arcs_the_pen_comes_back_by_a_part_of_the_way(
    stroke: tuple[float, ...], low: float, step: float
) -> None:
    layout, heights = sheet(), np.array(stroke * 6, float) + low
    offsets = np.zeros((len(heights), 3), np.float32)
    offsets[:, 1] = np.diff(heights, prepend=0)
    offsets[len(stroke) - 1 :: len(stroke), 2] = 1
    points = LinePen(layout, 0).move(offsets)
    away = (layout.origin_px(0)[1] - points[:, 1]) / layout.px_per_unit - heights
    expected = [0.0] * 5 * len(stroke) + [step] * len(stroke)
    assert away == pytest.approx(expected, abs=1e-6)


def test_strokes_end_where_the_pen_leaves_the_paper() -> None:
    points = np.array([[0, 0, 0], [1, 1, 1], [2, 2, 1], [3, 3, 0], [4, 4, 0]], float)
    assert [stroke.tolist() for stroke in strokes(points)] == [
        [[0, 0], [1, 1]],
        [[2, 2]],
        [[3, 3], [4, 4]],
    ]
    assert strokes(points[:0]) == []


@pytest.mark.parametrize(("low", "high", "step"), [(5, 4, 0.0), (4, 5, -0.8)])
def test_a_line_is_where_most_of_the_last_nine_arcs_stand(low: int, high: int, step: float) -> None:
    lows = [5.0] * 3 + [0.0] * low + [2.0] * high
    heights = np.array([9.0, *(y for arc in lows for y in (arc, 9.0)), 9.0])
    offsets = np.zeros((len(heights), 3), np.float32)
    offsets[:, 1], offsets[-2, 2] = np.diff(heights, prepend=0), 1
    layout = sheet()
    points = LinePen(layout, 0).move(offsets)
    away = (layout.origin_px(0)[1] - points[:, 1]) / layout.px_per_unit - heights
    assert away[-2:] == pytest.approx([0.0, step], abs=1e-6)


def test_the_next_lift_makes_good_a_part_of_what_is_then_left() -> None:
    """What was written before the pen came back counts as if it had been written after it."""
    offsets = np.array([[0, 1, 1], *[[0, 0, 1]] * 6], np.float32)
    points = LinePen(sheet(), 0).move(offsets)
    heights = (sheet().origin_px(0)[1] - points[:, 1]) / sheet().px_per_unit
    assert heights == pytest.approx([1.0] * 5 + [0.6, 0.36], abs=1e-6)
