"""Log-probabilities, scores and draws of a language model: trained beside served.

Shapes: T steps, B rows, V symbols.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from contract.logits import log_probabilities
from contract.manifest import Finding
from export.golden import Sample

MAX_LOG_PROBABILITY_ERROR = 1e-4
MAX_BITS_PER_BYTE_ERROR = 1e-6
# Two symbols are tied when the uniform lies this close to the border between them.
TIE = 1e-5


def bits_per_byte(logits: NDArray[Any], tokens: NDArray[np.int64]) -> float:
    """Mean of -log2 p over `tokens (T, B)`, given `logits (T, B, V)`."""
    chosen = np.take_along_axis(log_probabilities(logits), tokens[..., None], -1)
    return float(-chosen.mean() / np.log(2))


def log_probability(trained: NDArray[Any], served: NDArray[Any]) -> Finding:
    """The largest difference of any log-probability, from logits `(T, B, V)` of both sides."""
    steps, batch, _ = trained.shape
    return Finding(
        name="log-probability",
        value=float(np.abs(log_probabilities(trained) - log_probabilities(served)).max()),
        bound=MAX_LOG_PROBABILITY_ERROR,
        detail=f"max |difference|, {steps * batch:,} bytes, training at batch {batch}, served at 1",
    )


def score(
    name: str, tokens: NDArray[np.int64], trained: NDArray[Any], served: NDArray[Any]
) -> Finding:
    """Bits per byte of `tokens (T, B)`, streams from zero states, by the logits of both sides."""
    bits = [bits_per_byte(logits, tokens) for logits in (trained, served)]
    return Finding(
        name=f"score, {name}", value=abs(bits[0] - bits[1]), bound=MAX_BITS_PER_BYTE_ERROR,
        detail=f"|difference| in bits per byte over {tokens.size:,} bytes; {bits[0]:.6f} trained, "
        f"{bits[1]:.6f} served",
    )  # fmt: skip


def sampling(sample: Sample, logits: NDArray[np.float32], draws: NDArray[np.int64]) -> Finding:
    """The same uniforms must draw the same bytes, save where two symbols are tied within rounding.

    `draws (T, B)` are what was served with the sample's uniforms and its bytes before, `logits
    (T, B, V)` what decided them. Every difference must be explained by a tie: both bytes are drawn
    by uniforms that lie as close. Ties are counted.
    """
    trained = sample.symbols.numpy()
    different = draws != trained
    cumulative = np.exp(log_probabilities(logits[different])).cumsum(-1)  # (D, V)
    uniforms = sample.noise["uniform"].numpy()[different].astype(np.float64)[:, None]
    first, last = ((cumulative < uniforms + by).sum(-1) for by in (-TIE, TIE))
    tied = [(first <= drawn[different]) & (drawn[different] <= last) for drawn in (draws, trained)]
    ties = int((tied[0] & tied[1]).sum())
    return Finding(
        name="sampling", value=int(different.sum()) - ties, bound=0,
        detail=f"of {draws.size:,} bytes drawn with the same uniforms differ "
        f"({ties} more are ties)",
    )  # fmt: skip
