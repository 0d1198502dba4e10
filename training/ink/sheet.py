"""A contact sheet: some lines of pen data drawn with the text they are said to be."""

import random
from collections.abc import Sequence
from pathlib import Path

import matplotlib

from contract.files import printable
from training.ink.line import Line
from training.pictures import save_figure

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes

_LINES = 24
_COLUMNS = 2
_SEED = 0


def plot_sheet(lines: Sequence[Line], image: Path, *, title: str) -> None:
    """Write an image of up to 24 lines, picked at random but always the same, in two columns."""
    picked = random.Random(_SEED).sample(list(lines), min(_LINES, len(lines)))
    rows = max(1, -(-len(picked) // _COLUMNS))
    figure, table = pyplot.subplots(
        rows, _COLUMNS, figsize=(14, 1.3 * rows + 0.6), dpi=100, squeeze=False, layout="constrained"
    )
    for axes in table.flat:
        axes.set_axis_off()
    for axes, line in zip(table.flat, picked, strict=False):
        _draw(line, axes)
    figure.suptitle(printable(title), parse_math=False)
    save_figure(figure, image)
    pyplot.close(figure)


def _draw(line: Line, axes: Axes) -> None:
    for stroke in line.strokes:
        # A pen that only touches the paper leaves a dot, which a line of one point does not.
        marker = "o" if len(stroke) == 1 else ""
        axes.plot(*stroke.T, color="0.1", linewidth=0.9, marker=marker, markersize=1.5)
    axes.set_aspect("equal", adjustable="datalim")
    # As an ASCII literal, since a label may hold what no font has; and a dollar is no formula.
    label = f"{line.text!a}   {line.source}, writer {ascii(line.writer)[1:-1]}"
    axes.set_title(label, y=-0.2, fontsize=7, color="0.35", parse_math=False)
