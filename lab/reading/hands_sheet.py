"""A sheet of the stored hands, a sentence each."""

from pathlib import Path

import matplotlib
import numpy as np

from lab.legibility.write_ink import Hand, Pen
from lab.reading.shown import as_shown

matplotlib.use("Agg")
from matplotlib import pyplot

_SENTENCES = (
    "Quick zebras vex my dog; 4 jumped!",
    "Xavier paid $75.30 for a Quartz box?",
    "Even keel: the same numbers, always.",
    '"Zip it," she said & left (at 6:18).',
    "Jazz, wine and fox hunts by night",
    "What is served is what was trained",
    "My hands shake, but not my words...",
    "Kings [queens of 1066] why not #1 @ 5%",
)
_BIAS, _SEED = 1.0, 20161
_INK = "#1c2a4a"
_WIDTH = 640.0  # of a row, in px of a line as it is shown


def plot_hands(pen: Pen, hands: dict[str, Hand], image: Path) -> None:
    """Write an image with two hands in a row, each by its name."""
    texts = [_SENTENCES[i % len(_SENTENCES)] for i in range(len(hands))]
    inks = pen.write(texts, _BIAS, _SEED, list(hands.values()))
    rows = -(-len(hands) // 2)
    figure, table = pyplot.subplots(rows, 2, figsize=(12.4, 0.865 * rows), dpi=100, squeeze=False)
    figure.subplots_adjust(0.01, 0, 1, 0.96, 0.02, 0.1)
    for axes in table.flat:
        axes.axis("off")
    for axes, name, ink in zip(table.flat, hands, inks, strict=False):
        for stroke in as_shown(ink.offsets):
            axes.plot(*stroke.T, color=_INK, linewidth=1.6, solid_capstyle="round")
        middle = np.median(np.concatenate(as_shown(ink.offsets))[:, 1])
        box = axes.get_window_extent()
        half = _WIDTH * box.height / box.width / 2
        axes.set(xlim=(-20, _WIDTH - 20), ylim=(middle - half, middle + half))
        axes.set_title(name, loc="left", fontsize=8, color="gray", pad=1)
    figure.savefig(image)
    pyplot.close(figure)
