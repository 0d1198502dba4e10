"""Isolated characters of UNIPEN's categories 1a to 1d as ink, to be set among the words of any
writer: marks, and figures and letters that words have few of.

A form has a box for every character: it says how large its writer makes it beside figures and
capitals, and nothing of its height over a line, which is much the same in every hand and stands
here.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from statistics import median

import numpy as np

from contract.strokes import UNITS_OF_SIZE, measure, offsets
from training.ink.line import Line, Tally
from training.ink.prepare import Ink
from training.ink.unipen import UnipenFolder

# The other sources are ink that stands in words and lines as well; in ibm strokes are missing.
_SOURCES = ("aga", "gmd", "imp", "pri", "syn", "tos", "uqb", "val")
# How high over the baseline the middle of a mark is, in units, with capitals 5.2 high.
_MIDDLES = (
    dict.fromkeys("!#$%&/?@\\", 2.3)
    | dict.fromkeys("()[]{}|", 2.0)
    | dict.fromkeys("+-<=>~", 1.6)
    | dict.fromkeys("\"'^`", 4.4)
    | {"*": 3.0, ":": 1.0, ";": 0.6, "_": -1.2}
)
_CAPITALS = 5.2
_UNEVEN = 0.4  # the standard deviation of a height, in units
# These stand on the baseline. Of other letters words have enough.
_ON_THE_LINE = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZvxz"
_UNEVEN_LINE = 0.2
_LEAST, _MOST = 0.5, 1.7  # of the extent that is typical of a character


def is_mark(ink: Ink) -> bool:
    """Whether ink is an isolated mark; prepared lines never are."""
    return ink.isolated and not ink.text.isalnum()


def is_figure(ink: Ink) -> bool:
    """Whether ink is an isolated figure or letter; a word of one character is none."""
    return ink.isolated and ink.text.isalnum()


def read_isolated(folder: UnipenFolder, tally: Tally, figures: bool = False) -> list[Ink]:
    """Every mark that is new ink, in the size of its writer, and after them the figures and letters
    if they are wanted; the rest is counted in `tally`."""
    known = [line for c in ("1a", "1b") for line in folder.glyphs(c, _SOURCES, Tally())]
    heights = _medians((line.writer, _extent(line)) for line in known)
    paces = _medians((line.source, _points(line)) for line in known)
    found = []
    for category in ("1d", "1a", "1b", "1c") if figures else ("1d",):
        for line in folder.glyphs(category, _SOURCES, tally):
            if reason := _unfit(line, heights, paces):
                tally.skip(reason, _name(line))
            else:
                found.append((line, _extent(line) / heights[line.writer]))
    typical = _medians((line.text, share) for line, share in found)
    generator = np.random.default_rng(0)
    inks = []
    for line, share in found:
        uneven = float(generator.normal())
        if _LEAST <= share / typical[line.text] <= _MOST:
            scale = _CAPITALS / heights[line.writer]
            inks.append(_ink(line, scale, paces[line.source], uneven))
            tally.kept += 1
        else:
            tally.skip("a character too large or too small for what it is", _name(line))
    return inks


def _ink(line: Line, scale: float, points_per_character: float, uneven: float) -> Ink:
    measured = measure(line.strokes, line.text)
    assert measured is not None, "a character that has an extent"
    moves = offsets(measured, points_per_character, UNITS_OF_SIZE / scale)
    heights = moves[:, 1].cumsum()
    if line.text in _MIDDLES:
        middle = (heights.max() + heights.min()) / 2
        moves[0, 1] += _MIDDLES[line.text] + _UNEVEN * uneven - middle
    else:
        moves[0, 1] += _UNEVEN_LINE * uneven - heights.min()
    advance = float(moves[:, 0].cumsum().max())
    return Ink(line.text, moves, advance, line.writer, line.source, isolated=True)


def _unfit(line: Line, heights: dict[str, float], paces: dict[str, float]) -> str | None:
    if line.text not in _MIDDLES and (not line.text or line.text not in _ON_THE_LINE):
        return "a character that lines have enough of"
    # What should be figures may be dots, which say nothing of how large or how fast a writer is.
    if not (0 < heights.get(line.writer, 0.0) < math.inf and paces[line.source] > 0):
        return "a mark of a writer without figures"
    if line.text == ")" and len(line.strokes) > 1:
        return "a bracket and what is not of it"
    if line.text == "|" and len(line.strokes) > 1:
        return "a bar that is broken"  # as keyboards of the time showed it
    return None if measure(line.strokes, line.text) else "no ink"


def _extent(line: Line) -> float:
    """The height or the width of a character, whichever is more, as its tablet has it."""
    every = [stroke for stroke in line.strokes if len(stroke)]
    return float(np.ptp(np.concatenate(every), axis=0).max()) if every else 0.0


def _points(line: Line) -> float:
    measured = measure(line.strokes, line.text)
    return measured.points_per_character if measured else 0.0


def _medians(pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    groups = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return {key: median(values) for key, values in groups.items()}


def _name(line: Line) -> str:
    return f"{line.writer} {line.text!r}"
