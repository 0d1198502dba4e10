"""What 8-bit matrix products cost, and that PyTorch and onnxruntime mean the same by them.

Truth is the quantised network in float64. Shapes: T steps, B rows, V symbols.
"""

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contract.manifest import Finding
from export.golden import Sample
from export.parity.served import ServedGraph, read
from export.text.golden import golden_logits
from export.text.numbers import bits_per_byte
from models.language import LanguageModel
from models.quantized import QuantizedLanguageModel

# A value beside the border of two integers may round to the other; on average that is rare.
MAX_EMULATION_SHARE = 0.1
MAX_LOSS = 0.005


def emulation(
    model: LanguageModel, rounded: QuantizedLanguageModel, graph: ServedGraph, sample: Sample
) -> tuple[Finding, dict[str, NDArray[Any]]]:
    """How far served logits lie from the `rounded` network in float64, beside how far that lies
    from the exact one. Also returns the largest error at each step, by curve."""
    exact = golden_logits(copy.deepcopy(model).double(), sample).numpy()
    truth = golden_logits(copy.deepcopy(rounded).double(), sample).numpy()
    errors = {
        "served, from quantised float64": np.abs(read(graph, sample)["logits"] - truth),
        "quantised float64, from exact": np.abs(truth - exact),
    }
    mine, quantisation = (float(np.sqrt((e**2).mean())) for e in errors.values())
    finding = Finding(
        name="emulation", value=mine / quantisation, bound=MAX_EMULATION_SHARE,
        detail=f"rms distance of served logits to the quantised network in float64, {mine:.2g}, "
        f"over that of the network to the exact one, {quantisation:.2g}; "
        f"{sample.symbols.numel():,} bytes",
    )  # fmt: skip
    return finding, {name: e.max(axis=(1, 2)) for name, e in errors.items()}


def loss(name: str, model: LanguageModel, graph: ServedGraph, sample: Sample) -> Finding:
    """By how much more bits per byte the served graph needs for the bytes of a sample than the
    exact network, as a part of its own."""
    tokens = sample.symbols.numpy()
    exact = bits_per_byte(golden_logits(model, sample).numpy(), tokens)
    served = bits_per_byte(read(graph, sample)["logits"], tokens)
    return Finding(
        name=f"quantisation, {name}", value=(served - exact) / exact, bound=MAX_LOSS,
        detail=f"more bits per byte over {tokens.size:,} bytes: {exact:.6f} exact, {served:.6f} "
        "served",
    )  # fmt: skip
