"""A contact sheet: every character as the pen wrote it, cut out of its line, neighbours grey."""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from numpy.typing import NDArray
from PIL import Image

from training.figures import GREY, SMALL_PT, pyplot
from training.pictures import save_picture

SAMPLES = 6  # of each character
_COLUMNS = 3
_BESIDE_UNITS, _BELOW_UNITS, _ABOVE_UNITS = 7.0, 4.5, 8.5  # of a sample, about its middle and line
_GAP_UNITS, _COLUMN_GAP_UNITS = 1.0, 5.0
_LABEL_UNITS = 12.0
_PX_PER_UNIT = 2.58  # so that the sheet is as wide as it is shown
_GREYS = 12


@dataclass(frozen=True, slots=True)
class Sample:
    """A line of ink `points (N, 3)`, in units with y up, and which of them `own (N,)` are of the
    character that is shown."""

    points: NDArray[np.float64]
    own: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Shown:
    """A character, the share of it that is read right, and some samples."""

    character: str
    right: float
    samples: Sequence[Sample]


def plot_glyphs(shown: Sequence[Shown], image: Path) -> None:
    """Write a PNG with a cell for each character, in columns."""
    rows = -(-len(shown) // _COLUMNS)
    sample = np.array([2 * _BESIDE_UNITS, _BELOW_UNITS + _ABOVE_UNITS]) + _GAP_UNITS
    cell = np.array([_LABEL_UNITS + SAMPLES * sample[0] + _COLUMN_GAP_UNITS, sample[1]])
    size = cell * (_COLUMNS, rows)
    figure = pyplot.figure(figsize=tuple(size * _PX_PER_UNIT / 100), dpi=100)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, size[0]), ylim=(-size[1], 0))
    axes.set_axis_off()
    for number, one in enumerate(shown):
        column, row = divmod(number, rows)
        corner = cell * (column, -row)
        _label(axes, one, corner)
        for place, ink in enumerate(one.samples[:SAMPLES]):
            right = _LABEL_UNITS + (place + 0.5) * sample[0]
            middle = corner + np.array([right, -_ABOVE_UNITS])
            _draw(axes, ink, middle)
    with BytesIO() as file:
        figure.savefig(file, format="png")
        save_picture(Image.open(file).convert("L").quantize(_GREYS), image)
    pyplot.close(figure)


def _label(axes: Axes, one: Shown, corner: NDArray[np.float64]) -> None:
    x, y = corner[0] + 1.0, corner[1] - _ABOVE_UNITS
    axes.text(x, y, one.character, fontsize=11, family="monospace", parse_math=False)
    axes.text(
        x, y - 4.2, f"{100 * one.right:.0f}%", fontsize=SMALL_PT, color=GREY, parse_math=False
    )


def _draw(axes: Axes, ink: Sample, middle: NDArray[np.float64]) -> None:
    """The part of a line about its own points, which are black, its left and right cut off."""
    places = ink.points[:, :2]
    own = places[ink.own]
    if not len(own):
        return
    shift = np.array([(own[:, 0].min() + own[:, 0].max()) / 2, 0.0])
    near = np.abs(places[:, 0] - shift[0]) <= _BESIDE_UNITS
    near &= (places[:, 1] >= -_BELOW_UNITS) & (places[:, 1] <= _ABOVE_UNITS)
    joined = near[1:] & near[:-1] & (ink.points[:-1, 2] < 0.5)
    segments = np.stack([places[:-1], places[1:]], axis=1) - shift + middle  # (N - 1, 2, 2)
    # The segment to a point is of the character the point is of.
    for of_own, color, width in ((False, "0.75", 0.7), (True, "black", 1.0)):
        some = segments[joined & (ink.own[1:] == of_own)]
        axes.add_collection(LineCollection(list(some), colors=color, linewidths=width))
