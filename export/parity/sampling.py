"""The same uniforms must draw the same bytes, save where two symbols are tied within rounding."""

import numpy as np
from numpy.typing import NDArray

from export.parity.finding import Finding
from export.parity.served import log_softmax

# Two symbols are tied when the uniform lies this close to the border between them.
TIE = 1e-5


def sampling(
    draws: NDArray[np.int64],
    tokens: NDArray[np.int64],
    uniforms: NDArray[np.float32],
    served: NDArray[np.float32],
) -> Finding:
    """Compare served `draws` with the trainer's `tokens`, both `(T, B)`; `served` are its logits.

    Every difference must be explained by a tie; ties are counted.
    """
    different = draws != tokens
    cumulative = np.exp(log_softmax(served[different])).cumsum(-1)  # (D, V)
    to_border = np.abs(cumulative - uniforms[different][:, None]).min(-1, initial=np.inf)
    ties = int((to_border <= TIE).sum())
    return Finding(
        "sampling", int(different.sum()) - ties, 0,
        f"of {tokens.size:,} bytes drawn with the same uniforms differ ({ties} more are ties)",
    )  # fmt: skip
