"""The analysis as pictures: table 1, curvature and magnitude, and 2,000 steps of six LSTMs."""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

from lab.analysis.fisher import (
    GLMKind,
    blocks,
    data_scaled,
    magnitude_curvature,
    weights_scaled,
)
from lab.analysis.growth import Growth
from lab.analysis.invariance import (
    KINDS,
    LEAST_IF_NOT,
    MOST_IF_INVARIANT,
    Entry,
    random_network,
)

_DPI = 120
_COLORS = 64
_EVERY = 20  # more of 2,000 steps than the eye can part
_SCALES = [2.0**n for n in range(-3, 4)]


@dataclass(frozen=True, slots=True)
class Style:
    """How a normalisation is drawn: the narrower on top, so that equal lines are all seen."""

    color: str
    dashes: str
    width: float


STYLES: dict[GLMKind, Style] = {
    "layer": Style("#4c9be8", "-", 7.0),
    "batch": Style("#d95f02", "-", 4.2),
    "weight": Style("#1b7837", "-", 1.8),
    "none": Style("black", ":", 1.2),
}


def plot_table(entries: Sequence[Entry], image: Path) -> None:
    """Table 1 with the measured change of the output in each cell."""
    figure, axes = pyplot.subplots(figsize=(7, 3.6), dpi=_DPI, layout="constrained")
    changes = list(dict.fromkeys(e.change for e in entries))
    for entry in entries:
        column, row = KINDS.index(entry.norm), changes.index(entry.change)
        color = "#cfe8cf" if entry.invariant else "#f3d3cf"
        axes.add_patch(Rectangle((column, row), 1, 1, facecolor=color, edgecolor="white"))
        bound = entry.most if entry.invariant else entry.least
        text = f"{'invariant' if entry.invariant else 'changes'}\n{bound:.0e}"
        axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=8)
    axes.set(xlim=(0, len(KINDS)), ylim=(len(changes), 0))
    axes.set_xticks([i + 0.5 for i in range(len(KINDS))], [f"{kind} norm" for kind in KINDS])
    axes.set_yticks([i + 0.5 for i in range(len(changes))], changes)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel(
        f"relative change of the output: invariant below {MOST_IF_INVARIANT:.0e} (most of all "
        f"networks),\nchanged above {LEAST_IF_NOT:.0e} (least of all networks)",
        fontsize=8,
    )
    save(figure, image)


def plot_curvature(image: Path) -> None:
    """Curvature of a step in a weight vector over its norm, and of the gain over the inputs'."""
    figure, (left, right) = pyplot.subplots(
        1, 2, figsize=(9, 4), dpi=_DPI, layout="constrained", sharey=True
    )
    network = random_network(0)
    for kind in STYLES:
        base = blocks(kind, network).vector
        vectors = [blocks(kind, weights_scaled(kind, network, s)).vector / base for s in _SCALES]
        _line(left, kind, _SCALES, vectors)
        unscaled = magnitude_curvature(kind, network)
        gains = [magnitude_curvature(kind, data_scaled(network, s)) / unscaled for s in _SCALES]
        _line(right, kind, _SCALES, gains)
    left.set(
        xlabel="norm of the weight vector, relative",
        ylabel="Fisher information, relative",
        title="a fixed step in the weight vector",
    )
    right.set(xlabel="scale of the inputs", title="a fixed step in the gain (none: along w)")
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
    _finish(left, right)
    save(figure, image)


def plot_growth(results: Sequence[Growth], image: Path) -> None:
    """Norm of the hidden state forwards, norm of the gradient backwards."""
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.8), dpi=_DPI, layout="constrained")
    for i, result in enumerate(results):
        # Weight norm and none start equal: one dashed on the other. Faint: with the other's gain.
        dashes = ":" if result.norm == "none" else "-"
        opacity = 1.0 if i < len(STYLES) else 0.4
        for axes, curve in ((left, result.hidden), (right, result.gradient)):
            steps = range(1, len(curve) + 1, _EVERY)
            axes.plot(
                steps, curve[::_EVERY].tolist(), dashes, label=result.label,
                color=STYLES[result.norm].color, alpha=opacity, linewidth=1.0,
            )  # fmt: skip
    left.set(xlabel="time step", ylabel="norm of h", title="hidden state", ylim=(0, None))
    right.set(
        xlabel="time step",
        ylabel="norm of the gradient in (h, c)",
        title="gradient of a loss at the last step",
        yscale="log",
    )
    right.set_yticks([10.0**power for power in range(-80, 61, 20)])
    _finish(left, right)
    save(figure, image)


def _line(axes: Axes, kind: GLMKind, x: Sequence[float], y: Sequence[float]) -> None:
    style = STYLES[kind]
    axes.plot(x, y, style.dashes, color=style.color, label=kind, linewidth=style.width)


def _finish(left: Axes, right: Axes) -> None:
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    legend = right.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    for line in legend.get_lines():
        line.set_linewidth(2.0)


def save(figure: Figure, image: Path) -> None:
    """As a small file, of 64 colours; the figure is no more."""
    drawn = BytesIO()
    figure.savefig(drawn)
    pyplot.close(figure)
    picture = Image.open(drawn).convert("RGB")
    picture.quantize(_COLORS, dither=Image.Dither.NONE).save(image, optimize=True)
