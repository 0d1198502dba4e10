"""Handwriting networks of Graves (2013), with LN-LSTM layers: pen points in, their density out.

The synthesis network writes a given text; the prediction network writes on without one.
Shapes: T time, B batch, H units, U characters, E embedding, R = 6M + 1 raw outputs
of a mixture of M Gaussians.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from contract.alphabets import ALPHABET, WINDOW_SYMBOLS
from contract.integers import LARGEST_INPUT
from contract.mixture import outputs_of
from models.cells import CELLS, CellKind, State, require_cell
from models.norms import NormKind
from models.quantized import Precision, check_precision, round_matrices
from models.stack import Dropout, Stack, require_from
from models.window import SoftWindow

POINT = 3  # dx, dy, and 1 where the pen leaves the paper after the point


@dataclass(frozen=True, slots=True, kw_only=True)
class HandwritingConfig:
    """Hyper-parameters of a handwriting network; `window` Gaussians 0 is the prediction network,
    `precision` that of the matrices."""

    cell: CellKind = "lstm"
    norm: NormKind = "layer"
    layers: int = 2
    units: int = 400
    mixtures: int = 20
    window: int = 10
    embedding: int = 64
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        require_cell(self.cell)
        check_precision(self.precision, self.norm)
        if self.norm == "batch":
            raise ValueError("model.norm is 'batch'; a pen has no batch: 'layer', 'weight', 'none'")
        require_from(0, window=self.window)
        require_from(1, units=self.units, mixtures=self.mixtures, embedding=self.embedding)
        require_from(2 if self.window else 1, layers=self.layers)


class Text(NamedTuple):
    """What is to be written: `symbols (B, U)` int64 and how many count, `length (B,)`.

    Symbol number `length` is the end of the text; those after it are padding.
    """

    symbols: Tensor
    length: Tensor


class HandwritingModel(nn.Module):
    """Points of a pen in, raw mixture outputs of the next point out.

    The first layer sees the point and the window of the step before; the window looks where the
    first layer says; the layers above see the point, the window and the layer below.
    """

    def __init__(self, config: HandwritingConfig) -> None:
        super().__init__()
        self.config = config
        # Layer norm hides how long a point's offset is, unless a constant stands beside it.
        inputs = POINT + 1
        above = config.layers
        if config.window:
            self.first = CELLS[config.cell](inputs + config.embedding, config.units, config.norm)
            self.window = SoftWindow(
                config.units, config.window, len(ALPHABET) + 1, config.embedding, WINDOW_SYMBOLS
            )
            inputs += config.embedding + config.units
            above -= 1
        self.above = Stack(inputs, config.units, above, config.cell, config.norm, Dropout())
        self.readout = nn.Linear(config.layers * config.units, outputs_of(config.mixtures))
        if config.precision == "int8":
            round_matrices(self)

    @property
    def state_names(self) -> tuple[str, ...]:
        """The name of every state tensor, in order."""
        if not self.config.window:
            return self.above.state_names
        first = tuple(f"first_{name}" for name in self.first.state_names)
        return (*first, "kappa", "window", *self.above.state_names)

    def hidden_inputs(self) -> set[str]:
        """The names of the matrices whose inputs are hidden units, between -1 and 1."""
        layers = range(len(self.above.cells))
        names = {f"above.cells.{layer}.weight_h" for layer in layers}
        names |= {f"above.cells.{layer}.weight_x" for layer in layers[1:]}
        return names | {"first.weight_h", "window.parameters_of.weight", "readout.weight"}

    def initial_state(self, batch: int) -> State:
        """Zeros: a tensor per state name."""
        above = self.above.initial_state(batch)
        if not self.config.window:
            return above
        kappa = self.readout.weight.new_zeros(batch, self.config.window)
        window = kappa.new_zeros(batch, self.config.embedding)
        return (*self.first.initial_state(batch), kappa, window, *above)

    @parametrize.cached()
    def forward(self, points: Tensor, text: Text | None, state: State) -> tuple[Tensor, State]:
        """All steps, as in training: `points (T, B, 3)` to raw outputs `(T, B, R)`, state after.

        The prediction network takes no text. Only the first layer and its window have to go step
        by step together; the layers above project all their inputs at once.
        """
        x = _with_constant(points)
        if not self.config.window:
            y, state = self.above(self._seen(x), state)
            return self.readout(y), state
        assert text is not None, "the synthesis network needs a text"
        lower, upper = self._split(state)
        embedded, beyond = self._look(text)
        hidden, windows = [], []
        for point in x.unbind(0):
            lower, _ = self._first_step((point,), lower, embedded, beyond)
            hidden.append(lower[0])
            windows.append(lower[-1])
        h = torch.stack(hidden)  # (T, B, H)
        y, upper = self.above(self._seen(x, torch.stack(windows), h), upper)
        return self.readout(torch.cat([h, y], dim=-1)), (*lower, *upper)

    def step(
        self, point: Tensor, text: Text | None, state: State, one: Tensor | None = None
    ) -> tuple[Tensor, State, Tensor]:
        """One step, as in serving: `point (B, 3)` to raw outputs `(B, R)`, the state after it, and
        the window's weights `(B, U)`, of which there are none in the prediction network. `one
        (B, 1)` is the constant beside the point, where it need not be made at every step."""
        x = (point, torch.ones_like(point[..., :1]) if one is None else one)
        if not self.config.window:
            y, state = self.above.step(self._seen(*x), state)
            return self.readout(y), state, point.new_zeros(len(point), 0)
        assert text is not None, "the synthesis network needs a text"
        lower, upper = self._split(state)
        lower, weights = self._first_step(x, lower, *self._look(text))
        y, upper = self.above.step(self._seen(*x, lower[-1], lower[0]), upper)
        return self.readout(torch.cat([lower[0], y], dim=-1)), (*lower, *upper), weights

    def _first_step(
        self, x: tuple[Tensor, ...], lower: State, embedded: Tensor, beyond: Tensor
    ) -> tuple[State, Tensor]:
        *recurrent, kappa, window = lower
        projected = self.first.project(self._seen(*x, window))
        after = self.first.step(projected, tuple(recurrent))
        window, kappa, weights = self.window(after[0], kappa, embedded, beyond)
        return (*after, kappa, window), weights

    def _seen(self, *parts: Tensor) -> Tensor:
        """What a layer sees side by side, no larger than an integer product takes it."""
        seen = torch.cat(parts, dim=-1)
        whole = self.config.precision == "int8"
        return seen.clamp(-LARGEST_INPUT, LARGEST_INPUT) if whole else seen

    def _look(self, text: Text) -> tuple[Tensor, Tensor]:
        """The embedded text `(B, U, E)`, and where it is over `(B, U)`."""
        places = self.window.places(text.symbols.shape[1])
        # The end of the text itself, at number `length`, is still looked at.
        beyond = places > (text.length + 1).unsqueeze(-1).to(places.dtype)
        return self.window.embed(text.symbols), beyond

    def _split(self, state: State) -> tuple[State, State]:
        lower = len(self.first.state_names) + 2
        return state[:lower], state[lower:]


def _with_constant(points: Tensor) -> Tensor:
    return torch.cat([points, torch.ones_like(points[..., :1])], dim=-1)
