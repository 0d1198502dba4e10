"""Ink of several lines told apart: which strokes of a page are whose.

People write from left to right and from the top down, and go back for bars, dots and a heading. A
line ends where the pen comes back to the left and stays below what stands there. How far below is
judged in x-heights, of which a line takes five, beside the ink that is near: hands drift and lines
climb.
Shapes: n points of a stroke, all y up, in any unit.
"""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from contract.strokes import Points

# Lengths are x-heights, ink is counted in samples.
_SAMPLE = 0.25
_MOST_SAMPLES = 50_000  # of all ink, twice what can be read: a scribble may be of any length
_KEPT = 4_000  # samples of a line, the latest: four times as long as lines are
_NEARBY = 40  # samples of a line that say where it is: two or three letters
_AHEAD = 12  # samples that the pen has to stay below for: a letter
_TREMOR = 0.25  # of the tall arcs: lower ones are no letters
_BELOW = 1.75  # the letters of a line may hang so far
_ITSELF = 0.9  # the first stroke alone, which may be the top of a capital
_INDENTED = 2.5  # for a pen that did not come back
_ABOVE = 2.2  # the dots of a line may stand so high
_HEADING = 3.0  # what stands so high above all lines is a line that was forgotten
_RETURN = 1.5  # a pen that comes back by less is at the same letter
_DEEPER = 0.8
_LETTERS = (24, 36, 48)  # samples of two letters, three and four
_WORD = 4.0  # how far right they go
_STEEPEST = 0.3  # a page that climbs more is drawn, not written
_DOT = 0.8
_STRAIGHT, _WIDTH = 1.3, 0.5  # times as long as wide, gaps left out that are so wide
_BESIDE = 4.0  # ink of a line that slopes may stand so far below what is beside it


class _Line:
    """A line so far: the numbers of its strokes, samples `(n, 2)` of its ink, and their height."""

    def __init__(self) -> None:
        self.strokes: list[int] = []
        self.ink = np.zeros((0, 2))
        self.height = 0.0

    def add(self, strokes: Sequence[int], ink: Points) -> None:
        """Take more strokes."""
        self.strokes.extend(strokes)
        self.ink = np.concatenate([self.ink, ink])[-_KEPT:]
        self.height = _middle(self.ink[:, 1])

    def over(self, ink: Points) -> float:
        """How far its nearest letters stand over some ink `(n, 2)`."""
        away = np.abs(self.ink[:, 0] - _middle(ink[:, 0]))
        nearest = np.argpartition(away, min(_NEARBY, len(away)) - 1)[:_NEARBY]
        return _middle(self.ink[nearest, 1]) - _middle(ink[:, 1])


def _middle(values: NDArray[np.float64]) -> float:
    """The median, of an even number the upper one: in a tenth of the time that numpy's takes."""
    half = len(values) // 2
    return float(np.partition(values, half)[half])


def lines_of(strokes: Sequence[Points]) -> list[list[Points]]:
    """Strokes `(n, 2)` in the order they were written, line by line in the order of the lines; ink
    of one line as it is."""
    lines = list[_Line]()
    samples = _level(_sampled(strokes))
    for number, ink in enumerate(samples):
        rest = samples[number:]
        ahead = _beginning(rest)
        if not lines or _begins(lines[-1], rest, ahead) or _heads(lines, ink, ahead):
            lines.append(_Line())
        _of(lines, ink).add([number], ink)
    ordered = sorted(_whole(lines), key=lambda line: -line.height)
    return [[strokes[number] for number in sorted(line.strokes)] for line in ordered]


def _of(lines: Sequence[_Line], ink: Points) -> _Line:
    """Which of the lines a stroke belongs to: the last, if it is not far above that."""
    last = lines[-1]
    if not len(last.ink) or last.over(ink) > -_ABOVE:
        return last
    height = _middle(ink[:, 1]) - _ABOVE / 2  # of the letters: most that is put in later is a dot
    return min(lines, key=lambda line: abs(line.height - height))


def _begins(line: _Line, strokes: Sequence[Points], ahead: Points) -> bool:
    """Whether the first of the strokes that follow a line begins another; `ahead` is their
    beginning."""
    first = strokes[0]
    below, stays = line.over(first), line.over(ahead)
    if first[:, 0].min() >= line.ink[:, 0].max():
        return min(below, stays) > _INDENTED
    if below <= _ITSELF or stays <= _BELOW:
        return False
    # The dot of a mark is below too; the pen comes back after it.
    comes_back = len(strokes) > 1 and strokes[1][0, 0] < first[:, 0].min() - _RETURN
    return not (comes_back and line.over(strokes[1]) > below + _DEEPER)


def _heads(lines: Sequence[_Line], ink: Points, ahead: Points) -> bool:
    """Whether a stroke, with what is ahead of it, begins a line above all others."""
    top = max(lines, key=lambda line: line.height)
    return len(ahead) >= _AHEAD and max(top.over(ink), top.over(ahead)) < -_HEADING


def _beginning(strokes: Sequence[Points]) -> Points:
    """The first of some strokes, and as many more as make a letter."""
    lengths = accumulate(map(len, strokes))
    enough = next((i for i, length in enumerate(lengths, 1) if length >= _AHEAD), len(strokes))
    return np.concatenate(strokes[:enough])


def _whole(lines: Sequence[_Line]) -> list[_Line]:
    """Lines, those put back together of which one is a part of the other."""
    whole = list[_Line]()
    for line in lines:
        if whole and _is_part(whole[-1], line):
            whole[-1].add(line.strokes, line.ink)
        else:
            whole.append(line)
    return whole


def _is_part(above: _Line, below: _Line) -> bool:
    """Whether it is a dot or a bar, or goes on beside what stands above."""
    if (np.ptp(below.ink, axis=0) < _DOT).all() or _is_bar(above.ink) or _is_bar(below.ink):
        return True
    if below.ink[:, 1].max() < above.ink[:, 1].min() or abs(above.over(below.ink)) > _BESIDE:
        return False
    over = np.count_nonzero(above.ink[:, 0] > below.ink[:, 0].min())
    under = np.count_nonzero(below.ink[:, 0] < above.ink[:, 0].max())
    return bool(min(over, under) < _NEARBY)


def _is_bar(ink: Points) -> bool:
    """Whether the pen went straight where it wrote: nobody writes a letter so."""
    along = ink[:, 0] - ink[:, 0].min()  # or it would depend on where on the page it is
    wide = _WIDTH * len(np.unique(along // _WIDTH))
    return len(ink) * _SAMPLE < _STRAIGHT * wide


def _sampled(strokes: Sequence[Points]) -> list[Points]:
    """The strokes in x-heights, as points evenly apart."""
    paths = [np.hypot(*np.diff(stroke, axis=0).T).cumsum() for stroke in strokes]
    length = sum(path[-1] for path in paths if len(path))
    height = max(_x_height(strokes), length / (_MOST_SAMPLES * _SAMPLE)) or 1.0
    sampled = []
    for stroke, path in zip(strokes, paths, strict=True):
        run = np.concatenate([[0.0], path]) / height
        at = np.linspace(0, run[-1], int(run[-1] / _SAMPLE) + 2)
        sampled.append(np.stack([np.interp(at, run, axis) for axis in (stroke / height).T], axis=1))
    return sampled


def _x_height(strokes: Sequence[Points]) -> float:
    """The median height of the arcs of all strokes: most letters are of one."""
    heights = np.concatenate([np.zeros(0), *(_arcs(stroke[:, 1]) for stroke in strokes)])
    if not len(heights):
        return 0.0
    return _middle(heights[heights >= _TREMOR * np.quantile(heights, 0.9)])


def _arcs(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far a stroke of heights `(n,)` goes up or down before it turns."""
    moves = np.diff(y)
    moves = moves[moves != 0]
    turns = np.flatnonzero(np.diff(np.sign(moves))) + 1
    return np.abs([part.sum() for part in np.split(moves, turns)]) if len(moves) else moves


def _level(strokes: Sequence[Points]) -> list[Points]:
    """The strokes turned so that the pen goes level where it goes to the right."""
    every = np.concatenate([np.zeros((0, 2)), *strokes])
    moves = np.concatenate([every[lag:] - every[:-lag] for lag in _LETTERS])
    moves = moves[moves[:, 0] > _WORD]
    climb = _middle(moves[:, 1] / moves[:, 0]) if len(moves) else 0.0
    if abs(climb) > _STEEPEST:
        return list(strokes)
    turn = np.array([[1.0, -climb], [climb, 1.0]]) / np.hypot(1.0, climb)
    return [stroke @ turn for stroke in strokes]
