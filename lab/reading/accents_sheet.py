"""A sheet of lines with accents, a row of every language."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from service.ink.pen import strokes
from training.figures import DPI, GREY, WIDTH_IN, pyplot, save

_LANGUAGES = {
    "deu": "German", "fra": "French", "spa": "Spanish", "ita": "Italian", "por": "Portuguese",
    "swe": "Swedish", "dan": "Danish",
}  # fmt: skip
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
        len(lines), _ACROSS, figsize=(WIDTH_IN, 0.65 * len(lines)), dpi=DPI, squeeze=False
    )
    figure.subplots_adjust(0.1, 0, 1, 1, 0.02, 0)
    for number, (row, (language, some)) in enumerate(zip(table, lines.items(), strict=True)):
        # Other hands in each language.
        for place, axes in enumerate(row):
            axes.axis("off")
            _draw(axes, some[(number + place * len(some) // _ACROSS) % len(some)])
        row[0].text(
            -0.02, 0.5, _LANGUAGES[language], color=GREY, ha="right", va="center",
            transform=row[0].transAxes,
        )  # fmt: skip
    save(figure, image)


def _draw(axes: Axes, line: Drawn) -> None:
    for points, color in ((line.letters, _INK), (line.marks, _MARKS)):
        for stroke in strokes(points):
            axes.plot(stroke[:, 0], -stroke[:, 1], color=color, linewidth=1.4)
    axes.set_aspect("equal", anchor="W")
