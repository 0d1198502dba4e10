"""How hidden states and gradients fare over 2,000 steps of a fresh LSTM, for every normalisation.

Shapes: T steps, B rows, H units.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from models.cells import LSTMCell
from models.norms import BatchNorm, NormKind

STEPS = 2000
# Each norm with the gain it starts from, then layer and batch norm with each other's: the gain
# decides more than the statistics do.
RUNS: tuple[tuple[NormKind, float | None], ...] = (
    ("layer", 1.0),
    ("batch", BatchNorm.INITIAL_GAIN),
    ("weight", None),
    ("none", None),
    ("layer", BatchNorm.INITIAL_GAIN),
    ("batch", 1.0),
)
_ROWS, _INPUTS, _UNITS = 8, 32, 64
_SEED = 2016


@dataclass(frozen=True, slots=True)
class Growth:
    """At each step: the norm of h, and of the gradient that a loss on the last h has in the state
    (h, c) there; each the root mean square over rows."""

    norm: NormKind
    gain: float | None
    hidden: Tensor
    gradient: Tensor

    @property
    def label(self) -> str:
        """The norm, and its gain if it has one."""
        return self.norm if self.gain is None else f"{self.norm}, gain {self.gain:g}"


def growth(norm: NormKind, gain: float | None = None, steps: int = STEPS) -> Growth:
    """One LSTM in training mode, its weights and normal inputs drawn from a fixed seed, float64.

    The loss is a fixed random direction of the last hidden state. All norms have the same matrices;
    weight norm starts as no norm at all, so their results are equal. `gain` sets all gains.
    """
    torch.manual_seed(_SEED)
    cell = LSTMCell(_INPUTS, _UNITS, norm).double().train()
    for name, parameter in cell.named_parameters():
        if gain is not None and name.endswith(".weight"):
            nn.init.constant_(parameter, gain)
    generator = torch.Generator().manual_seed(_SEED)
    x = torch.randn((steps, _ROWS, _INPUTS), generator=generator, dtype=torch.float64)
    direction = torch.randn(_UNITS, generator=generator, dtype=torch.float64)
    at = torch.arange(steps).unsqueeze(-1).expand(-1, _ROWS)
    h, c = cell.initial_state(_ROWS)
    hs, cs = [], []
    for projected, time in zip(cell.project(x, at).unbind(0), at, strict=True):
        # Copies, because h was made of c: the gradient in c is of what c does from here on.
        h, c = (s.clone() for s in cell.step(projected, (h, c), time))
        hs.append(h)
        cs.append(c)
    loss = (h @ direction / direction.norm()).sum()  # rows are independent but for batch norm
    gradients = torch.autograd.grad(loss, [*hs, *cs], materialize_grads=True)
    in_h, in_c = torch.stack(gradients[:steps]), torch.stack(gradients[steps:])
    return Growth(
        norm,
        gain,
        _size(torch.stack(hs)),
        _size(torch.cat([in_h, in_c], dim=-1)),
    )


def _size(vectors: Tensor) -> Tensor:
    """`(T, B, H)` to `(T,)`."""
    return vectors.detach().square().sum(-1).mean(-1).sqrt()
