"""A small convolutional network in which the summed inputs are normalised one way or another.

Shapes: B batch, C channels, S pixels of a side, K kernel, L classes.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrize

from models.norms import BatchNorm, LayerNorm, NormKind, WeightNorm, make_norm

PictureNorm = Literal["layer", "channels", "batch", "weight", "none"]
_KERNEL = 3


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
    """Layer norm as the paper has it: statistics over all units of the layer, `C * S * S` of them,
    each with its own gain and bias."""

    def __init__(self, channels: int, side: int) -> None:
        super().__init__()
        self.shape = (channels, side, side)
        self.norm = LayerNorm(channels * side * side, bias=True)

    def forward(self, a: Tensor) -> Tensor:
        normalised: Tensor = self.norm(a.flatten(1)).unflatten(1, self.shape)
        return normalised


class OverChannels(nn.Module):
    """A normalisation with a gain and a bias for each channel, of every pixel as a row.

    Layer norm here takes its statistics over the C channels of one pixel; batch norm over all
    pixels of all pictures (Ioffe and Szegedy 2015).
    """

    def __init__(self, norm: NormKind, channels: int, side: int) -> None:
        super().__init__()
        self.shape = (-1, side, side, channels)
        if norm == "batch":
            self.norm: nn.Module = BatchNorm(channels, bias=True, longest_step=1, gain=1.0)
        else:
            self.norm = make_norm(norm, channels)

    def forward(self, a: Tensor) -> Tensor:
        rows = a.permute(0, 2, 3, 1).flatten(0, 2)  # (B * S * S, C)
        normalised: Tensor = self.norm(rows).view(self.shape)
        return normalised.permute(0, 3, 1, 2)


def picture_norm(norm: PictureNorm, channels: int, side: int) -> nn.Module:
    """A normalisation of summed inputs `(B, C, S, S)`."""
    if norm == "layer":
        return AllUnits(channels, side)
    return OverChannels("layer" if norm == "channels" else norm, channels, side)


class NormalizedConvolution(nn.Module):
    """`relu(norm(W * x))` at every second pixel; the weight is `(C, C_in * K * K)`, a row a filter,
    so that weight norm acts on filters."""

    def __init__(self, inputs: int, channels: int, side: int, norm: PictureNorm) -> None:
        super().__init__()
        self.inputs = inputs
        self.weight = nn.Parameter(torch.empty(channels, inputs * _KERNEL**2))
        nn.init.kaiming_normal_(self.weight, nonlinearity="relu")
        if norm == "weight":
            parametrize.register_parametrization(self, "weight", WeightNorm())
        self.norm = picture_norm(norm, channels, side)

    def forward(self, x: Tensor) -> Tensor:
        """`(B, C_in, 2S, 2S) -> (B, C, S, S)`."""
        filters = self.weight.view(-1, self.inputs, _KERNEL, _KERNEL)
        return F.relu(self.norm(F.conv2d(x, filters, stride=2, padding=1)))


class ConvolutionalNetwork(nn.Module):
    """Three convolutions, a hidden layer and a softmax layer, the last of which is not normalised.

    Strides in place of pooling: at the border a unit sees half a kernel of nothing, which is where
    the paper looks for its reason (section 6.7).
    """

    def __init__(self, config: ConvolutionConfig) -> None:
        super().__init__()
        self.config = config
        side, widths = config.side, [config.colors, *(config.channels * 2**i for i in range(3))]
        layers = []
        for inputs, channels in zip(widths, widths[1:], strict=False):
            side = -(-side // 2)
            layers.append(NormalizedConvolution(inputs, channels, side, config.norm))
        self.convolutions = nn.Sequential(*layers)
        self.hidden = nn.Linear(widths[-1] * side * side, config.units)
        self.readout = nn.Linear(config.units, config.classes)

    def forward(self, x: Tensor) -> Tensor:
        """`(B, colors, side, side)` to logits `(B, L)`."""
        features = self.convolutions(x).flatten(1)
        logits: Tensor = self.readout(F.relu(self.hidden(features)))
        return logits
