"""Plots: the loss of a run or of several, from JSONL logs, and the errors of a parity report."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
import numpy as np
from numpy.typing import NDArray

matplotlib.use("Agg")
from matplotlib import pyplot as pyplot  # for other pictures too
from matplotlib.axes import Axes
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.figure import Figure

from contract.files import printable
from training.log import read_rows


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
    figure, axes = pyplot.subplots(figsize=(7, 4), dpi=120, layout="constrained")
    axes.plot(epochs, [r["train_loss"] for r in rows], label="training, dropout on", color="0.6")
    axes.plot(epochs, [r["validation_loss"] for r in rows], label="validation", color="C0")
    best = min(rows, key=lambda row: row["validation_loss"])
    axes.plot(best["epoch"], best["validation_loss"], "o", color="C0")
    axes.annotate(
        f"{best['validation_loss']:.4f}",
        (best["epoch"], best["validation_loss"]),
        textcoords="offset points",
        xytext=(0, -14),
        ha="center",
    )
    axes.set(xlabel="epochs", ylabel=f"nats per {unit}")
    # The first epochs would squeeze everything of interest into the lowest tenth.
    axes.set_ylim(best["validation_loss"] - 0.15, best["validation_loss"] + 0.85)
    _write(figure, axes, image, title)


def plot_errors(curves: dict[str, NDArray[np.float64]], image: Path, title: str) -> None:
    """The largest distance of any output to float64 truth at each time step, a line per curve."""
    figure, axes = pyplot.subplots(figsize=(7, 4), dpi=120, layout="constrained")
    for i, (name, curve) in enumerate(curves.items()):
        # Curves may coincide: the lower ones are wider, so that they can be seen.
        axes.plot(curve, label=name, linewidth=2 * (len(curves) - i) - 1, alpha=0.8)
    axes.set(xlabel="time step", ylabel="largest |output - float64|", yscale="log")
    _write(figure, axes, image, title)


def plot_race(
    curves: Mapping[str, Sequence[tuple[int, float]]], best: float, image: Path, title: str
) -> None:
    """Validation loss of pens over updates, a line per norm, and the level the baseline reached."""
    figure, axes = pyplot.subplots(figsize=(7, 4), dpi=120, layout="constrained")
    for norm, curve in curves.items():
        updates, losses = zip(*curve, strict=True)
        axes.plot(updates, losses, label=f"norm: {norm}", marker=".")
    axes.axhline(best, color="0.6", linewidth=0.8)
    axes.set(xlabel="updates", ylabel="nats per point")
    # The first updates would squeeze everything of interest into the lowest tenth.
    axes.set_ylim(min(loss for c in curves.values() for _, loss in c) - 0.1, best + 2.0)
    _write(figure, axes, image, title)


def _write(figure: Figure, axes: Axes, image: Path, title: str) -> None:
    """With a title as it stands: a name of a file may have a `$`, or what is not UTF-8."""
    axes.set_title(printable(title), parse_math=False)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(image)
    pyplot.close(figure)
