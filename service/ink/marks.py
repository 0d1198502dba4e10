"""Accents and the like, drawn at the letters of a line when it has been written, where people put
them: as large as the line's own letters, leaning as they lean.

The pen has written base letters, and its window tells which of their points belong to which.
Shapes: n points of a line, m of its marks: x and y in px, y down, and 1 where the pen leaves.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from service.ink import letters
from service.ink.letters import apart
from service.ink.measure import measure
from service.ink.owners import owners
from service.ink.pen import strokes
from service.ink.shapes import ABOVE, BELOW, CLOSING, CROSSED, HANGING, HOOK, Strokes

Points = NDArray[np.float64]
_GAP = 0.5  # from the top of a letter to the middle of its mark
_JOINS = (0.15, 0.85)  # of the points of a letter
_WIDEST_O = 1.1  # of its height
_TALLEST = 1.5  # of small letters, in heights of one
_NEXT = 16  # points from an apostrophe to its letter's first one
_RING = (0.4, 1.0)  # how large a degree is at least and at most, in heights of a small letter
_SMALL = frozenset("aceimnorsuvwxz")
_DOTTED = frozenset("ij")
_SMALL_UNITS = 2.5  # high, where a line has none of them
_STEEPEST = math.tan(math.radians(35))


@dataclass(frozen=True, slots=True)
class _Line:
    """A line as it was written: its small letters stand on y = `foot` and reach to `top`; `lean`
    is how far it goes right for each px up. By the place of the letter, where they are wanted,
    `dots` are the middles of those of its i and j, `apostrophes` the strokes of its '."""

    points: Points
    characters: NDArray[np.int64]
    top: float
    foot: float
    lean: float
    dots: Mapping[int, Points] = field(default_factory=dict)
    apostrophes: Mapping[int, Points] = field(default_factory=dict)

    @property
    def height(self) -> float:
        return self.foot - self.top


class LineMarks:
    """The marks of one line, which is followed while it is written; `px_per_unit` is the length of
    a unit of the model on the page."""

    def __init__(self, text: str, px_per_unit: float) -> None:
        self._text = text
        self._px = _SMALL_UNITS * px_per_unit
        self._has_marks = letters.bases(text) != text
        self._offsets: list[NDArray[np.float32]] = []
        self._points: list[Points] = []
        self._characters: list[NDArray[np.int64]] = []

    def follow(
        self, offsets: NDArray[np.float32], points: Points, characters: NDArray[np.int64]
    ) -> None:
        """The next n of the line: offsets `(n, 3)` as points `(n, 3)` on the page, and the
        character the window was at for each `(n,)`."""
        if self._has_marks:
            self._offsets.append(offsets)
            self._points.append(points)
            self._characters.append(characters)

    def drawn(self) -> Points:
        """The marks `(m, 3)` of the line as far as it has been written."""
        if not self._offsets:
            return np.zeros((0, 3))
        slant = measure(np.concatenate(self._offsets), len(self._text)).slant_degrees
        points, characters = np.concatenate(self._points), np.concatenate(self._characters)
        return compose(self._text, points, characters, slant, self._px)


def compose(
    text: str, points: Points, characters: NDArray[np.int64], slant_degrees: float, px: float
) -> Points:
    """The marks `(m, 3)` of a text whose base letters are `points (n, 3)`, given the window's
    character at each `(n,)`; `px` is the height of a small letter where the line has none. Letters
    that a line was cut off before have no marks."""
    begun = text[: characters.max() + 1] if len(points) else ""
    marked = [(place, *apart(letter)) for place, letter in enumerate(begun) if apart(letter)[1]]
    if not marked:
        return np.zeros((0, 3))
    line = _measured(text, points, owners(text, characters, points), slant_degrees, px)
    wanted = {base for _, base, _ in marked}
    if wanted & _DOTTED:
        line = replace(line, dots=_dots(line, begun))
    if "'" in wanted:
        line = replace(line, apostrophes=_apostrophes(line, begun))
    drawn = [stroke for place, base, marks in marked for stroke in _marks(line, place, base, marks)]
    ups = [np.arange(1, len(stroke) + 1)[:, None] == len(stroke) for stroke in drawn]
    return np.concatenate([np.hstack(pair) for pair in zip(drawn, ups, strict=True)])


def _measured(
    text: str, points: Points, characters: NDArray[np.int64], slant_degrees: float, px: float
) -> _Line:
    small = [points[characters == i, 1] for i, c in enumerate(letters.bases(text)) if c in _SMALL]
    small = [y for y in small if len(y) > 2]
    foot = float(np.median([y.max() for y in small])) if small else float(points[:, 1].max())
    # The upper quartile of a few points is not the dot of a letter before.
    height = foot - float(np.median([np.quantile(y, 0.1) for y in small])) if small else px
    height = min(max(height, px / 2), px * 2)
    lean = min(max(math.tan(math.radians(slant_degrees)), -_STEEPEST), _STEEPEST)
    return _Line(points, characters, foot - height, foot, lean)


def _dots(line: _Line, text: str) -> dict[int, Points]:
    """The middles of small strokes over the small letters, each of the i or j it is near to, by the
    place of that; no two letters have one dot, and the nearest two find each other first."""
    small = [
        stroke.mean(axis=0)
        for stroke in strokes(line.points)
        if np.ptp(stroke, axis=0).max() < 0.5 * line.height and stroke[:, 1].max() < line.top
    ]
    if not small:
        return {}
    bases = [(place, apart(letter)[0]) for place, letter in enumerate(text)]
    dotted = [(place, _ink(line, place, base)) for place, base in bases if base in _DOTTED]
    over = np.array([_over(line, ink) for _, ink in dotted])
    distances = np.hypot(*(over[:, None] - np.array(small)).transpose(2, 0, 1))
    found: dict[int, Points] = {}
    while distances.min() <= 1.2 * line.height:
        letter, dot = np.unravel_index(distances.argmin(), distances.shape)
        found[dotted[letter][0]] = small[dot]
        distances[letter], distances[:, dot] = np.inf, np.inf
    return found


def _apostrophes(line: _Line, text: str) -> dict[int, Points]:
    """The strokes `(k, 2)` of the apostrophes: of those high up and higher than wide, the one next
    to where the window came to the letter, which it may have left for the next one or, after
    figures, not come to. No two have one stroke, and the nearest find each other first."""
    firsts = {
        place: int(np.abs(line.characters - place).argmin())
        for place, letter in enumerate(text) if apart(letter)[0] == "'"
    }  # fmt: skip
    written, begin = dict[int, Points](), 0
    for stroke in strokes(line.points):
        upright = stroke[:, 0] + line.lean * stroke[:, 1]
        high = stroke[:, 1].max() < line.foot - line.height / 2
        if high and np.ptp(stroke[:, 1]) >= np.ptp(upright):
            written[begin] = stroke
        begin += len(stroke)
    pairs = sorted(
        (max(begin - first, first + 1 - begin - len(stroke), 0), place, begin)
        for place, first in firsts.items() for begin, stroke in written.items()
    )  # fmt: skip
    found: dict[int, Points] = {}
    for far, place, begin in pairs:
        if far < _NEXT and place not in found and begin in written:
            found[place] = written.pop(begin)
    # Where there is none, whatever the window was at.
    return {p: found.get(p, strokes(line.points[first:])[0]) for p, first in firsts.items()}


def _marks(line: _Line, place: int, base: str, marks: str) -> list[Points]:
    """The strokes `(k, 2)` of a letter's marks."""
    ink = _ink(line, place, base)
    foot = ink[:, 1].max()
    at, dot = _over(line, ink), line.dots.get(place)
    drawn = []
    for mark in marks:
        if mark == letters.BAR:
            drawn.append(_bar(line, base, ink))
        elif mark == letters.STEM:
            drawn.append(_stem(line, base, ink))
        elif mark in CROSSED:
            drawn += _across(line, ink, mark)
        elif mark == letters.DEGREE:
            drawn += _closing(line, place)
        elif mark in HANGING:
            drawn += _hanging(line, place, HANGING[mark])
        elif mark in BELOW:
            drawn += _shape(line, np.array([_at_height(line, ink, foot), foot]), BELOW[mark])
        else:
            here = at if dot is None else dot
            if dot is not None and mark == letters.DIAERESIS:
                other = dot + np.array([0.44 * line.height, 0])
                drawn += _shape(line, other, ABOVE[letters.DOT])
            else:
                drawn += _shape(line, here, ABOVE[mark])
            dot, at = None, here - np.array([0, _GAP * line.height])
    return drawn


def _ink(line: _Line, place: int, base: str) -> Points:
    """The points `(k, 2)` of a letter, k at least 1, without dots and bars of letters before."""
    own = line.points[np.abs(line.characters - place) == np.abs(line.characters - place).min(), :2]
    if base in _SMALL:
        # By its own foot: lines climb and sink, and what joins it to others may hang below.
        foot = np.quantile(own[:, 1], 0.9)
        kept = own[own[:, 1] > foot - _TALLEST * line.height]
        own = kept if len(kept) else own
    return own


def _over(line: _Line, ink: Points) -> Points:
    """The place of a mark over a letter."""
    y = ink[:, 1].min() - _GAP * line.height
    return np.array([_at_height(line, ink, y), y])


def _at_height(line: _Line, ink: Points, y: float) -> float:
    """Where the middle of a letter leans to at a height."""
    middle = float(ink[:, 1].min() + ink[:, 1].max()) / 2
    return _between(ink[:, 0]) + line.lean * (middle - y)


def _between(xs: Points) -> float:
    """The middle of a letter, whose first and last points may be strokes that join it to others."""
    return float(np.quantile(xs, _JOINS).mean())


def _bar(line: _Line, base: str, ink: Points) -> Points:
    """The stroke through ø, đ, ð and ł."""
    (left, top), (right, foot) = ink.min(axis=0), ink.max(axis=0)
    over = 0.15 * line.height
    if base in "oO":
        x, half = _between(ink[:, 0]), min(right - left, _WIDEST_O * (foot - top)) / 2 + over
        return np.array([[x + half, top - over], [x - half, foot + over]])
    # What joins a letter to others is not as high as its stem, nor is the bowl of a d.
    middle = (top + foot) / 2
    high = (top + max(min(line.top, foot), middle)) / 2
    stem = ink[ink[:, 1] <= high]
    y = high if base == "d" else middle
    x = np.median(stem[:, 0]) + line.lean * (np.median(stem[:, 1]) - y)
    crossed = _crossings(ink, y)
    if len(crossed):
        x = crossed.min() if base in "DL" else crossed[np.abs(crossed - x).argmin()]
    if base in "dD":
        return np.array([[x - 3 * over, y], [x + 2.5 * over, y]])
    return np.array([[x - 2 * over, y + over], [x + 2 * over, y - over]])


def _stem(line: _Line, base: str, ink: Points) -> Points:
    """The stroke that makes þ of p: its stem, as far over the bowl as a b's."""
    top, foot = ink[:, 1].min(), ink[:, 1].max()
    # Where nothing but the stem is: a p's below the line, a P's below its bowl.
    low = foot - (foot - top) / 4
    crossed = _crossings(ink, low)
    x = float(np.median(crossed)) if len(crossed) else float(ink[0, 0])
    begin, end = top + 0.2 * line.height, top - (0.8 if base == "P" else 0.9) * line.height
    return np.array([[x + line.lean * (low - y), y] for y in (begin, end)])


def _across(line: _Line, ink: Points, mark: str) -> list[Points]:
    """The strokes that make € of C, £ of L and ¥ of Y."""
    top, foot = ink[:, 1].min(), ink[:, 1].max()
    drawn, (shares, reach) = [], CROSSED[mark]
    for share in shares:
        y = top + share * (foot - top)
        crossed = _crossings(ink, y)
        x = float(crossed.min()) if len(crossed) else _at_height(line, ink, y)
        ends = (x - 0.35 * line.height, x + reach * line.height)
        drawn.append(np.array([[end, y] for end in ends]))
    return drawn + (_shape(line, ink[ink[:, 1].argmin()], HOOK) if mark == "£" else [])


def _hanging(line: _Line, place: int, shape: Strokes) -> list[Points]:
    """What hangs from the dot of ¿ and ¡, which the pen has written as an apostrophe."""
    dot = line.apostrophes[place]
    begin = dot[:, 1].max() + 0.3 * line.height
    foot = max(line.foot, begin + line.height / 2)
    high = (foot - begin) / line.height
    wide = max(high, 1.0)  # though the dot of a hand be long
    at = np.array([_at_height(line, dot, foot), foot])
    return _shape(line, at, [[(x * wide, y * high) for x, y in stroke] for stroke in shape])


def _closing(line: _Line, place: int) -> list[Points]:
    """What makes a ring of the apostrophe that the pen has written for °."""
    left = line.apostrophes[place]
    size = float(np.clip(np.ptp(left[:, 1]) / line.height, *_RING))
    return _shape(line, left[left[:, 1].argmin()], [[(x * size, y * size) for x, y in CLOSING]])


def _crossings(ink: Points, y: float) -> NDArray[np.float64]:
    """Where ink `(k, 2)` goes through a height."""
    above = ink[:, 1] < y
    changes = np.flatnonzero(above[1:] != above[:-1])
    (x0, y0), (x1, y1) = ink[changes].T, ink[changes + 1].T
    return np.asarray(x0 + (x1 - x0) * (y - y0) / (y1 - y0))


def _shape(line: _Line, at: Points, shape: Strokes) -> list[Points]:
    """Strokes about a place, in px, as large and as slanted as the line."""
    slanted = np.array([[1.0, 0.0], [line.lean, -1.0]]) * line.height
    return [at + np.array(stroke) @ slanted for stroke in shape]
