"""Logits as log-probabilities, told to a caller, compared or judged. Shapes: V symbols."""

import numpy as np
from numpy.typing import NDArray


def log_probabilities(logits: NDArray[np.floating]) -> NDArray[np.float64]:
    """`(..., V)` logits as natural logarithms of probabilities, in float64 whatever comes in."""
    wide = logits.astype(np.float64)
    wide -= wide.max(-1, keepdims=True)
    return np.asarray(wide - np.log(np.exp(wide).sum(-1, keepdims=True)))
