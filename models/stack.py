"""Recurrent layers over time, with skip connections from every layer to the output.

Shapes: T time, B batch, E inputs, H units, L layers. State: one flat tuple, layer by layer; under
batch norm the time step of each row, int64 `(B,)`, comes last.
"""

from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from models.cells import CELLS, At, Cell, CellKind, State, require_cell
from models.norms import LONGEST_STEP, NormKind
from models.recurrence import recurrent_product


class Dropout(NamedTuple):
    """Dropout rates of the three paths of a recurrent layer; 0 everywhere when serving."""

    input: float = 0.0
    recurrent: float = 0.0
    output: float = 0.0


_MOST_DROPPED = 0.99
# More than anybody trains; products of sizes far beyond it are no numbers of PyTorch.
_LARGEST = 2**20
# Layers are made one by one, and a graph of 200 is larger than one that is served.
_LARGEST_OF = {"layers": 64}


def require_from(least: int, **sizes: int) -> None:
    """Raise `ValueError` for a size of a model's configuration, by its name, that is no whole
    number, below `least` or beyond what anybody trains."""
    for name, size in sizes.items():
        most = _LARGEST_OF.get(name, _LARGEST)
        if type(size) is not int:  # a manifest may say anything, true as well
            raise ValueError(f"model.{name} is {size!r}; it must be a whole number")
        if size < least:
            raise ValueError(f"model.{name} is {size}; it must be {least} or more")
        if size > most:
            raise ValueError(f"model.{name} is {size}; it must be at most {most}")


def require_rates(**rates: float) -> None:
    """Raise `ValueError` for a rate of dropout, by its name, that is none."""
    for name, rate in rates.items():
        if not 0 <= rate <= _MOST_DROPPED:
            raise ValueError(f"model.{name} is {rate}; it must be from 0 to {_MOST_DROPPED}")


def dropout_mask(like: Tensor, rate: float) -> Tensor:
    """Zeros with probability `rate`, else `1 / (1 - rate)`, shaped as `like`.

    One random byte decides one unit, so the rate is a multiple of 1/256 and eight units share a
    draw: `F.dropout` spends 15% of a CPU training step on its generator, this 2%.
    """
    words = torch.empty(-(-like.numel() // 8), dtype=torch.int64, device=like.device)
    draws = words.random_(-(2**63), None).view(torch.uint8)[: like.numel()].view(like.shape)
    threshold = round(rate * 256)
    return (draws >= threshold).to(like.dtype).mul_(256 / (256 - threshold))


class Stack(nn.Module):
    """L cells on top of each other; the output is the h of all layers side by side, `L*H` wide."""

    def __init__(
        self,
        inputs: int,
        units: int,
        layers: int,
        cell: CellKind,
        norm: NormKind,
        dropout: Dropout,
        longest_step: int = LONGEST_STEP,
    ) -> None:
        super().__init__()
        require_cell(cell)
        require_from(1, units=units, layers=layers)
        require_rates(**{f"{name}_dropout": rate for name, rate in dropout._asdict().items()})
        widths = [inputs] + [units] * (layers - 1)
        self.cells = nn.ModuleList(
            CELLS[cell](width, units, norm, longest_step) for width in widths
        )
        self.dropout = dropout
        self.counts_steps = norm == "batch"

    @property
    def state_names(self) -> tuple[str, ...]:
        """The name of every state tensor, in order: `h0, c0, h1, c1, ..., step`."""
        names = [f"{n}{i}" for i, cell in enumerate(self._cells()) for n in cell.state_names]
        return tuple(names + ["step"] * self.counts_steps)

    def initial_state(self, batch: int) -> State:
        """Zeros: a tensor per state name."""
        state = [s for cell in self._cells() for s in cell.initial_state(batch)]
        count = [state[0].new_zeros(batch, dtype=torch.int64)] * self.counts_steps
        return tuple(state + count)

    @parametrize.cached()  # under weight norm a matrix is computed once, not once a step
    def forward(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """All steps: `x (T, B, E)` and the state before them to `(T, B, L*H)` and the state after.

        Each layer projects all its inputs in one matrix product, then steps through them.
        """
        outputs: list[Tensor] = []
        after: list[Tensor] = []
        at = self._time(state)
        if at is not None:
            at = at + torch.arange(len(x), device=at.device).unsqueeze(-1)  # (T, B)
        for cell, before in self._layers(state):
            if self.training and self.dropout.input > 0:
                x = x * dropout_mask(x, self.dropout.input)
            x, last = self._run(cell, cell.project(x, at), before, at)
            outputs.append(x)
            after.extend(last)
        if at is not None:
            after.append(at[-1] + 1)
        y = torch.cat(outputs, dim=-1) if len(outputs) > 1 else x
        if self.training and self.dropout.output > 0:
            y = y * dropout_mask(y, self.dropout.output)
        return y, tuple(after)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """One step without dropout: `x (B, E)` to `(B, L*H)` and the state after it."""
        outputs: list[Tensor] = []
        after: list[Tensor] = []
        at = self._time(state)
        for cell, before in self._layers(state):
            last = cell.step(cell.project(x, at), before, at)
            x = last[0]
            outputs.append(x)
            after.extend(last)
        if at is not None:
            after.append(at + 1)
        return torch.cat(outputs, dim=-1) if len(outputs) > 1 else x, tuple(after)

    def _run(self, cell: Cell, projected: Tensor, state: State, at: At) -> tuple[Tensor, State]:
        # unbind, not indexing: the backward of projected[t] fills a whole (T, B, G*H) per step.
        steps = projected.unbind(0)
        times = [None] * len(steps) if at is None else at.unbind(0)
        masks: list[Tensor] | list[None] = [None] * len(steps)
        if self.training and self.dropout.recurrent > 0:
            like = projected[..., : cell.units]
            masks = list(dropout_mask(like, self.dropout.recurrent).unbind(0))
        product = recurrent_product(cell.weight_h)
        outputs = []
        for step, time, keep in zip(steps, times, masks, strict=True):
            state = cell.step(step, state, time, keep, product)
            outputs.append(state[0])
        return torch.stack(outputs), state

    def _time(self, state: State) -> At:
        return state[-1] if self.counts_steps else None

    def _layers(self, state: State) -> list[tuple[Cell, State]]:
        cells = self._cells()
        size = len(cells[0].state_names)
        return [(cell, state[i * size : (i + 1) * size]) for i, cell in enumerate(cells)]

    def _cells(self) -> list[Cell]:
        return cast("list[Cell]", list(self.cells))
