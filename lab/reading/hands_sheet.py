"""A sheet of the stored hands, a sentence each."""

from pathlib import Path

import numpy as np

from lab.legibility.write_ink import Hand, Pen
from lab.reading.shown import as_shown
from training.figures import DPI, GREY, WIDTH_IN, pyplot, save

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
    figure, table = pyplot.subplots(rows, 2, figsize=(WIDTH_IN, 0.7 * rows), dpi=DPI, squeeze=False)
    figure.subplots_adjust(0.01, 0, 1, 0.94, 0.02, 0.3)
    for axes in table.flat:
        axes.axis("off")
    for axes, name, ink in zip(table.flat, hands, inks, strict=False):
        for stroke in as_shown(ink.offsets):
            axes.plot(*stroke.T, color=_INK, linewidth=1.3, solid_capstyle="round")
        middle = np.median(np.concatenate(as_shown(ink.offsets))[:, 1])
        box = axes.get_window_extent()
        half = _WIDTH * box.height / box.width / 2
        axes.set(xlim=(-20, _WIDTH - 20), ylim=(middle - half, middle + half))
        axes.set_title(name, fontweight="normal", color=GREY, pad=1)
    save(figure, image)
