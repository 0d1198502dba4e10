"""Matrices of eight bits: integers that share a unit in each row, rounded in training as served.

A model of `precision = "int8"` is the network it is in float32, but for its matrices. In training
each use rounds them anew from float32 weights, and the gradient passes the rounding unchanged (the
straight-through estimator, Bengio, Leonard and Courville 2013). Served, they are the integers.

Their inputs keep the precision of float32, which a served graph carries as several bytes
(`export/integers.py`). Inputs of one byte would be faster with many rows, but then no two
implementations compute the same: a rounding of float32 that moves a hidden unit over the border of
a byte becomes an error of 1e-2. Shapes: N outputs, K inputs.
"""

import copy
from dataclasses import replace
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn.utils import parametrize

Precision = Literal["float32", "int8"]
Model = TypeVar("Model", bound=nn.Module)

# Two products of an unsigned byte and such a weight fit 16 bits: CPUs without VNNI add them there.
LARGEST_WEIGHT = 64


def integers(weight: Tensor) -> tuple[Tensor, Tensor]:
    """A matrix `(N, K)` as int8 `(K, N)`, halves rounded to the even one, and the worth of a unit
    in each of its rows, `(N,)`."""
    unit = weight.abs().amax(1) / LARGEST_WEIGHT
    unit = torch.where(unit > 0, unit, 1.0)
    return torch.round(weight / unit.unsqueeze(1)).to(torch.int8).t().contiguous(), unit


class EightBits(nn.Module):
    """A parametrisation for training: the matrix that the integers of a float32 one stand for."""

    def forward(self, weight: Tensor) -> Tensor:
        rounded: Tensor = _StraightThrough.apply(weight)
        return rounded


class Integers(nn.Module):
    """A parametrisation for serving: `original0` are the integers, `original1` the units."""

    def forward(self, whole: Tensor, unit: Tensor) -> Tensor:
        return (whole.to(unit.dtype) * unit).t()

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return integers(weight)


class _StraightThrough(Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor) -> Tensor:
        whole, unit = integers(weight)
        return (whole.to(unit.dtype) * unit).t()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient


def check_precision(precision: Precision, norm: str) -> None:
    """Raise `ValueError` for a precision there is none of, or that the norm cannot have."""
    if precision not in ("float32", "int8"):
        raise ValueError(f"model.precision is {precision!r}; it must be 'float32' or 'int8'")
    if precision == "int8" and norm == "weight":
        raise ValueError("model.norm is 'weight', whose matrices are computed; not with 'int8'")


def round_matrices(model: nn.Module) -> None:
    """Put every matrix of a model, tables of embeddings aside, under `EightBits`."""
    for module in list(model.modules()):
        if isinstance(module, nn.Embedding):
            continue
        matrices = [n for n, p in module.named_parameters(recurse=False) if p.dim() == 2]
        for name in matrices:
            parametrize.register_parametrization(module, name, EightBits())


def settle(model: Model) -> Model:
    """The model with its matrices as the integers they are rounded to, which learn no more; in
    place. One without `EightBits` stays what it is."""
    for module in list(model.modules()):
        if _has(module, EightBits):
            plain = {n: p.original for n, p in _parametrizations(module).items()}
            for name, weight in make_plain(module, plain).items():
                weight.requires_grad_(False)
                # Unsafe says only that the integers are not of the type of the matrix.
                parametrize.register_parametrization(module, name, Integers(), unsafe=True)
    return model


def load_weights(model: nn.Module, weights: dict[str, Tensor]) -> None:
    """Give a model the weights of one that differs from it in no more than its precision, float32
    there. Raises `ValueError` where they are not of the same shapes."""
    own = {
        name.replace("parametrizations.", "").removesuffix(".original"): name
        for name in model.state_dict()
    }
    given = {own.get(name, name): t for name, t in weights.items()}
    for place, module in model.named_modules():
        if not parametrize.is_parametrized(module):
            continue
        for name, parametrization in _parametrizations(module).items():
            # One of several parts, as weight norm's are, finds them in the matrix.
            if not parametrization.is_tensor and (whole := f"{place}.{name}") in given:
                parts = parametrization[0].right_inverse(given.pop(whole))
                at = f"{place}.parametrizations.{name}.original"
                given |= {f"{at}{number}": part for number, part in enumerate(parts)}
    try:
        model.load_state_dict(given)
    except RuntimeError as error:
        raise ValueError(f"those weights are of another model: {error}") from error


def integer_matrices(model: nn.Module) -> dict[str, str]:
    """By the name of each matrix that is settled, where its integers and units are, but for the
    `0` or `1` at the end."""
    return {
        f"{place}.{name}": f"{place}.parametrizations.{name}.original"
        for place, module in model.named_modules()
        if _has(module, Integers)
        for name in _parametrizations(module)
    }


def as_floats(model: Model) -> Model:
    """A copy of a settled model whose matrices are plain parameters, as a float32 model's are; a
    model without integers is its own."""
    if not integer_matrices(model):
        return model
    plain = copy.deepcopy(model)
    for module in list(plain.modules()):
        if _has(module, Integers):
            make_plain(module, {n: getattr(module, n) for n in _parametrizations(module)})
    config: Any = plain.config
    plain.config = replace(config, precision="float32")
    return plain


def make_plain(module: nn.Module, weights: dict[str, Tensor]) -> dict[str, nn.Parameter]:
    """Put plain parameters in the place of everything that is parametrised in a module."""
    # Not remove_parametrizations: it changes a class that copies of the module share.
    module.__class__ = parametrize.type_before_parametrizations(module)
    del module.parametrizations
    parameters = {name: nn.Parameter(weight.detach()) for name, weight in weights.items()}
    for name, parameter in parameters.items():
        module.register_parameter(name, parameter)
    return parameters


def _has(module: nn.Module, kind: type[nn.Module]) -> bool:
    return parametrize.is_parametrized(module) and any(
        isinstance(p[0], kind) for p in _parametrizations(module).values()
    )


def _parametrizations(module: nn.Module) -> dict[str, Any]:
    assert isinstance(module.parametrizations, nn.ModuleDict)
    return dict(module.parametrizations.items())
