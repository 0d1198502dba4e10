"""How the summed inputs of a recurrent layer are normalised, gain and bias included.

Shapes: `(..., F)` for F features; statistics are taken over F, one row at a time.
"""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

NormKind = Literal["layer", "none"]

# ONNX stores the epsilon of LayerNormalization as float32. 1e-5 has no exact float32, so a float64
# export would compute something else than float64 PyTorch; a power of two is exact in both.
EPSILON = 2.0**-17


class LayerNorm(nn.Module):
    """`gain * (a - mean) / sqrt(variance + epsilon) + bias` (Ba, Kiros, Hinton 2016, eq. 3-4).

    `bias=False` leaves the bias out where another term of the same sum already has one.
    """

    def __init__(self, features: int, *, bias: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features)) if bias else None

    def forward(self, a: Tensor) -> Tensor:
        return F.layer_norm(a, self.weight.shape, self.weight, self.bias, EPSILON)


class Bias(nn.Module):
    """No normalisation: the sum keeps its scale and only its bias is added."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(features))

    def forward(self, a: Tensor) -> Tensor:
        return a + self.bias


def make_norm(kind: NormKind, features: int, *, bias: bool = True) -> nn.Module:
    """The normalisation `kind` over `features` summed inputs, with or without a bias."""
    match kind:
        case "layer":
            return LayerNorm(features, bias=bias)
        case "none":
            return Bias(features) if bias else nn.Identity()
        case _:
            raise ValueError(f"norm is {kind!r}; it must be 'layer' or 'none'")
