"""A pen followed point by point: the pieces are those of the whole strokes."""

import numpy as np
import pytest

from contract.pieces import PIECE, PIECE_UNITS, cut
from service.errors import InvalidRequest
from service.reader.tracer import Tracer, require_few, require_short


def _strokes() -> list[np.ndarray]:
    random = np.random.default_rng(2)
    sizes = (40, 3, 1, 25)
    return [
        random.normal((0.3, 0), 1.2, (size, 2)).cumsum(0) + 9 * i for i, size in enumerate(sizes)
    ]


@pytest.mark.parametrize("at_once", [1, 7])
def test_pieces_come_as_the_pen_moves_and_are_those_of_the_strokes(at_once: int) -> None:
    tracer, pieces = Tracer(), [np.zeros((0, PIECE), np.float32)]
    for stroke in _strokes():
        points = [tuple(point) for point in stroke.tolist()]
        for i in range(0, len(points), at_once):
            part = points[i : i + at_once]
            pieces.append(tracer.follow(part, lifted=i + at_once >= len(points)))
    together = np.concatenate(pieces)
    assert together == pytest.approx(cut(_strokes()), abs=1e-5)
    assert sum(len(p) > 0 for p in pieces) > 4


def test_it_goes_on_from_where_it_was() -> None:
    (stroke, *_) = _strokes()
    points = [tuple(point) for point in stroke.tolist()]
    first, whole = Tracer(), Tracer()
    whole.follow(points[:17], lifted=False)
    first.follow(points[:17], lifted=False)
    again = Tracer(first.at, first.path)
    expected = whole.follow(points[17:], lifted=True)
    assert again.follow(points[17:], lifted=True).tolist() == expected.tolist()
    assert again.at == points[-1]


def test_a_pen_that_stands_still_is_not_remembered_point_by_point() -> None:
    tracer = Tracer()
    tracer.follow([(0.0, 0.0), *[(0.001 * (i % 3), 0.0) for i in range(1000)]], lifted=False)
    assert len(tracer.path) == 1
    for i in range(100):
        tracer.follow([(0.001 * (i % 3), 0.0)], lifted=False)
    assert len(tracer.path) == 1


def test_a_point_at_the_end_of_a_piece_is_remembered_once() -> None:
    tracer = Tracer()
    assert len(tracer.follow([(0.0, 0.0), (PIECE_UNITS, 0.0)], lifted=False)) == 1
    assert tracer.path == [tracer.at] == [(PIECE_UNITS, 0.0)]


def test_a_pen_that_creeps_is_followed() -> None:
    tracer = Tracer()
    tracer.follow([(0.04 * i, 0.0) for i in range(4)], lifted=False)
    assert len(tracer.path) == 4


def test_a_stroke_ends_at_its_last_point_however_little_that_moved() -> None:
    tracer = Tracer()
    tracer.follow([(0.0, 0.0), (3.0, 0.0), (3.01, 0.0)], lifted=True)
    assert tracer.at == (3.01, 0.0)


def test_every_stroke_has_a_last_piece_that_counts_in_full() -> None:
    strokes = [np.array([[0.0, 0.0], [40.5 * PIECE_UNITS, 0.0]])] * 100
    assert len(cut(strokes[:98])) == 98 * 41 < 4096
    require_short(strokes[:98])
    with pytest.raises(InvalidRequest, match="at most 4096"):
        require_short(strokes)


@pytest.mark.parametrize(
    ("strokes", "long", "lifted", "pieces"),
    [(1, 4096, True, 4096), (1, 4096.9, False, 4096), (1, 4096.1, True, 4097),
     (450, 9, True, 4050), (500, 8.2, True, 4500)],
)  # fmt: skip
def test_ink_counts_for_as_many_pieces_as_it_is_cut_into(
    strokes: int, long: float, lifted: bool, pieces: int
) -> None:
    ink = [np.array([[0.0, 0.0], [long * PIECE_UNITS, 0.0]])] * strokes
    assert len(cut(ink, lifted=lifted)) == pieces
    if pieces <= 4096:
        require_short(ink, lifted=lifted)
        return
    with pytest.raises(InvalidRequest, match=f"the ink is {pieces} pieces long"):
        require_short(ink, lifted=lifted)


def test_a_stroke_under_way_counts_for_the_pieces_it_fills() -> None:
    most, more = 4096 * PIECE_UNITS, 0.9 * PIECE_UNITS
    assert len(Tracer().follow([(0.0, 0.0), (most + more, 0.0)], lifted=False)) == 4096


def test_as_many_pieces_as_a_message_may_have_are_taken() -> None:
    require_few(4096)
    with pytest.raises(InvalidRequest, match="is 4097 pieces long"):
        require_few(4097)


def test_ink_far_too_large_for_its_line_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="at most 4096"):
        Tracer().follow([(0.0, 0.0), (1e6, 0.0)], lifted=False)


@pytest.mark.parametrize("lifted", [False, True])
def test_a_pen_that_stands_still_draws_nothing(lifted: bool) -> None:
    ink, still = [(0.0, 0.0), (5.0, 0.0)], [(5 + 0.01 * (i % 2), 0.01 * (i % 3)) for i in range(60)]
    moved, stood = Tracer(), Tracer()
    assert np.array_equal(
        stood.follow([*ink, *still, ink[-1]], lifted=lifted), moved.follow(ink, lifted=lifted)
    )
    assert (stood.at, stood.path) == (moved.at, moved.path)
