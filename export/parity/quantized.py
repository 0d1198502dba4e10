"""What 8-bit matrix products cost, and that PyTorch and onnxruntime mean the same by them.

Truth is the quantised network in float64. Shapes: T steps, B rows, V symbols.
"""

import copy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from export.golden import golden_logits
from export.parity.finding import Finding
from export.parity.numbers import served_logits
from export.parity.served import ServedGraph, bits_per_byte, log_softmax
from models.language import LanguageModel
from models.quantized import QuantizedLanguageModel

# A value beside the border of two integers may round to the other; on average that is rare.
MAX_EMULATION_SHARE = 0.1
MAX_LOSS = 0.005


def emulation(
    model: LanguageModel, rounded: QuantizedLanguageModel, graph: ServedGraph, tokens: torch.Tensor
) -> tuple[list[Finding], dict[str, NDArray[Any]]]:
    """How far served logits for `tokens (T, B)` lie from the `rounded` network in float64, beside
    how far that lies from the exact one. Also returns the largest error at each step, by curve."""
    exact = golden_logits(copy.deepcopy(model).double(), tokens).numpy()
    truth = golden_logits(copy.deepcopy(rounded).double(), tokens).numpy()
    errors = {
        "served, from quantised float64": np.abs(served_logits(graph, tokens.numpy()) - truth),
        "quantised float64, from exact": np.abs(truth - exact),
    }
    mine, quantisation = (float(np.sqrt((e**2).mean())) for e in errors.values())
    finding = Finding(
        "emulation", mine / quantisation, MAX_EMULATION_SHARE,
        f"rms distance of served logits to the quantised network in float64, {mine:.2g}, over that "
        f"of the network to the exact one, {quantisation:.2g}; {tokens.numel():,} bytes",
    )  # fmt: skip
    return [finding], {name: e.max(axis=(1, 2)) for name, e in errors.items()}


def loss(name: str, model: LanguageModel, graph: ServedGraph, tokens: torch.Tensor) -> Finding:
    """By how much more bits per byte the served graph needs for `tokens (T, B)` than the exact
    network, as a part of its own."""
    exact = bits_per_byte(log_softmax(golden_logits(model, tokens).numpy()), tokens.numpy())
    columns = [tokens[:, r : r + 1].numpy() for r in range(tokens.shape[1])]
    served = float(
        np.mean([bits_per_byte(log_softmax(served_logits(graph, c)), c) for c in columns])
    )
    return Finding(
        f"quantisation, {name}", (served - exact) / exact, MAX_LOSS,
        f"more bits per byte over {tokens.numel():,} bytes: {exact:.6f} exact, {served:.6f} served",
    )  # fmt: skip
