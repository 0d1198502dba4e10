"""A contact sheet: real ink beside the same text as the model wrote it, with what was read."""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import matplotlib

from lab.legibility.reading import Offsets, errors, picture
from training.pictures import save_figure

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class Shown:
    """A text, its ink by a person and by the model, and what was read in either."""

    text: str
    real: Offsets
    generated: Offsets
    real_reading: str
    generated_reading: str


def plot_legibility(lines: Sequence[Shown], image: Path) -> None:
    """Write an image with a row for each text."""
    figure, table = pyplot.subplots(
        len(lines), 2, figsize=(14, 1.3 * len(lines) + 0.5), dpi=90, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for (left, right), line in zip(table, lines, strict=True):
        _draw(left, line.real, line.text, line.real_reading)
        _draw(right, line.generated, line.text, line.generated_reading)
    figure.suptitle("the same texts by a person (left) and by the model, bias 1 (right)")
    save_figure(figure, image)
    pyplot.close(figure)


def _draw(axes: Axes, ink: Offsets, text: str, reading: str) -> None:
    axes.imshow(pyplot.imread(BytesIO(picture(ink)), format="png"))
    axes.set_anchor("W")
    axes.set_axis_off()
    rate = errors(text, reading).rate
    # As ASCII literals, since what is read may hold what no font has; and a dollar is no formula.
    label = f"{text!a}\nread {reading!a}, CER {rate:.2f}"
    axes.set_title(label, loc="left", fontsize=8, color="0.35", parse_math=False)
