"""Recurrent cells: LN-RNN, LN-LSTM and LN-GRU of Ba, Kiros and Hinton (2016), or with another norm.

A cell is two functions. `project(x)` is everything that does not depend on the state, so training
computes it for all time steps at once; `step(projected, state)` is the recurrence. The equations
say LN for whichever norm was chosen.
Shapes: B batch, E inputs, H units, G gates.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrize

from models.norms import LONGEST_STEP, NormKind, WeightNorm, make_norm

CellKind = Literal["rnn", "lstm", "gru"]
State = tuple[Tensor, ...]
At = Tensor | None  # (..., B) int64: the time step each row stands at; only batch norm asks
Keep = Tensor | None  # (B, H): a scaled dropout mask
Product = Callable[[Tensor], Tensor] | None  # h to W_h h, where training has a faster gradient


class Cell(nn.Module, ABC):
    """What every cell shares: two weight matrices, `weight_x` (G*H, E) and `weight_h` (G*H, H)."""

    gates: ClassVar[int]
    state_names: ClassVar[tuple[str, ...]]

    def __init__(
        self, inputs: int, units: int, norm: NormKind, longest_step: int = LONGEST_STEP
    ) -> None:
        super().__init__()
        self.units = units
        self.norm = norm
        self.longest_step = longest_step
        self.weight_x = nn.Parameter(torch.empty(self.gates * units, inputs))
        self.weight_h = nn.Parameter(torch.empty(self.gates * units, units))
        nn.init.xavier_uniform_(self.weight_x)
        for gate in self.weight_h.data.split(units):
            nn.init.orthogonal_(gate)
        if norm == "weight":
            for name in ("weight_x", "weight_h"):
                parametrize.register_parametrization(self, name, WeightNorm())
        self.add_norms()

    @abstractmethod
    def add_norms(self) -> None:
        """Create the normalisations of the cell, each with `make_norm`."""

    def make_norm(self, features: int, *, bias: bool = True) -> nn.Module:
        """A normalisation of this cell's kind."""
        return make_norm(self.norm, features, bias=bias, longest_step=self.longest_step)

    def initial_state(self, batch: int) -> State:
        """The zero state: one `(B, H)` tensor per name in `state_names`."""
        return tuple(self.weight_h.new_zeros(batch, self.units) for _ in self.state_names)

    @abstractmethod
    def project(self, x: Tensor, at: At = None) -> Tensor:
        """The state-free part of the summed inputs: `(..., E) -> (..., G*H)`."""

    @abstractmethod
    def step(
        self,
        projected: Tensor,
        state: State,
        at: At = None,
        keep: Keep = None,
        product: Product = None,
    ) -> State:
        """One step: `(B, G*H)` and the state before it to the state after it; its first is h.

        `keep` acts on the recurrent update (Semeniuta et al. 2016). `product`, if given, computes
        `W_h h` in place of the cell itself.
        """

    def recur(self, h: Tensor, product: Product) -> Tensor:
        """`W_h h`: `(B, H) -> (B, G*H)`."""
        return F.linear(h, self.weight_h) if product is None else product(h)


class RNNCell(Cell):
    """`h' = tanh(LN(W_h h + W_x x))` (eq. 4): one normalisation over the whole sum."""

    gates = 1
    state_names = ("h",)

    def add_norms(self) -> None:
        self.norm_sum = self.make_norm(self.units)

    def project(self, x: Tensor, at: At = None) -> Tensor:
        return F.linear(x, self.weight_x)

    def step(
        self,
        projected: Tensor,
        state: State,
        at: At = None,
        keep: Keep = None,
        product: Product = None,
    ) -> State:
        (h,) = state
        if keep is not None:
            h = h * keep
        return (torch.tanh(self.norm_sum(self.recur(h, product) + projected, at)),)


class LSTMCell(Cell):
    """`(f, i, o, g) = LN(W_h h) + LN(W_x x)`, `c' = s(f) c + s(i) tanh(g)`,
    `h' = s(o) tanh(LN(c'))` (supplement, eq. 20-22; s is the logistic function).

    The three biases the paper adds to the gates are one vector here: that of `LN(W_x x)`.
    """

    gates = 4
    state_names = ("h", "c")

    def add_norms(self) -> None:
        self.norm_x = self.make_norm(4 * self.units)
        self.norm_h = self.make_norm(4 * self.units, bias=False)
        self.norm_c = self.make_norm(self.units, bias=self.norm in ("layer", "batch"))
        # A forget gate that starts open lets gradients reach back from the first update on.
        nn.init.ones_(self.norm_x.get_parameter("bias")[: self.units])

    def project(self, x: Tensor, at: At = None) -> Tensor:
        normalised: Tensor = self.norm_x(F.linear(x, self.weight_x), at)
        return normalised

    def step(
        self,
        projected: Tensor,
        state: State,
        at: At = None,
        keep: Keep = None,
        product: Product = None,
    ) -> State:
        h, c = state
        summed = self.norm_h(self.recur(h, product), at) + projected  # (B, 4H)
        f, i, o, g = summed.chunk(4, dim=-1)
        update = torch.sigmoid(i) * torch.tanh(g)
        if keep is not None:
            update = update * keep
        c = torch.sigmoid(f) * c + update
        return torch.sigmoid(o) * torch.tanh(self.norm_c(c, at)), c


class GRUCell(Cell):
    """`(z, r) = LN(W_h h) + LN(W_x x)`, `u = tanh(LN(W x) + s(r) LN(U h))`,
    `h' = h + s(z) (u - h)` (supplement, eq. 26-28).
    """

    gates = 3
    state_names = ("h",)

    def add_norms(self) -> None:
        self.norm_x_gates = self.make_norm(2 * self.units)
        self.norm_x_update = self.make_norm(self.units)
        self.norm_h_gates = self.make_norm(2 * self.units, bias=False)
        self.norm_h_update = self.make_norm(self.units)

    def project(self, x: Tensor, at: At = None) -> Tensor:
        gates, update = self._split(F.linear(x, self.weight_x))
        return torch.cat([self.norm_x_gates(gates, at), self.norm_x_update(update, at)], dim=-1)

    def step(
        self,
        projected: Tensor,
        state: State,
        at: At = None,
        keep: Keep = None,
        product: Product = None,
    ) -> State:
        (h,) = state
        x_gates, x_update = self._split(projected)
        h_gates, h_update = self._split(self.recur(h, product))
        z, r = torch.sigmoid(self.norm_h_gates(h_gates, at) + x_gates).chunk(2, dim=-1)
        change = torch.tanh(x_update + r * self.norm_h_update(h_update, at)) - h
        if keep is not None:
            change = change * keep
        return (h + z * change,)

    def _split(self, summed: Tensor) -> tuple[Tensor, Tensor]:
        gates, update = summed.split([2 * self.units, self.units], dim=-1)
        return gates, update


CELLS: dict[CellKind, type[Cell]] = {"rnn": RNNCell, "lstm": LSTMCell, "gru": GRUCell}


def require_cell(cell: str) -> None:
    """Raises `ValueError` for a name of none."""
    if cell not in CELLS:
        raise ValueError(f"model.cell is {cell!r}; it must be one of {', '.join(CELLS)}")
