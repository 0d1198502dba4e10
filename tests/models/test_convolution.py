"""A convolution as matrix products, against PyTorch's; and what each norm is of."""

from typing import get_args

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.parametrize import is_parametrized

from models.convolution import (
    ConvolutionalNetwork,
    ConvolutionConfig,
    NormalizedConvolution,
    PictureNorm,
    picture_norm,
)
from models.norms import EPSILON

_C = 6


@pytest.mark.parametrize("side", [7, 8])
def test_it_is_pytorchs_convolution_of_every_second_pixel(side: int) -> None:
    torch.manual_seed(0)
    layer = NormalizedConvolution(side, 2, _C, "none").double()
    x = torch.randn(3, side, side, 2).double()
    kernel = layer.weight.view(_C, 3, 3, 2).permute(0, 3, 1, 2)
    expected = F.conv2d(x.permute(0, 3, 1, 2), kernel, stride=2, padding=1)
    assert torch.allclose(layer(x), F.relu(expected).permute(0, 2, 3, 1), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("norm", "of"), [("layer", (4, 4, _C)), ("channels", (_C,))])
def test_layer_norm_is_of_all_units_or_of_the_channels_of_a_pixel(
    norm: PictureNorm, of: tuple[int, ...]
) -> None:
    pictures = 3 + 2 * torch.randn(2, 4, 4, _C).double()
    made: nn.Module = picture_norm(norm, 4, _C).double()
    gain, bias = torch.randn(2, *of).double()
    for parameter, value in zip(made.parameters(), (gain, bias), strict=True):
        parameter.data.copy_(value.flatten())
    expected = F.layer_norm(pictures, of, gain, bias, eps=EPSILON)
    found = made(pictures.flatten(0, 2))
    assert torch.allclose(found, expected.flatten(0, 2), rtol=0, atol=1e-12)


def test_batch_norm_is_of_all_pixels_and_serves_what_it_has_learned() -> None:
    norm, pictures = (
        picture_norm("batch", 3, _C).double(),
        3 + 2 * torch.randn(10, 3, 3, _C).double(),
    )
    rows = pictures.flatten(0, 2)
    expected = F.batch_norm(rows, None, None, training=True, eps=EPSILON)
    for _ in range(200):
        assert torch.allclose(norm(rows), expected, rtol=0, atol=1e-12)
    # Of the same rows over and over, but the served variance is the unbiased one.
    assert torch.allclose(norm.eval()(rows) * (90 / 89) ** 0.5, expected, rtol=0, atol=1e-6)


def test_under_weight_norm_the_length_of_a_filter_changes_nothing() -> None:
    torch.manual_seed(0)
    layer, x = NormalizedConvolution(8, 2, _C, "weight").double(), torch.randn(3, 8, 8, 2).double()
    before = layer(x)
    gain, direction = layer.parametrizations.weight.parameters()  # type: ignore[union-attr]
    assert gain.shape == (_C,)
    direction.data *= 7
    assert torch.allclose(layer(x), before, rtol=0, atol=1e-12)


def test_each_of_three_layers_halves_the_picture_and_the_later_are_twice_as_wide() -> None:
    network = ConvolutionalNetwork(ConvolutionConfig(side=9, channels=2, units=5, classes=3))
    widths = [len(layer.weight) for layer in network.convolutions]
    assert widths == [2, 4, 8]
    assert network.hidden.weight.shape == (5, 2 * 2 * 8)
    assert network(torch.zeros(4, 9, 9, 1)).shape == (4, 3)


@pytest.mark.parametrize("norm", get_args(PictureNorm))
def test_every_convolution_has_the_norm_and_the_first_the_colours_of_the_configuration(
    norm: PictureNorm,
) -> None:
    config = ConvolutionConfig(norm=norm, side=8, colors=3, channels=2, units=3, classes=2)
    network = ConvolutionalNetwork(config)
    kinds = [type(layer.norm) for layer in network.convolutions]
    assert kinds == 3 * [type(picture_norm(norm, 1, 1))]
    weights = [is_parametrized(layer) for layer in network.convolutions]
    assert weights == 3 * [norm == "weight"]
    assert network(torch.zeros(4, 8, 8, 3)).shape == (4, 2)


def test_the_hidden_layer_is_rectified() -> None:
    network = ConvolutionalNetwork(ConvolutionConfig(side=8, channels=1, units=2, classes=1))
    with torch.no_grad():
        for layer, bias in ((network.hidden, (-3.0, 5.0)), (network.readout, (0.0,))):
            layer.weight.fill_(1.0)
            layer.bias.copy_(torch.tensor(bias))
        network.hidden.weight.zero_()
    assert network(torch.ones(1, 8, 8, 1)).tolist() == [[5.0]]
