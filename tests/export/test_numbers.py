"""Rounding, of what is served beside training: one number that is off is not lost in a mean."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from export.golden import Sample
from export.parity import numbers


def test_one_large_error_counts_for_more_than_many_small_ones() -> None:
    """And the curve of a step is its largest error."""
    truth = np.zeros((20, 2, 7))
    small = np.full(truth.shape, 1e-6)
    served = small.copy()
    served[3, 1, 5] = 1e-4

    def trained(model: nn.Module, of: Sample) -> Tensor:
        wide = next(model.parameters()).dtype == torch.float64
        return torch.from_numpy(truth if wide else small)[:, of.symbols[0]]

    symbols = torch.arange(2).repeat(20, 1)
    of = Sample(symbols, {}, {})
    finding, together, curves = numbers.rounding(nn.Linear(1, 1), of, served, trained)
    assert finding.value == pytest.approx(np.sqrt((served**2).mean()) / 1e-6)
    assert not finding.holds
    assert np.array_equal(together, small)
    assert curves["served, batch 1"][3] == 1e-4
    assert curves["training, batch 2"][3] == 1e-6
