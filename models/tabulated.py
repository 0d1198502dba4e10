"""A language model whose first layer looks up what it would compute: one row of a table per byte.

The embedding, W_x and the normalisation of their product see one of 256 inputs, so together they
are a table. It saves a matrix product and a LayerNormalization at every step; it is derived from
the weights, not trained. Shapes: B batch, V = 256 symbols, G gates, H units.
"""

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from models.cells import At, Cell, CellKind, State
from models.language import LanguageModel

# What a cell's `project` uses and its `step` does not.
_PROJECTION: dict[CellKind, tuple[str, ...]] = {
    "rnn": ("weight_x",),
    "lstm": ("weight_x", "norm_x"),
    "gru": ("weight_x", "norm_x_gates", "norm_x_update"),
}


class TabulatedLanguageModel(nn.Module):
    """The steps of a `LanguageModel`, from its own weights and the derived `table (V, G*H)`.

    The table is computed in float64 and rounded once. Raises `ValueError` under batch norm, whose
    projection depends on the time step.
    """

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        if model.config.norm == "batch":
            raise ValueError("model.norm is 'batch'; what depends on the time step is no table")
        wide = copy.deepcopy(model).double()
        with torch.no_grad():
            table = _first(wide).project(wide.embedding.weight)
        self.table = nn.Parameter(table.to(model.readout.weight.dtype))
        self.stack = copy.deepcopy(model.stack)
        self.readout = copy.deepcopy(model.readout)
        first = self.stack.cells[0]
        for name in _PROJECTION[model.config.cell]:
            delattr(first, name)
        first.project = _already_projected  # type: ignore[assignment]

    def initial_state(self, batch: int) -> State:
        """Zeros: one tensor per state name of the stack."""
        return self.stack.initial_state(batch)

    def step(self, token: Tensor, state: State) -> tuple[Tensor, State]:
        """One step: `token (B,)` to logits `(B, V)`, and the state after."""
        y, state = self.stack.step(F.embedding(token, self.table), state)
        return self.readout(y), state


def _first(model: LanguageModel) -> Cell:
    cell = model.stack.cells[0]
    assert isinstance(cell, Cell)
    return cell


def _already_projected(x: Tensor, at: At = None) -> Tensor:
    return x
