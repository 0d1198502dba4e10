"""Plots: the loss of a run or of several, from JSONL logs, and the errors of a parity report."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatterSciNotation
from numpy.typing import NDArray

from contract.files import printable
from training.figures import DASHED, GREY, save, subplots
from training.log import read_rows

_HEIGHT_IN = 4.4
# For those that cannot tell colours by themselves, and for grey print, lines differ in kind too.
_KINDS: tuple[dict[str, Any], ...] = (
    {"color": "#0b7a6f", "linewidth": 3.0, "alpha": 0.6},
    {"color": "#d95f02", "linewidth": 1.4},
    {"color": "black", "linewidth": 1.2, "linestyle": ":"},
)
_RACERS = {"layer": ("#4c9be8", "o"), "none": ("black", "s")}


def require_picture(image: Path | None) -> None:
    """Raise `ValueError` where a picture that is to be drawn, if one is, is of a kind that cannot
    be: before the work that it is of."""
    if image is None:
        return
    known = sorted(FigureCanvasBase.get_supported_filetypes())
    if image.suffix and image.suffix[1:].lower() not in known:
        raise ValueError(f"{image} ends with {image.suffix}; it may with {', '.join(known)}")


def plot_losses(log: Path, image: Path, title: str, unit: str) -> None:
    """Training and validation loss over epochs, in nats per `unit`, as a byte is one. Draws
    nothing of a log without rows."""
    rows = read_rows(log)
    if not rows:
        return
    epochs = [row["epoch"] for row in rows]
    training = [row["train_loss"] for row in rows]
    figure, axes = subplots(1, 1, _HEIGHT_IN)
    axes.plot(epochs, training, "--", label="training, dropout on", color=GREY)
    axes.plot(epochs, [r["validation_loss"] for r in rows], label="validation", color="C0")
    best = min(rows, key=lambda row: row["validation_loss"])
    told = f"best: {best['validation_loss']:.4f}"
    axes.plot(best["epoch"], best["validation_loss"], "o", color="C0")
    axes.annotate(
        told, (best["epoch"], best["validation_loss"]), (0, 8), textcoords="offset points",
        ha="right",
    )  # fmt: skip
    axes.set(xlabel="epochs", ylabel=f"nats per {unit}")
    # The first epochs would squeeze everything of interest into the lowest tenth.
    axes.set_ylim(min(best["validation_loss"], *training) - 0.05, best["validation_loss"] + 0.85)
    _write(figure, axes, image, title)


def plot_errors(curves: dict[str, NDArray[np.float64]], image: Path, title: str) -> None:
    """The largest distance of any output to float64 truth at each time step, a line per curve."""
    figure, axes = subplots(1, 1, _HEIGHT_IN)
    for i, (name, curve) in enumerate(curves.items()):
        # Curves may coincide: the first is wide and the last dotted, so that each can be seen.
        axes.plot(curve, label=name, **_KINDS[i % len(_KINDS)])
    axes.set(xlabel="time step", ylabel="largest |output - float64|", yscale="log")
    # All of it may lie within one power of ten.
    axes.yaxis.set_minor_formatter(LogFormatterSciNotation(minor_thresholds=(2, 0.5)))
    _write(figure, axes, image, title)


def plot_race(
    curves: Mapping[str, Sequence[tuple[int, float]]], best: float, image: Path, title: str
) -> None:
    """Validation loss of pens over updates, a line per norm, and the level the baseline reached."""
    figure, axes = subplots(1, 1, _HEIGHT_IN)
    for norm, curve in curves.items():
        updates, losses = zip(*curve, strict=True)
        color, mark = _RACERS.get(norm, (None, "."))
        axes.plot(updates, losses, label=f"norm: {norm}", color=color, marker=mark, markersize=4)
    axes.axhline(best, color=GREY, linewidth=1, linestyle=DASHED, label="the best of none")
    axes.set(xlabel="updates", ylabel="nats per point")
    # The first updates would squeeze everything of interest into the lowest tenth.
    axes.set_ylim(min(loss for c in curves.values() for _, loss in c) - 0.1, best + 2.0)
    _write(figure, axes, image, title)


def _write(figure: Figure, axes: Axes, image: Path, title: str) -> None:
    """With a title as it stands: a name of a file may have a `$`, or what is not UTF-8."""
    axes.set_title(printable(title), parse_math=False)
    axes.legend()
    save(figure, image)
