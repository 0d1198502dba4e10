"""Self-attention over padded sequences: one head of scaled dot products.

Products are of two dimensions where a weight is in them, so that what is exported is a Gemm.
Shapes: B batch, T positions, F features. `real (B, T)` is false where there is padding.
"""

import torch
from torch import Tensor, nn


class SelfAttention(nn.Module):
    """`softmax(Q K^T / sqrt(F)) V`, where Q, K and V are linear in x (Vaswani et al. 2017, eq. 1).

    Padding is not looked at, and what it would look at is 0.
    """

    def __init__(self, features: int) -> None:
        super().__init__()
        self.query = nn.Linear(features, features, bias=False)
        self.key = nn.Linear(features, features, bias=False)
        self.value = nn.Linear(features, features, bias=False)
        self.scale = features**-0.5

    def forward(self, x: Tensor, real: Tensor) -> Tensor:
        """`(B, T, F) -> (B, T, F)`; each row has at least one real position."""
        rows = x.flatten(0, 1)  # (B * T, F)
        query, key, value = (
            linear(rows).view(-1, *x.shape[1:]) for linear in (self.query, self.key, self.value)
        )
        scores = torch.matmul(query, key.transpose(1, 2)) * self.scale  # (B, T, T)
        weights = torch.softmax(torch.where(real.unsqueeze(1), scores, -torch.inf), dim=-1)
        return torch.where(real.unsqueeze(-1), torch.matmul(weights, value), 0.0)
