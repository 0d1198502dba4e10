"""Table 1 of the paper: which changes of weights or data leave a normalised layer's output alone.

Measured on random layers `tanh(norm(W x))` in float64, with the modules that training uses.
Shapes: N cases, D inputs, F units.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from models.norms import WeightNorm, make_norm

Kind = Literal["batch", "weight", "layer"]
KINDS: tuple[Kind, ...] = ("batch", "weight", "layer")

# Epsilon breaks invariance to scale by epsilon / (2 variance), relatively. With weights this large
# the variance of a summed input is above 1e6, which leaves 4e-12; float64 rounding is far below.
WEIGHT_SCALE = 1e3
MOST_IF_INVARIANT = 1e-9
LEAST_IF_NOT = 1e-2

FACTOR = 3.0
_NETWORKS = 5
_CASES, _INPUTS, _UNITS = 40, 12, 9


@dataclass(frozen=True, slots=True)
class Network:
    """A random normalised layer and the data it sees: W `(F, D)`, gain and bias `(F,)`, `(N, D)`.

    Under weight norm W holds the directions.
    """

    weight: Tensor
    gain: Tensor
    bias: Tensor
    data: Tensor


@dataclass(frozen=True, slots=True)
class Entry:
    """One cell of the table: the relative change of the output, least and most of all networks."""

    change: str
    norm: Kind
    least: float
    most: float
    invariant_in_paper: bool

    @property
    def invariant(self) -> bool | None:
        """What was measured; None where it is neither the one nor the other."""
        if self.most <= MOST_IF_INVARIANT:
            return True
        return False if self.least >= LEAST_IF_NOT else None


def random_network(seed: int) -> Network:
    """Data of unit variance around a mean that is not zero."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    return Network(
        weight=WEIGHT_SCALE * normal(_UNITS, _INPUTS),
        gain=1 + 0.2 * normal(_UNITS),
        bias=0.2 * normal(_UNITS),
        data=normal(_CASES, _INPUTS) + normal(_INPUTS),
    )


def summed_inputs(kind: Kind, weight: Tensor, gain: Tensor, bias: Tensor, data: Tensor) -> Tensor:
    """Normalised summed inputs `(N, F)` of N cases; for batch norm they are the batch."""
    if kind == "weight":
        effective: Tensor = WeightNorm()(gain, weight)
        return data @ effective.T + bias
    norm = make_norm(kind, len(gain), longest_step=1).to(weight.dtype).train()
    values = {"weight": gain, "bias": bias}
    arguments = (data @ weight.T, torch.zeros(len(data), dtype=torch.int64))
    normalised: Tensor = torch.func.functional_call(norm, values, arguments)
    return normalised


def output(kind: Kind, network: Network) -> Tensor:
    """What the layer makes of its data, `(N, F)`."""
    n = network
    return torch.tanh(summed_inputs(kind, n.weight, n.gain, n.bias, n.data))


def _shift(like: Tensor) -> Tensor:
    """A fixed random vector `(D,)`, of the scale of the rows it is added to."""
    generator = torch.Generator().manual_seed(2016)
    direction = torch.randn(like.shape[-1], generator=generator, dtype=like.dtype)
    return direction * like.std()


def _first_row_scaled(matrix: Tensor) -> Tensor:
    return torch.cat([FACTOR * matrix[:1], matrix[1:]])


Change = Callable[[Network], Network]


def _of_weight(change: Callable[[Tensor], Tensor]) -> Change:
    return lambda n: Network(change(n.weight), n.gain, n.bias, n.data)


def _of_data(change: Callable[[Tensor], Tensor]) -> Change:
    return lambda n: Network(n.weight, n.gain, n.bias, change(n.data))


# Each with what the paper says of batch, weight and layer norm.
CHANGES: dict[str, tuple[Change, tuple[bool, bool, bool]]] = {
    "weight matrix re-scaling": (_of_weight(lambda w: FACTOR * w), (True, True, True)),
    "weight matrix re-centring": (_of_weight(lambda w: w + _shift(w)), (False, False, True)),
    "weight vector re-scaling": (_of_weight(_first_row_scaled), (True, True, False)),
    "data set re-scaling": (_of_data(lambda x: FACTOR * x), (True, False, True)),
    "data set re-centring": (_of_data(lambda x: x + _shift(x)), (True, False, False)),
    "single case re-scaling": (_of_data(_first_row_scaled), (False, False, True)),
}


def relative_change(kind: Kind, network: Network, change: Change) -> float:
    """max |output after - output before| / max |output before|."""
    before, after = output(kind, network), output(kind, change(network))
    return ((after - before).abs().max() / before.abs().max()).item()


def table(networks: int = _NETWORKS) -> list[Entry]:
    """All 18 entries, row by row."""
    entries = []
    for name, (change, paper) in CHANGES.items():
        for kind, invariant in zip(KINDS, paper, strict=True):
            values = [relative_change(kind, random_network(s), change) for s in range(networks)]
            entries.append(Entry(name, kind, min(values), max(values), invariant))
    return entries
