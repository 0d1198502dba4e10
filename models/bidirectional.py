"""A recurrence that reads sequences both ways, whatever its cell and its norm.

What stands behind the end of a shorter sequence of a batch is padding. Both readers come to it
last, because only what counts is reversed, so it changes nothing that counts; except under batch
norm, whose statistics in training see it (Cooijmans et al. 2016, section 5.4).
Shapes: T time, B batch, E inputs, H units. `lengths (B,)` int64, 1 to T.
"""

import torch
from torch import Tensor, nn

from models.cells import CellKind, State
from models.norms import LONGEST_STEP, NormKind
from models.stack import Dropout, Stack


def reverse(x: Tensor, lengths: Tensor) -> Tensor:
    """`x (T, B, ...)` with each sequence turned around within its length, padding where it was.

    It undoes itself.
    """
    time = torch.arange(len(x), device=x.device).unsqueeze(-1)  # (T, 1)
    source = torch.where(time < lengths, lengths - 1 - time, time)  # (T, B)
    return x[source, torch.arange(x.shape[1], device=x.device)]


class Bidirectional(nn.Module):
    """Two layers of cells side by side, one `ahead` from the first step, one `back` from the last.

    State: that of `ahead`, then that of `back`.
    """

    def __init__(
        self,
        inputs: int,
        units: int,
        cell: CellKind,
        norm: NormKind,
        longest_step: int = LONGEST_STEP,
    ) -> None:
        super().__init__()
        self.units = units
        self.ahead = Stack(inputs, units, 1, cell, norm, Dropout(), longest_step)
        self.back = Stack(inputs, units, 1, cell, norm, Dropout(), longest_step)

    @property
    def state_names(self) -> tuple[str, ...]:
        """The name of every state tensor, in order."""
        ahead = (f"ahead_{name}" for name in self.ahead.state_names)
        return (*ahead, *(f"back_{name}" for name in self.back.state_names))

    def initial_state(self, batch: int) -> State:
        """Zeros: a tensor per state name."""
        return (*self.ahead.initial_state(batch), *self.back.initial_state(batch))

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """`x (T, B, E)` to what both know at every step, `(T, B, 2H)` and 0 in the padding, and to
        what each knows at its own end, `(B, 2H)`."""
        ahead, back = self.both(x, reverse(x, lengths))
        back = reverse(back, lengths)
        real = torch.arange(len(x), device=x.device).unsqueeze(-1) < lengths  # (T, B)
        y = torch.cat([ahead, back], dim=-1) * real.unsqueeze(-1)
        rows = torch.arange(x.shape[1], device=x.device)
        return y, torch.cat([ahead[lengths - 1, rows], back[0]], dim=-1)

    def both(self, x: Tensor, reversed_x: Tensor) -> tuple[Tensor, Tensor]:
        """What each reads of its own order, `(T, B, E)` to `(T, B, H)`, padding included."""
        ahead, _ = self.ahead(x, self.ahead.initial_state(x.shape[1]))
        back, _ = self.back(reversed_x, self.back.initial_state(x.shape[1]))
        return ahead, back

    def step(self, x: Tensor, reversed_x: Tensor, state: State) -> tuple[Tensor, Tensor, State]:
        """One step of each, from either end: twice `(B, E)` to twice `(B, H)`, and the state."""
        size = len(self.ahead.state_names)
        ahead, after_ahead = self.ahead.step(x, state[:size])
        back, after_back = self.back.step(reversed_x, state[size:])
        return ahead, back, (*after_ahead, *after_back)
