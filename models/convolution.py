"""A small convolutional network in which the summed inputs are normalised one way or another.

A convolution here is a matrix product of every pixel's neighbourhood, so that what is exported of
it is a Gemm, as of any other layer.
Shapes: B batch, S pixels of a side, C channels, which come last, K pixels of a kernel, L classes.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from models.mlp import NormalizedLinear
from models.norms import LayerNorm, make_layer_norm

PictureNorm = Literal["layer", "channels", "batch", "weight", "none"]
_KERNEL, _STRIDE = 3, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvolutionConfig:
    """Hyper-parameters of a `ConvolutionalNetwork`: three layers of `channels`, twice and four
    times as many, each of which halves the picture, and a hidden layer of `units`."""

    norm: PictureNorm = "layer"
    side: int = 28
    colors: int = 1
    channels: int = 16
    units: int = 128
    classes: int = 10


class AllUnits(nn.Module):
    """Layer norm as the paper has it: statistics over all units of the layer, `S * S * C` of them,
    each with its own gain and bias (eq. 3)."""

    def __init__(self, side: int, channels: int) -> None:
        super().__init__()
        self.norm = LayerNorm(side * side * channels, bias=True)

    def forward(self, rows: Tensor) -> Tensor:
        """Pixels as rows, `(B * S * S, C)`."""
        normalised: Tensor = self.norm(rows.view(-1, *self.norm.weight.shape))
        return normalised.view(-1, rows.shape[1])


def picture_norm(norm: PictureNorm, side: int, channels: int) -> nn.Module:
    """A normalisation of pixels as rows, `(B * S * S, C)`.

    `layer` is over all units of a picture. Of `channels`, layer norm over those of one pixel, and
    of `batch`, over all pixels of all pictures (Ioffe and Szegedy 2015), gain and bias are a
    channel's, as they are of `weight` and `none`.
    """
    if norm == "layer":
        return AllUnits(side, channels)
    return make_layer_norm("layer" if norm == "channels" else norm, channels)


class NormalizedConvolution(NormalizedLinear):
    """`relu(norm(W * x))` at every second pixel, kernels of 3 x 3, zeros around the picture.

    The weight is `(C, K * K * C_in)`, a row a filter, so that weight norm acts on filters.
    """

    def __init__(self, side: int, inputs: int, channels: int, norm: PictureNorm) -> None:
        super().__init__(
            _KERNEL**2 * inputs,
            channels,
            picture_norm(norm, halved(side), channels),
            weight_norm=norm == "weight",
        )
        self.side = halved(side)
        self.odd = side % _STRIDE == 1

    def forward(self, x: Tensor) -> Tensor:
        """`(B, 2S, 2S, C_in)`, or one pixel less a side, `-> (B, S, S, C)`."""
        rows = self.neighbourhoods(x).flatten(0, 2)  # (B * S * S, K * K * C_in)
        return super().forward(rows).view(-1, self.side, self.side, len(self.weight))

    def neighbourhoods(self, x: Tensor) -> Tensor:
        """What each filter sees of each place: `(B, S, S, K * K * C_in)`."""
        for axis in (1, 2):
            nothing = x.narrow(axis, 0, 1) * 0
            x = torch.cat([nothing, x, nothing] if self.odd else [nothing, x], dim=axis)
        reach = _STRIDE * (self.side - 1) + 1
        return torch.cat(
            [
                x[:, i : i + reach : _STRIDE, j : j + reach : _STRIDE]
                for i in range(_KERNEL)
                for j in range(_KERNEL)
            ],
            dim=-1,
        )


class ConvolutionalNetwork(nn.Module):
    """Three convolutions, a hidden layer and a softmax layer, the last two of which are not
    normalised.

    Strides in place of pooling. At the border a part of a unit's kernel is over nothing: units
    there are on less often than others, which is the paper's reason for what it found (section
    6.7).
    """

    def __init__(self, config: ConvolutionConfig) -> None:
        super().__init__()
        side, inputs, layers = config.side, config.colors, []
        for channels in (config.channels, 2 * config.channels, 4 * config.channels):
            layers.append(NormalizedConvolution(side, inputs, channels, config.norm))
            side, inputs = halved(side), channels
        self.convolutions = nn.Sequential(*layers)
        self.hidden = nn.Linear(side * side * inputs, config.units)
        self.readout = nn.Linear(config.units, config.classes)

    def forward(self, x: Tensor) -> Tensor:
        """Pictures `(B, S, S, C)` to logits `(B, L)`."""
        features = self.convolutions(x).flatten(1)
        logits: Tensor = self.readout(F.relu(self.hidden(features)))
        return logits


def halved(side: int) -> int:
    """How many of `side` pixels every second one is."""
    return -(-side // _STRIDE)
