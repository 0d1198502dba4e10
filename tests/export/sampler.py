"""The sampler of the service written a second time, in numpy and float64, from its description."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from contract.golden import Golden


def draw(
    logits: NDArray[Any],
    uniform: float,
    temperature: float = 1.0,
    bias: NDArray[Any] | float = 0.0,
    top_k: int = 256,
    top_p: float = 1.0,
    min_p: float = 0.0,
) -> int:
    """The byte that `uniform` draws: softmax, what the filters leave, inverse CDF in byte order.

    Every filter looks at the whole distribution, and keeps what ties with the last that it keeps.
    """
    scores = (logits.astype(np.float64) + bias) / temperature
    p = np.exp(scores - scores.max())
    p /= p.sum()
    falling = np.sort(p)[::-1]
    kept = (p >= falling[top_k - 1]) & (p >= min_p * p.max())
    if top_p < 1:
        # As few of the most probable as have this much together.
        count = int(np.searchsorted(falling.cumsum(), top_p)) + 1
        kept &= p >= falling[count - 1]
    p = np.where(kept, p, 0)
    return int(np.searchsorted((p / p.sum()).cumsum(), uniform))


def drawn_again(golden: Golden, row: int, *without: str) -> NDArray[np.int64]:
    """The bytes `(T,)` that golden row `row` should draw from its stored logits; options `without`
    are left out."""
    ports = {n: value for n, value in golden.row_inputs(row).items() if n not in without}
    options = {
        "temperature": 1 / float(ports.get("inverse_temperature", 1)),
        "bias": ports.get("logit_bias", 0.0),
        "top_k": int(ports.get("top_k", 256)),
        "top_p": float(ports.get("top_p", 1)),
        "min_p": float(np.exp(ports.get("log_min_p", -np.inf))),
    }
    steps = zip(golden.truth["logits"][:, row], golden.steps["uniform"][:, row], strict=True)
    return np.array([draw(logits, uniform, **options) for logits, uniform in steps])
