"""Isolated marks of UNIPEN's category 1d as ink, to be set among the words of any writer.

A form has a box for every mark: it says how large its writer makes it beside figures and capitals,
and nothing of its height over a line, which is much the same in every hand and stands here.
"""

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
_LEAST, _MOST = 0.5, 1.7  # of the extent that is typical of a mark


def is_mark(ink: Ink) -> bool:
    """Whether ink is an isolated mark; prepared lines never are."""
    return len(ink.text) == 1 and not ink.text.isalnum()


def read_marks(folder: UnipenFolder, tally: Tally) -> list[Ink]:
    """Every mark that is new ink, in the size of its writer; the rest is counted in `tally`."""
    figures = [line for c in ("1a", "1b") for line in folder.glyphs(c, _SOURCES, Tally())]
    heights = _medians((line.writer, _extent(line)) for line in figures)
    paces = _medians((line.source, _points(line)) for line in figures)
    found = []
    for line in folder.glyphs("1d", _SOURCES, tally):
        if reason := _unfit(line, heights):
            tally.skip(reason, _name(line))
        else:
            found.append((line, _extent(line) / heights[line.writer]))
    typical = _medians((line.text, share) for line, share in found)
    generator = np.random.default_rng(0)
    inks = []
    for line, share in found:
        middle = _MIDDLES[line.text] + generator.normal(0, _UNEVEN)
        if _LEAST <= share / typical[line.text] <= _MOST:
            inks.append(_ink(line, _CAPITALS / heights[line.writer], paces[line.source], middle))
            tally.kept += 1
        else:
            tally.skip("a mark too large or too small for what it is", _name(line))
    return inks


def _ink(line: Line, scale: float, points_per_character: float, middle: float) -> Ink:
    measured = measure(line.strokes, line.text)
    assert measured is not None, "a mark that has an extent"
    moves = offsets(measured, points_per_character, UNITS_OF_SIZE / scale)
    heights = moves[:, 1].cumsum()
    moves[0, 1] += middle - (heights.max() + heights.min()) / 2
    advance = float(moves[:, 0].cumsum().max())
    return Ink(line.text, moves, advance, line.writer, line.source)


def _unfit(line: Line, heights: dict[str, float]) -> str | None:
    if line.text not in _MIDDLES:
        return "a mark that lines have enough of"
    if line.writer not in heights:
        return "a mark of a writer without figures"
    if line.text == ")" and len(line.strokes) > 1:
        return "a bracket and what is not of it"
    return None if _extent(line) else "no ink"


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
