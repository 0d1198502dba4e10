"""Strokes cut into pieces: nothing of the path is lost, and the pen's speed is not in them."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from contract.pieces import PIECE, PIECE_UNITS, Pieces, cut, line_of
from contract.strokes import LONGEST_OFFSET, UNITS_OF_SIZE

_UP, _HEIGHT, _AIR, _OFFSETS = -1, -2, slice(0, 2), slice(2, -2)


def _wave(points: int, *, width: float = 30.0, start: float = 0.0) -> NDArray[np.float64]:
    x = np.linspace(0, width, points)
    return np.stack([x + start, 3 * np.sin(x)], axis=1)


def test_a_straight_stroke_is_whole_pieces_and_a_rest_of_one() -> None:
    pieces = cut([np.array([[1.0, 2.0], [11.0, 2.0]])])
    assert pieces[:, _AIR].tolist() == [[1, 2], [0, 0], [0, 0]]
    assert pieces[:, _OFFSETS].tolist() == [[1, 0] * 4, [1, 0] * 4, [0.5, 0] * 4]
    assert pieces[:, _HEIGHT].tolist() == [2, 2, 2]
    assert pieces[:, _UP].tolist() == [0, 0, 1]


def test_a_stroke_of_whole_pieces_has_no_crumb_at_its_end() -> None:
    assert cut([np.array([[0.0, 0.0], [2 * PIECE_UNITS, 0.0]])])[:, _UP].tolist() == [0, 1]
    # However its steps were rounded: the sum of these is a little more than the whole.
    steps = np.array([0.0, *np.full(40, 0.2).cumsum()])
    stroke = np.stack([steps, np.zeros(41)], axis=1)
    assert np.diff(steps).cumsum()[-1] > 2 * PIECE_UNITS
    assert cut([stroke])[:, _UP].tolist() == [0, 1]


def test_a_dot_is_a_piece_of_no_length() -> None:
    (piece,) = cut([np.array([[3.0, 5.0]])])
    assert piece.tolist() == [3, 5, *[0] * 8, 5, 1]


def test_all_moves_lead_to_the_end_of_the_ink() -> None:
    strokes = [_wave(40), _wave(25, width=7, start=12), np.array([[40.0, 1.0]])]
    pieces = cut(strokes).astype(np.float64)
    moves = pieces[:, _AIR] + pieces[:, _OFFSETS].reshape(len(pieces), -1, 2).sum(1)
    places = moves.cumsum(0)
    ends = places[pieces[:, _UP] > 0]
    assert ends == pytest.approx(np.array([s[-1] for s in strokes]), abs=1e-5)
    assert pieces[:, _HEIGHT] == pytest.approx(places[:, 1], abs=1e-5)


def test_strokes_one_by_one_are_all_of_them() -> None:
    strokes = [_wave(40), _wave(25, width=7, start=12), np.array([[40.0, 1.0]])]
    parts = [cut(strokes[:1])]
    parts += [cut([s], at=before[-1]) for before, s in pairwise(strokes)]
    assert np.concatenate(parts) == pytest.approx(cut(strokes), abs=1e-6)


def test_how_fast_the_pen_moved_is_not_in_them() -> None:
    along = np.concatenate([np.linspace(0, 6, 900), np.linspace(6, 30, 2000)[1:]])
    uneven = np.stack([along, 3 * np.sin(along)], axis=1)
    assert cut([uneven]) == pytest.approx(cut([_wave(3000)]), abs=1e-2)


def test_a_stroke_that_goes_on_has_only_its_whole_pieces() -> None:
    wave = _wave(200)
    whole, begun = cut([wave]), cut([wave], lifted=False)
    assert len(begun) == len(whole) - 1
    assert begun.tolist() == whole[:-1].tolist()
    assert cut([wave[:2]], lifted=False).shape == (0, PIECE)


def test_a_stroke_that_goes_on_has_its_last_piece_though_its_steps_were_rounded() -> None:
    steps = np.full((80, 2), (0.1, 0.0)).cumsum(0) - (0.1, 0.0)
    stroke = np.concatenate([steps, [steps[-1] + (0.1, 0.0)]])
    assert np.hypot(*np.diff(stroke, axis=0).T).sum() < 2 * PIECE_UNITS
    assert len(cut([stroke], lifted=False)) == 2


def test_a_stroke_before_one_that_goes_on_has_ended() -> None:
    pieces = cut([_wave(50), np.array([[90.0, 0.0]])], lifted=False)
    assert pieces.tolist() == cut([_wave(50)]).tolist()


@pytest.mark.parametrize("way", [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)])
def test_a_wide_gap_is_as_wide_as_any(way: tuple[float, float]) -> None:
    dot = np.zeros((1, 2))
    near, far = (cut([dot, dot + np.array(way) * gap])[1, _AIR] for gap in (200.0, 9000.0))
    assert near.tolist() == far.tolist() == [LONGEST_OFFSET * part for part in way]


def test_a_line_has_one_size_whatever_its_unit_its_place_and_its_slope() -> None:
    strokes = [_wave(300, width=60), _wave(60, width=9, start=70)]
    line = line_of(strokes)
    turn = np.array([[np.cos(0.1), np.sin(0.1)], [-np.sin(0.1), np.cos(0.1)]])
    other = line_of([stroke @ turn * 0.02 + (4000.0, -700.0) for stroke in strokes])
    assert line is not None
    assert other is not None
    points = np.concatenate(line)
    assert np.abs(points[:, 1] - np.median(points[:, 1])).mean() == pytest.approx(
        UNITS_OF_SIZE, rel=0.05
    )
    assert cut(other) == pytest.approx(cut(line), abs=0.1)


@pytest.mark.parametrize("strokes", [[], [np.zeros((3, 2))], [np.full((2, 2), np.nan)]])
def test_where_there_is_no_ink_there_is_no_line(strokes: list[NDArray[np.float64]]) -> None:
    assert line_of(strokes) is None


def _whole(pieces: Pieces) -> NDArray[np.float64]:
    """Where each piece begins and ends, `(N, 2, 2)`, by its moves alone."""
    wide = pieces.astype(np.float64)
    lengths = wide[:, _OFFSETS].reshape(len(wide), -1, 2).sum(1)
    ends = (wide[:, _AIR] + lengths).cumsum(0)
    return np.stack([ends - lengths, ends], axis=1)


def test_a_bar_after_the_word_is_read_where_it_stands_in_the_midst_of_a_stroke() -> None:
    word = np.array([[0.0, 0.0], [40.0, 0.0]])  # ten pieces
    bar = np.array([[9.0, 5.0], [12.0, 5.0]])
    written, reordered = cut([word, bar]), cut([word, bar], reordered=True)
    assert written[:, _UP].tolist() == [0] * 9 + [1, 1]
    # Its middle is 10.5, in the third piece; the pen comes back to where it had been.
    assert reordered[:, _UP].tolist() == [0, 0, 0, 1, *[0] * 6, 1]
    places = _whole(reordered)
    assert places[3] == pytest.approx(bar)
    assert places[4] == pytest.approx(np.array([[12.0, 0.0], [16.0, 0.0]]))
    assert places[-1, 1] == pytest.approx(word[-1])
    assert reordered[4, _AIR] == pytest.approx([0, -5])
    kept = [piece.tolist() for piece in written[:, 2:]]
    assert sorted(kept) == sorted(piece.tolist() for piece in reordered[:, 2:])


def test_a_long_bar_stands_after_the_piece_that_its_middle_is_over() -> None:
    """Though the piece after that, if not the word, ends no further right than the bar."""
    word, bar = np.array([[0.0, 0.0], [40.0, 0.0]]), np.array([[10.0, 5.0], [24.0, 5.0]])
    heights = cut([word, bar], reordered=True)[:, _HEIGHT]
    assert heights.tolist() == [0] * 5 + [5] * 4 + [0] * 5


def test_a_bar_over_the_border_of_two_pieces_stands_after_the_second() -> None:
    word, bar = np.array([[0.0, 0.0], [40.0, 0.0]]), np.array([[6.0, 5.0], [10.0, 5.0]])
    assert cut([word, bar], reordered=True)[:, _HEIGHT].tolist() == [0, 0, 0, 5, *[0] * 7]


def test_a_bar_that_ends_a_little_further_from_the_end_of_a_word_is_delayed() -> None:
    word, bar = np.array([[0.0, 0.0], [41.0, 0.0]]), np.array([[30.0, 6.0], [38.9, 6.0]])
    assert cut([word, bar], reordered=True)[:, _HEIGHT].tolist() == [*[0] * 9, 6, 6, 6, 0, 0]


def test_two_bars_stand_in_the_order_of_the_line_whichever_was_drawn_first() -> None:
    word = np.array([[0.0, 0.0], [60.0, 0.0]])
    first, second = (np.array([[x, 5.0], [x + 3.0, 5.0]]) for x in (6.0, 30.0))
    one, other = (cut([word, *bars], reordered=True) for bars in ((first, second), (second, first)))
    assert one.tolist() == other.tolist()
    assert np.flatnonzero(one[:, _HEIGHT]).tolist() == [2, 9]


def test_a_stroke_before_all_ink_comes_first() -> None:
    late = np.array([[-9.0, 1.0], [-6.0, 1.0]])
    pieces = cut([np.array([[0.0, 0.0], [8.0, 0.0]]), late], reordered=True)
    assert pieces[:, _AIR].tolist() == [[-9, 1], [6, -1], [0, 0]]


@pytest.mark.parametrize(
    "later",
    [
        [[42.0, 0.0], [50.0, 0.0]],  # the next word
        [[30.0, 6.0], [39.0, 6.0]],  # a bar that ends just near enough to its end
        [[39.5, 6.0]],  # a dot, back by less than what makes it a delayed one
        [[10.0, 6.0], [40.0, 6.0]],  # a bar over the end of the word
    ],
)
def test_what_is_not_delayed_stays(later: list[list[float]]) -> None:
    strokes = [np.array([[0.0, 0.0], [41.0, 0.0]]), np.array(later)]
    assert cut(strokes, reordered=True).tolist() == cut(strokes).tolist()
