"""Plots: the loss of a run, from its JSONL log, and the errors of a parity report."""

import json
from pathlib import Path

import matplotlib
import numpy as np
from numpy.typing import NDArray

matplotlib.use("Agg")
from matplotlib import pyplot


def plot_losses(log: Path, image: Path, title: str, unit: str) -> None:
    """Training and validation loss over epochs, in nats per `unit`: a byte or a point."""
    rows = [json.loads(line) for line in log.read_text().splitlines()]
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
    axes.set(xlabel="epochs", ylabel=f"nats per {unit}", title=title)
    # The first epochs would squeeze everything of interest into the lowest tenth.
    axes.set_ylim(best["validation_loss"] - 0.15, best["validation_loss"] + 0.85)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(image)
    pyplot.close(figure)


def plot_errors(curves: dict[str, NDArray[np.float64]], image: Path, title: str) -> None:
    """The largest distance of any logit to float64 truth at each time step, one line per curve."""
    figure, axes = pyplot.subplots(figsize=(7, 4), dpi=120, layout="constrained")
    for i, (name, curve) in enumerate(curves.items()):
        # Curves may coincide: the lower ones are wider, so that they can be seen.
        axes.plot(curve, label=name, linewidth=2 * (len(curves) - i) - 1, alpha=0.8)
    axes.set(xlabel="time step", ylabel="largest |logit - float64|", yscale="log", title=title)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(image)
    pyplot.close(figure)
