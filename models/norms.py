"""How the summed inputs of a recurrent layer are normalised, gain and bias included.

Shapes: `(..., F)` for F features, `(..., B, F)` where B rows share statistics. `at (..., B)` is the
time step each row stands at, counted from its zero state; only batch norm asks.
"""

import copy
from typing import Literal, TypeVar, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrize

from models.quantized import make_plain, settle

NormKind = Literal["layer", "batch", "weight", "none"]
NORMS: tuple[NormKind, ...] = get_args(NormKind)
Model = TypeVar("Model", bound=nn.Module)

# ONNX stores the epsilon of LayerNormalization as float32. 1e-5 has no exact float32, so a float64
# export would compute something else than float64 PyTorch; a power of two is exact in both.
EPSILON = 2.0**-17
# Time steps for which batch norm keeps statistics of their own, unless the configuration says.
LONGEST_STEP = 100


class LayerNorm(nn.Module):
    """`gain * (a - mean) / sqrt(variance + epsilon) + bias` (Ba, Kiros, Hinton 2016, eq. 3-4).

    Statistics are taken over F, one row at a time. `bias=False` leaves the bias out where another
    term of the same sum already has one.
    """

    def __init__(self, features: int, *, bias: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features)) if bias else None

    def forward(self, a: Tensor, at: Tensor | None = None) -> Tensor:
        return F.layer_norm(a, self.weight.shape, self.weight, self.bias, EPSILON)


class BatchNorm(nn.Module):
    """The same formula with statistics over the rows, each time step its own (Cooijmans et al.
    2016). Past `longest_step` all steps share those of the last.

    In training mode a step is normalised with the statistics of its batch, whose rows all stand at
    the same step; where gradients are on, running ones are learned from them. In evaluation mode,
    and served, the running ones are used. The gain starts at 0.1, as in that paper; what happens to
    gradients from 1, `python -m lab analysis` shows. A layer that is no recurrence has one step,
    and names none (Ioffe and Szegedy 2015); there the gain starts at 1.
    """

    INITIAL_GAIN = 0.1
    MOMENTUM = 0.1

    def __init__(
        self, features: int, *, bias: bool, longest_step: int, gain: float = INITIAL_GAIN
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((features,), gain))
        self.bias = nn.Parameter(torch.zeros(features)) if bias else None
        self.running_mean: Tensor
        self.running_variance: Tensor
        self.register_buffer("running_mean", torch.zeros(longest_step, features))
        self.register_buffer("running_variance", torch.ones(longest_step, features))

    def forward(self, a: Tensor, at: Tensor | None = None) -> Tensor:
        assert at is not None or len(self.running_mean) == 1, "batch norm needs the time step"
        if self.training:
            mean = a.mean(-2, keepdim=True)
            variance = a.var(-2, keepdim=True, correction=0)
            if torch.is_grad_enabled():
                first = torch.zeros(1, dtype=torch.int64) if at is None else at[..., 0]
                self._learn(first, mean, variance, rows=a.shape[-2])
        elif at is None:
            mean, variance = self.running_mean, self.running_variance  # (1, F)
        else:
            index = self._index(at)
            mean = F.embedding(index, self.running_mean)
            variance = F.embedding(index, self.running_variance)
        normalised = (a - mean) / torch.sqrt(variance + EPSILON) * self.weight
        return normalised if self.bias is None else normalised + self.bias

    def _index(self, at: Tensor) -> Tensor:
        last = len(self.running_mean) - 1
        return torch.where(at < last, at, last)

    @torch.no_grad()
    def _learn(self, at: Tensor, mean: Tensor, variance: Tensor, rows: int) -> None:
        """From steps `at (...)`, statistics `(..., 1, F)`; the variance is kept unbiased.

        Raises `ValueError` for one row, which has no variance.
        """
        if rows < 2:
            raise ValueError(
                f"batch norm has {rows} row to learn from; batch.rows must be 2 or more"
            )
        means, variances = (s.reshape(-1, s.shape[-1]) for s in (mean, variance))
        unbiased = variances * (rows / (rows - 1))
        # One after the other, because steps past the longest share one place.
        for place, m, v in zip(self._index(at).reshape(-1).tolist(), means, unbiased, strict=True):
            self.running_mean[place].lerp_(m, self.MOMENTUM)
            self.running_variance[place].lerp_(v, self.MOMENTUM)


class Bias(nn.Module):
    """No normalisation: the sum keeps its scale and only its bias, if it has one, is added."""

    def __init__(self, features: int, *, bias: bool) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(features)) if bias else None

    def forward(self, a: Tensor, at: Tensor | None = None) -> Tensor:
        return a if self.bias is None else a + self.bias


class WeightNorm(nn.Module):
    """`w = gain * v / |v|` per row of a matrix (Salimans and Kingma 2016, eq. 2).

    A parametrisation: `original0` is the gain `(G,)`, `original1` the direction v `(G, F)`. A
    matrix put under it keeps its value: v is the matrix, the gain the norms of its rows.
    """

    def forward(self, gain: Tensor, direction: Tensor) -> Tensor:
        return direction * (gain / _row_norms(direction)).unsqueeze(1)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return _row_norms(weight), weight


def _row_norms(matrix: Tensor) -> Tensor:
    return matrix.square().sum(1).sqrt()


def make_norm(
    kind: NormKind, features: int, *, bias: bool = True, longest_step: int = LONGEST_STEP
) -> nn.Module:
    """The normalisation `kind` over `features` summed inputs, with or without a bias.

    Weight norm acts on the matrices before the sum (`WeightNorm`), so of the sum itself it leaves
    as much as no norm at all: its bias.
    """
    match kind:
        case "layer":
            return LayerNorm(features, bias=bias)
        case "batch":
            return BatchNorm(features, bias=bias, longest_step=longest_step)
        case "weight" | "none":
            return Bias(features, bias=bias)
        case _:
            raise ValueError(f"model.norm is {kind!r}; it must be one of {', '.join(NORMS)}")


def make_layer_norm(kind: NormKind, features: int) -> nn.Module:
    """The normalisation `kind` of a layer that is no recurrence, `(B, F)`; gain 1 under any."""
    if kind == "batch":
        return BatchNorm(features, bias=True, longest_step=1, gain=1.0)
    return make_norm(kind, features)


def fold(model: Model) -> Model:
    """A copy to serve: under weight norm its matrices are plain parameters under their own names;
    matrices of eight bits are integers.

    The former are computed in float64 and rounded once, so no machine's float32 norms are in them.
    The copy is the model of the artifact, for PyTorch and onnxruntime alike; the float32 matrices
    training itself used differ from it by their own rounding. Other norms are copied as they are.
    """
    folded = settle(copy.deepcopy(model))
    for module in folded.modules():
        if _has_weight_norm(module):
            assert isinstance(module.parametrizations, nn.ModuleDict)
            names, dtype = list(module.parametrizations), next(module.parameters()).dtype
            module.double()
            make_plain(module, {name: getattr(module, name).to(dtype) for name in names})
            module.to(dtype)
    return folded


def _has_weight_norm(module: nn.Module) -> bool:
    return parametrize.is_parametrized(module) and any(
        isinstance(m, WeightNorm) for m in module.modules()
    )
