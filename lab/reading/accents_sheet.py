"""A sheet of lines with accents, a row of every language."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import matplotlib
import numpy as np
from numpy.typing import NDArray

from service.ink.pen import strokes

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes

_INK, _MARKS = "#1c2a4a", "#b03a2e"
_ACROSS = 2


class Drawn(Protocol):
    """Points `(N, 3)` of a line's base letters and of its marks."""

    @property
    def letters(self) -> NDArray[np.float64]: ...

    @property
    def marks(self) -> NDArray[np.float64]: ...


def plot_accents(lines: Mapping[str, Sequence[Drawn]], image: Path) -> None:
    """Write an image with the first lines of each language, their marks in another colour."""
    figure, table = pyplot.subplots(
        len(lines), _ACROSS, figsize=(10, 0.75 * len(lines)), dpi=100, squeeze=False
    )
    figure.subplots_adjust(0.01, 0, 1, 1, 0.02, 0)
    for number, (row, (language, some)) in enumerate(zip(table, lines.items(), strict=True)):
        # Other hands in each language.
        for place, axes in enumerate(row):
            axes.axis("off")
            _draw(axes, some[(number + place * len(some) // _ACROSS) % len(some)])
        row[0].text(0, 0.95, language, fontsize=8, color="gray", transform=row[0].transAxes)
    figure.savefig(image)
    pyplot.close(figure)


def _draw(axes: Axes, line: Drawn) -> None:
    for points, color in ((line.letters, _INK), (line.marks, _MARKS)):
        for stroke in strokes(points):
            axes.plot(stroke[:, 0], -stroke[:, 1], color=color, linewidth=1.4)
    axes.set_aspect("equal", anchor="W")
