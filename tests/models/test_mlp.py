"""A layer of the perceptron: the relu of its normalised sums; weight norm is of its matrix."""

import pytest
import torch
from torch.nn import functional as F

from models.mlp import MLP, MLPConfig
from models.norms import EPSILON, NORMS

_ROWS, _INPUTS, _UNITS = 5, 4, 6


def _made(norm: str) -> tuple[MLP, torch.Tensor]:
    torch.manual_seed(0)
    config = MLPConfig(norm=norm, inputs=_INPUTS, units=_UNITS, classes=3)  # type: ignore[arg-type]
    return MLP(config).double().train(), torch.randn(_ROWS, _INPUTS).double()


@pytest.mark.parametrize(("norm", "axis"), [("layer", 1), ("batch", 0), ("none", None)])
def test_sums_are_normalised_before_the_relu_and_logits_are_not(
    norm: str, axis: int | None
) -> None:
    model, x = _made(norm)
    expected = x
    for layer in model.hidden:
        a = F.linear(expected, layer.weight)
        if axis is not None:
            deviation = (a.var(axis, correction=0, keepdim=True) + EPSILON).sqrt()
            a = (a - a.mean(axis, keepdim=True)) / deviation
        expected = F.relu(a)
    assert torch.allclose(model(x), model.readout(expected), rtol=0, atol=1e-12)


def test_under_weight_norm_the_length_of_a_direction_changes_nothing() -> None:
    model, x = _made("weight")
    before = model(x)
    for layer in model.hidden:
        gain, direction = layer.parametrizations.weight.parameters()
        assert gain.shape == (_UNITS,)
        direction.data *= 7
    assert torch.allclose(model(x), before, rtol=0, atol=1e-12)


@pytest.mark.parametrize("norm", NORMS)
def test_every_hidden_layer_learns_a_bias(norm: str) -> None:
    model, x = _made(norm)
    model(x).square().sum().backward()
    for layer in model.hidden:
        assert layer.norm.bias.grad.shape == (_UNITS,)


def test_there_are_as_many_hidden_layers_as_the_configuration_says() -> None:
    model = MLP(MLPConfig(inputs=4, units=6, layers=3, classes=2))
    assert [layer.weight.shape for layer in model.hidden] == [(6, 4), (6, 6), (6, 6)]
