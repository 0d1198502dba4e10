"""Self-attention: PyTorch's own as an oracle, and what padding may and may not do."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from models.attention import SelfAttention

_LENGTHS = torch.tensor([5, 2, 7])


def _made() -> tuple[SelfAttention, Tensor, Tensor]:
    torch.manual_seed(0)
    x = torch.randn(3, 7, 4, dtype=torch.float64)
    return SelfAttention(4).double(), x, torch.arange(7) < _LENGTHS.unsqueeze(-1)


@pytest.mark.parametrize("change", [0.0, 1e-3])
def test_it_is_pytorchs_scaled_dot_product_attention(change: float) -> None:
    model, x, real = _made()
    layers = model.query, model.key, model.value
    query, key, value = (x @ layer.weight.t() for layer in layers)
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=real.unsqueeze(1))
    with torch.no_grad():
        model.query.weight[0, 0] += change
    error = (model(x, real) - expected)[real].abs().max()
    assert (error < 1e-12) == (change == 0)


def test_padding_is_not_looked_at_and_what_it_would_see_is_zero() -> None:
    model, x, real = _made()
    y = model(x, real)
    assert not y[~real].any()
    other = torch.where(real.unsqueeze(-1), x, 100.0)
    assert torch.equal(model(other, real), y)
    for row, length in enumerate(_LENGTHS.tolist()):
        alone = model(x[row : row + 1, :length], real[row : row + 1, :length])
        assert (alone[0] - y[row, :length]).abs().max() < 1e-12


def test_the_order_of_positions_is_not_told() -> None:
    model, x, _ = _made()
    real = torch.ones(3, 7, dtype=torch.bool)
    order = torch.randperm(7)
    assert torch.allclose(model(x, real)[:, order], model(x[:, order], real), atol=1e-12)
