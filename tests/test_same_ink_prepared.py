"""Ink that the service reads is prepared as ink that was trained on: one code, one result.

A caller is a source of one line. So a line prepared alone for training and the same strokes sent
by a caller are the same offsets, unless the pen rests in them, and how a caller's page is turned or
scaled is no part of a hand.
"""

from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from contract.alphabets import WINDOW_SYMBOLS, encode
from contract.golden import Arrays
from contract.strokes import level
from service.artifact import Artifact, load_artifact
from service.engine.runners import ScanRunner
from service.engine.runtime import Runtime
from service.ink.hands import offsets_of
from training.ink.line import Line, Tally
from training.ink.prepare import prepare
from training.ink.synthetic import synthetic_lines

_PEN = Path(__file__).parents[1] / "artifacts" / "handwriting"
_LINES = 200
_TURNED = 40
_SHOWN = 5  # of which the hand is read by the network


@cache
def _lines(count: int) -> list[Line]:
    """Lines of invented writers, each prepared alone without a complaint."""
    able = (line for line in synthetic_lines(2 * _LINES, 5) if len(prepare([line], Tally())) == 1)
    return list(islice(able, count))


def _sent(line: Line, turn: float = 0.0, scale: float = 1.0) -> NDArray[np.float32]:
    """Offsets of a line as a caller sends it: in px, y down, on a page turned by degrees."""
    angle = np.radians(turn)
    matrix = scale * np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    strokes = [(stroke.astype(np.float64) @ matrix) * (1, -1) for stroke in line.strokes]
    return offsets_of([[(x, y) for x, y in s.tolist()] for s in strokes], line.text)


def _trained(line: Line) -> NDArray[np.float32]:
    (ink,) = prepare([line], Tally())
    return ink.offsets


@pytest.mark.long
def test_two_hundred_lines_are_the_same_offsets_for_training_and_from_a_caller() -> None:
    assert len(_lines(_LINES)) == _LINES
    different = [
        line.text for line in _lines(_LINES) if _trained(line).tobytes() != _sent(line).tobytes()
    ]
    assert different == []


@pytest.mark.long
def test_a_line_that_climbs_a_little_is_levelled_as_in_training() -> None:
    for line in _lines(_TURNED)[:40]:
        turned = np.radians(3)
        matrix = np.array([[np.cos(turned), np.sin(turned)], [-np.sin(turned), np.cos(turned)]])
        strokes = tuple((s.astype(np.float64) @ matrix).astype(np.float32) for s in line.strokes)
        climbing = Line(line.text, strokes, line.writer, line.source, line.points_per_second)
        if len(prepare([climbing], Tally())) == 1:
            assert _trained(climbing).tobytes() == _sent(climbing).tobytes()


@pytest.mark.parametrize("scale", [0.25, pytest.param(4.0, marks=pytest.mark.long)])
def test_size_on_the_page_is_no_part_of_a_hand(scale: float) -> None:
    for line in _lines(_TURNED)[:20]:
        assert np.array_equal(_sent(line), _sent(line, scale=scale))


def test_a_word_too_short_to_say_is_not_turned() -> None:
    word = [np.array([[0.0, 0.0], [1.0, 3.0], [2.0, 0.2], [3.0, 3.0], [3.5, 1.0]])]
    assert level(word)[0].tolist() == word[0].tolist()


@pytest.mark.parametrize("turn", [-8.0, pytest.param(8.0, marks=pytest.mark.long)])
def test_a_turned_line_is_the_level_one(turn: float) -> None:
    """However long it is: a tilted line is higher than it is when level."""
    for line in _lines(_TURNED):
        level_one, turned = _sent(line), _sent(line, turn)
        if np.ptp(level_one[:, 0].cumsum()) < 6 * np.ptp(level_one[:, 1].cumsum()):
            continue  # too short to say how it climbs
        ends = [offsets[:, :2].sum(0) for offsets in (level_one, turned)]
        # By less than half a degree, where it came from 8.
        assert abs(ends[0][1] - ends[1][1]) < 0.01 * ends[0][0] + 0.5


@cache
def _pen() -> tuple[Artifact, ScanRunner]:
    artifact = load_artifact(_PEN)
    return artifact, ScanRunner(artifact, Runtime("cpu", "scan", 1, slots=1))


@cache
def _level_hands(number: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """That of a line that is shown, and that of the same strokes a fifth wider: a hand that differs
    a little."""
    line = _shown()[number]
    wider = _sent(line) * np.array([1.2, 1, 1], np.float32)
    return _hand(_sent(line), line.text), _hand(wider, line.text)


def _shown() -> list[Line]:
    return [line for line in _lines(_TURNED) if len(line.text) >= 24][:_SHOWN]


def _hand(offsets: NDArray[np.float32], text: str) -> NDArray[np.float32]:
    """The recurrent state after reading the ink, the hidden units alone, `(H,)`."""
    artifact, runner = _pen()
    runner.load(0, artifact.initial_state())
    symbols = np.zeros((1, WINDOW_SYMBOLS), np.int64)
    symbols[0, : len(text)] = encode(text)
    steps: Arrays = {
        "forced": offsets[:, None],
        "force": np.ones((len(offsets), 1), bool),
        "uniform": np.full((len(offsets), 1), 0.5, np.float32),
        "normal": np.zeros((len(offsets), 1, 2), np.float32),
    }
    row = {"text": symbols, "length": np.array([len(text)]), "bias": np.zeros(1, np.float32)}
    runner.run([0], steps, row, filtered=False)
    state = runner.read(0)
    return np.concatenate([state["first_h"], state["h0"]])


@pytest.mark.parametrize(
    ("turn", "scale"),
    [
        pytest.param(-8.0, 1.0, marks=pytest.mark.long), (8.0, 1.0),
        (0.0, 0.3), pytest.param(0.0, 4.0, marks=pytest.mark.long),
    ],
)  # fmt: skip
def test_a_turned_or_scaled_line_is_the_same_hand(turn: float, scale: float) -> None:
    """Its state is far nearer to the level one's than other hands of the same words are."""
    moved, apart = [], []
    for number, line in enumerate(_shown()):
        mine, wider = _level_hands(number)
        moved.append(np.abs(_hand(_sent(line, turn, scale), line.text) - mine).mean())
        apart.append(np.abs(wider - mine).mean())
    assert len(moved) == _SHOWN
    assert np.median(moved) < 0.5 * np.median(apart)
