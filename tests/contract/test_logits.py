"""Log-probabilities are those of a distribution, whatever the logits."""

import numpy as np
import pytest

from contract.logits import log_probabilities


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(96,), (5, 96), (2, 5, 96), (0, 96)])
def test_they_sum_to_one_however_large_the_logits(real: type, shape: tuple[int, ...]) -> None:
    logits = np.random.default_rng(1).normal(0, 300, shape).astype(real)
    given = logits.copy()
    found = log_probabilities(logits)
    assert (found.dtype, found.shape) == (np.float64, shape)
    assert np.exp(found).sum(-1) == pytest.approx(np.ones(shape[:-1]))
    assert np.array_equal(logits, given)
