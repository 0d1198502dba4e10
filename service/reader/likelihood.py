"""How likely a reader's outputs are to say a given text: the forward algorithm of CTC.

Shapes: K sets of outputs, T steps, V symbols, L symbols of a text, S = 2L + 1 places of a path.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from contract.logits import log_probabilities
from contract.reader import BLANK


def log_likelihood(logits: NDArray[np.floating], symbols: Sequence[int]) -> NDArray[np.float64]:
    """The logarithm `(K,)` of the probability that logits `(K, T, V)`, T at least 1, say these
    symbols: the sum over all paths that do when repeats are one and blanks none (Graves et al.
    2006, eq. 6-8). -inf if there are fewer steps than the text takes.
    """
    places = np.full(2 * len(symbols) + 1, BLANK)  # (S,): a blank before, after and between
    places[1::2] = symbols
    # A blank may be left out between two symbols that differ.
    skips = np.zeros(len(places), bool)
    skips[3::2] = places[3::2] != places[1:-2:2]
    log_p = log_probabilities(logits)[..., places]  # (K, T, S)
    before = np.full((len(logits), len(places) + 2), -np.inf)  # two places that no path comes from
    before[:, 2:4] = log_p[:, 0, :2]
    for step in range(1, log_p.shape[1]):
        stayed_or_moved = np.logaddexp(before[:, 2:], before[:, 1:-1])
        skipped = np.where(skips, before[:, :-2], -np.inf)
        before[:, 2:] = np.logaddexp(stayed_or_moved, skipped) + log_p[:, step]
    return np.asarray(np.logaddexp(before[:, -1], before[:, -2]))
