"""Strokes of a pen as ink: level, at one rate, in one size, whoever calls."""

import numpy as np
import pytest
from numpy.typing import NDArray

from contract.strokes import (
    LONGEST_OFFSET,
    POINTS_PER_CHARACTER,
    UNITS_OF_SIZE,
    Measured,
    _baseline,
    level,
    measure,
    offsets,
)
from service.errors import InvalidRequest
from service.ink.hands import offsets_of

Points = NDArray[np.float64]
_TEXT = "mmm mmm mmm"


def _moved(stroke: Points, x: float, y: float = 0.0) -> Points:
    return stroke + np.array([x, y])


def _arches(points: int = 24) -> list[Points]:
    """Three words of three arches each, 7 wide and 8 high, `points` to an arch; y up."""
    at = np.linspace(0, 1, points)
    arch = np.stack([6 * at, 8 * np.sin(np.pi * at)], axis=1)
    return [np.concatenate([_moved(arch, 7 * (3 * w + n)) for n in range(3)]) for w in range(3)]


def _measured(strokes: list[Points], text: str = _TEXT) -> Measured:
    line = measure(strokes, text)
    assert line is not None
    return line


def _offsets(strokes: list[Points], text: str = _TEXT) -> NDArray[np.float32]:
    """As a source of one line."""
    line = _measured(strokes, text)
    return offsets(line, line.points_per_character, line.size)


def _sent(strokes: list[Points], text: str = _TEXT) -> NDArray[np.float32]:
    """The same sent by a caller, whose page has y down."""
    return offsets_of([[(x, -y) for x, y in s.tolist()] for s in strokes], text)


def test_a_line_begins_at_the_left_end_of_its_baseline() -> None:
    moved = [_moved(stroke, 300.0, -40.0) for stroke in _arches()]
    first, *_ = _measured(moved).strokes
    assert first[0] == pytest.approx([0, 0], abs=1e-9)
    assert _offsets(moved) == pytest.approx(_offsets(_arches()), abs=1e-5)


def test_a_line_begins_at_its_left_end_wherever_the_pen_began() -> None:
    words = [stroke[::-1] for stroke in _arches()[::-1]]
    left = min(stroke[:, 0].min() for stroke in _measured(words).strokes)
    assert left == pytest.approx(0, abs=1e-9)


def test_a_measured_line_tells_its_rate_size_and_advance() -> None:
    line, every = _measured(_arches()), np.concatenate(_arches())
    assert line.points_per_character == 24  # nine arches say nine letters
    assert line.size == pytest.approx(np.abs(every[:, 1] - np.median(every[:, 1])).mean())
    assert line.advance == pytest.approx(np.ptp(every[:, 0]) / len(_TEXT))


def test_the_baseline_of_a_line_is_looked_for_once_and_not_for_every_stroke(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A line of 1,500 dots would take as many times as long."""
    looked: list[int] = []

    def baseline(strokes: list[Points]) -> float:
        looked.append(len(strokes))
        return _baseline(strokes)

    monkeypatch.setattr("contract.strokes._baseline", baseline)
    _measured(_arches())
    assert looked == [3]


def test_every_hand_gets_the_rate_and_size_of_the_model() -> None:
    for points, scale in ((20, 1.0), (50, 0.01), (137, 90.0)):
        ink = _offsets([stroke * scale for stroke in _arches(points)])
        y = ink[:, 1].astype(float).cumsum()
        assert len(ink) == pytest.approx(9 * POINTS_PER_CHARACTER, rel=0.1)
        assert np.abs(y - np.median(y)).mean() == pytest.approx(UNITS_OF_SIZE, rel=0.15)


def test_a_larger_or_faster_hand_than_the_callers_stays_so() -> None:
    line = _measured(_arches())
    usual = offsets(line, line.points_per_character, line.size)
    large = offsets(line, line.points_per_character, line.size / 2)
    assert large[:, :2] == pytest.approx(2 * usual[:, :2], rel=1e-6)
    slow = offsets(line, line.points_per_character / 2, line.size)
    assert len(slow) == pytest.approx(2 * len(usual), rel=0.05)


def test_offsets_lead_back_to_the_points_and_the_pen_leaves_after_each_stroke() -> None:
    strokes = _arches()
    line = _measured(strokes)
    ink = _offsets(strokes)
    ends = np.flatnonzero(ink[:, 2])
    assert set(ink[:, 2].tolist()) == {0, 1}
    assert (len(ends), ends[-1]) == (3, len(ink) - 1)
    places = ink[:, :2].astype(float).cumsum(0) * line.size / UNITS_OF_SIZE
    for end, stroke in zip(ends, line.strokes, strict=True):
        assert places[end] == pytest.approx(stroke[-1], abs=1e-4)


def test_a_pen_that_stands_still_writes_nothing() -> None:
    paused = [np.repeat(stroke, 1 + 30 * (np.arange(len(stroke)) % 9 == 4), axis=0) for stroke in
              _arches()]  # fmt: skip
    assert sum(map(len, paused)) > 3 * sum(map(len, _arches()))
    # A long pause shifts the middle of the line, and its size with it, by a little.
    assert _measured(paused).points_per_character == _measured(_arches()).points_per_character
    assert len(_offsets(paused)) == len(_offsets(_arches()))


def test_tremor_is_averaged_between_the_ends_of_a_stroke() -> None:
    random = np.random.default_rng(0)
    shaken = [stroke + random.normal(0, 0.1, stroke.shape) for stroke in _arches(200)]
    line = _measured(shaken)
    ink = _offsets(shaken)[:, :2].astype(float)
    counts = np.diff(np.flatnonzero(_offsets(shaken)[:, 2]), prepend=-1)
    single = np.concatenate([
        np.stack([np.interp(np.linspace(0, len(s) - 1, n), range(len(s)), c) for c in s.T], axis=1)
        for s, n in zip(line.strokes, counts, strict=True)
    ])  # fmt: skip
    single *= UNITS_OF_SIZE / line.size
    ends = np.cumsum(counts) - 1
    assert ink.cumsum(0)[ends] == pytest.approx(single[ends], abs=1e-4)
    # How much one move differs from the next is tremor, in good part.
    rough = [np.diff(moves[1:], axis=0).std() for moves in (ink, np.diff(single, axis=0))]
    assert rough[0] < 0.9 * rough[1]


@pytest.mark.parametrize("degrees", [-10.0, -3.0, 3.0, 10.0])
def test_a_long_line_is_turned_until_it_is_level(degrees: float) -> None:
    angle = np.radians(degrees)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    turned = [stroke @ turn for stroke in _arches()]
    assert abs(turned[-1][-1, 1]) > 3  # of a line 62 wide
    for before, after in zip(_arches(), level(turned), strict=True):
        assert after == pytest.approx(before, abs=0.3)


def test_a_line_that_climbs_is_as_large_and_as_wide_as_it_is_when_level() -> None:
    angle = np.radians(10)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    line, level_ = _measured([stroke @ turn for stroke in _arches()]), _measured(_arches())
    assert line.size == pytest.approx(level_.size, rel=0.02)
    assert line.advance == pytest.approx(level_.advance, rel=0.01)


@pytest.mark.parametrize("degrees", [-40.0, -20.0, 16.0, 30.0, 40.0])
def test_a_line_as_steep_as_is_allowed_is_turned_nearly_level(degrees: float) -> None:
    angle = np.radians(degrees)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    turned = [stroke @ turn for stroke in _arches()]
    assert np.concatenate(level(turned)).tolist() == np.concatenate(turned).tolist()
    ends = level(turned, steepest=1.0)[-1][-1] - level(turned, steepest=1.0)[0][0]
    assert abs(np.degrees(np.arctan2(ends[1], ends[0]))) < 1.5


@pytest.mark.parametrize(
    "stroke",
    [
        [[0.0, 0.0], [1.0, 3.0], [2.0, 0.2], [3.0, 3.0]],  # too short to say
        [[0.0, 0.0], [3.0, 3.0], [6.0, 0.5], [9.0, 3.0]],  # as short, though it is a word
        [[0.0, 0.0], [0.0, 5.0], [0.0, 2.0]],  # straight up
        [[0.0, 0.0], [10.0, 5.0], [20.0, 10.0]],  # too steep for a line of writing
    ],
)
def test_what_does_not_say_how_it_climbs_is_left_as_it_is(stroke: list[list[float]]) -> None:
    (same,) = level([np.array(stroke)])
    assert same.tolist() == stroke


@pytest.mark.parametrize("tremor", [0.0, 1e-8])
def test_a_flat_line_is_as_large_as_it_is_wide(tremor: float) -> None:
    line = _measured([np.array([[0.0, 2.0], [15.0, 2.0 + tremor], [30.0, 2.0]])], "-")
    assert line.size == pytest.approx(30)
    assert np.isfinite(offsets(line, line.points_per_character, line.size)).all()


@pytest.mark.parametrize(
    "strokes",
    [
        [],
        [[[5.0, 5.0]]],
        [[[5.0, 5.0], [5.0, 5.0]], [[5.0, 5.0]]],
        [[[5.0, 5.0], [5.0 + 1e-7, 5.0]]],
        [[[0.0, 0.0], [np.nan, 1.0]]],
        [[[0.0, 0.0], [np.inf, 1.0]]],
    ],
    ids=["nothing", "a point", "one place", "a hair", "nan", "inf"],
)
def test_what_has_no_ink_is_no_line(strokes: list[list[list[float]]]) -> None:
    assert measure([np.array(s) for s in strokes], "a") is None
    with pytest.raises(InvalidRequest, match="no line in it") as refusal:
        offsets_of([[(x, y) for x, y in stroke] for stroke in strokes], "a")
    assert refusal.value.param == "style"


def test_strokes_without_a_point_change_nothing() -> None:
    first, *rest = _arches()
    assert (_offsets([first, np.zeros((0, 2)), *rest]) == _offsets(_arches())).all()


def test_a_callers_strokes_are_those_of_training_upside_down() -> None:
    assert _sent(_arches()).tobytes() == _offsets(_arches()).tobytes()


def test_a_line_too_small_to_be_meant_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no line in it"):
        _sent([stroke * 1e-5 for stroke in _arches()])
    assert len(_sent([stroke * 1e-3 for stroke in _arches()]))


@pytest.mark.parametrize(("points", "fits"), [(79, False), (80, True)])
def test_ink_with_too_few_points_for_its_text_is_refused(points: int, fits: bool) -> None:
    """By a number that is not the limit, however close to it."""
    stroke = [np.array([[x, x % 2] for x in range(points)], float)]
    if fits:
        assert len(_sent(stroke, "i" * 40)) > 0
        return
    with pytest.raises(InvalidRequest, match=r"1\.9 points a character .* makes 2 or more"):
        _sent(stroke, "i" * 40)


def test_a_jump_on_a_callers_page_is_no_longer_than_the_model_knows() -> None:
    first, *rest = _arches()
    far = [first, *(_moved(stroke, 3000.0) for stroke in rest)]
    assert np.abs(_offsets(far)[:, :2]).max() > LONGEST_OFFSET
    assert np.abs(_sent(far)[:, :2]).max() == LONGEST_OFFSET
