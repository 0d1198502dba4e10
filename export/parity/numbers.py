"""Structure and rounding: how far served numbers lie from the trained ones, and from truth.

Truth is PyTorch in float64, in training mode. Of any kind of model; `trained` is what training
computes for a sample, in the batch it is given. Shapes: T steps, B rows.
"""

import copy
import math
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from contract.files import told_of
from contract.manifest import Finding
from export.golden import Sample
from export.parity.served import ServedGraph, read
from export.variant import GraphWriter

Trained = Callable[[nn.Module, Sample], Tensor]

MAX_STRUCTURE_ERROR = 1e-9
MAX_ROUNDING_RATIO = 1.5


def structure(writer: GraphWriter, sample: Sample, trained: Trained, output: str) -> Finding:
    """The float64 graph against float64 PyTorch: no rounding is left for a difference to hide in.

    PyTorch runs the rows of the sample at once as training does, onnxruntime each row alone.
    """
    truth = trained(writer.model, sample).numpy()
    with tempfile.TemporaryDirectory() as folder, told_of(Path(folder)):
        path = Path(folder, "model.onnx")
        step = writer.write(path, scan=True, filtered=False)
        served = read(ServedGraph(path, writer.ports(step), scan=True), sample)[output]
    error = float(np.abs(served - truth).max())
    return Finding(
        name="structure", value=error, bound=MAX_STRUCTURE_ERROR,
        detail=f"max |difference of {output}|, float64 graph and float64 training mode, "
        f"{len(truth):,} steps",
    )  # fmt: skip


def rounding(
    model: nn.Module, sample: Sample, served: NDArray[np.float32], trained: Trained
) -> tuple[Finding, NDArray[np.float32], dict[str, NDArray[np.float64]]]:
    """Distance to float64 truth: of what is served, `(T, B, ...)`, each row alone, and of float32
    training itself.

    Also returns what training computed, and the largest error at each step, by curve, for the plot.
    """
    truth = trained(copy.deepcopy(model).double(), sample).numpy()
    batch = sample.symbols.shape[1]
    together = trained(model, sample).numpy()
    alone = torch.cat([trained(model, sample.of(slice(r, r + 1))) for r in range(batch)], dim=1)
    errors = {
        "served, batch 1": np.abs(served - truth),
        f"training, batch {batch}": np.abs(together - truth),
    }
    if batch > 1:
        errors["training, batch 1"] = np.abs(alone.numpy() - truth)
    mine, *others = (float(np.sqrt((e**2).mean())) for e in errors.values())
    worst = ", ".join(f"{e.max():.2g} {name}" for name, e in errors.items())
    finding = Finding(
        name="rounding", value=ratio(mine, min(others)), bound=MAX_ROUNDING_RATIO,
        detail=f"rms error of served float32 over training's own; max errors {worst}",
    )  # fmt: skip
    curves = {name: e.reshape(len(e), -1).max(1) for name, e in errors.items()}
    return finding, together, curves


def ratio(mine: float, own: float) -> float:
    """An error of what is served over training's own, which is nothing of a network that gives its
    bias alone; infinity where that leaves no room for any."""
    return mine / own if own else math.inf if mine else 0.0
