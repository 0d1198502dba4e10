"""DRAW (Gregor et al. 2015): an encoder looks at a picture, a decoder draws it, in T steps.

Shapes: T steps, B rows, P pixels, Z latent, N filters a side.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrize

from models.cells import State
from models.glimpse import GaussianGrid, extract, insert
from models.norms import NormKind
from models.stack import Dropout, Stack


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawConfig:
    """`steps` of drawing by LSTMs of `units`; `read` and `write` are the filters a side, 2 or more,
    because what is placed is the distance between them."""

    norm: NormKind = "layer"
    units: int = 128
    latent: int = 24
    steps: int = 12
    side: int = 28
    read: int = 2
    write: int = 5

    def __post_init__(self) -> None:
        for name in ("read", "write"):
            if (filters := getattr(self, name)) < 2:
                raise ValueError(f"model.{name} is {filters}; it must be 2 or more")


class Bound(NamedTuple):
    """The two terms of the evidence bound, nats of each picture `(B,)` (eq. 9-12)."""

    reconstruction: Tensor
    divergence: Tensor


class Decoder(nn.Module):
    """What draws: `h' = LSTM(h, z)`, `c' = c + write(h')` (eq. 7-8).

    The paper's canvas begins at learned biases; here it begins at zero, and they are added where
    it is looked at, so that every state begins at zero. The LSTM begins there too.
    """

    def __init__(self, config: DrawConfig) -> None:
        super().__init__()
        self.latent, self.pixels = config.latent, config.side**2
        self.stack = _lstm(config.latent, config)
        # So a patch begins with as much ink on the picture as it has itself.
        of_a_cell = (config.write / config.side) ** 2
        self.grid = GaussianGrid(config.units, config.side, config.write, of_a_cell)
        self.patch_of = nn.Linear(config.units, config.write**2)
        self.background = nn.Parameter(torch.zeros(self.pixels))

    @property
    def state_names(self) -> tuple[str, ...]:
        """The name of every state tensor, in order."""
        return (*self.stack.state_names, "canvas")

    def initial_state(self, batch: int) -> State:
        """Zeros: those of the LSTM, then the canvas `(B, P)`."""
        return (*self.stack.initial_state(batch), self.background.new_zeros(batch, self.pixels))

    def step(self, z: Tensor, state: State) -> State:
        """One stroke: `z (B, Z)` and the state before it to the state after; its first is h."""
        *recurrent, canvas = state
        h, after = self.stack.step(z, tuple(recurrent))
        place = self.grid.place(h)
        patch = self.patch_of(h).unflatten(-1, (self.grid.filters, self.grid.filters))  # (B, N, N)
        written = insert(patch, self.grid.filters_at(place), place.intensity)
        return *after, canvas + written.flatten(1)

    def logits(self, state: State) -> Tensor:
        """How sure the canvas is of each pixel, `(B, P)`; through a logistic, its probability."""
        return self.background + state[-1]

    def frame(self, state: State) -> Tensor:
        """Where the grid wrote: its centre across and down and its width in pixels, `(B, 3)`."""
        place = self.grid.place(state[0])
        return torch.cat([place.centre, (self.grid.filters - 1) * place.stride], -1)


class Draw(nn.Module):
    """The whole network: read the picture beside what is wrong with the canvas, encode, draw."""

    def __init__(self, config: DrawConfig) -> None:
        super().__init__()
        self.config = config
        self.grid = GaussianGrid(config.units, config.side, config.read)
        self.encoder = _lstm(2 * config.read**2 + config.units, config)
        self.posterior_of = nn.Linear(config.units, 2 * config.latent)
        self.decoder = Decoder(config)

    @parametrize.cached()  # under weight norm a matrix is computed once, not once a step
    def forward(self, pictures: Tensor, noise: Tensor) -> Bound:
        """`pictures (B, P)` of 0 and 1, drawn with `noise (T, B, Z)` from N(0, 1)."""
        batch = len(pictures)
        state = self.decoder.initial_state(batch)
        seen = self.encoder.initial_state(batch)
        divergence = noise.new_zeros(batch)
        for draw in noise:
            h, seen = self.encoder.step(torch.cat([self.read(pictures, state), state[0]], -1), seen)
            mean, log_deviation = self.posterior_of(h).chunk(2, dim=-1)  # eq. 1-2
            divergence = divergence + kl_from_normal(mean, log_deviation)
            state = self.decoder.step(mean + torch.exp(log_deviation) * draw, state)
        logits = self.decoder.logits(state)
        wrong = F.binary_cross_entropy_with_logits(logits, pictures, reduction="none")
        return Bound(wrong.sum(-1), divergence)

    def read(self, pictures: Tensor, state: State) -> Tensor:
        """The picture and its difference to the canvas, as the decoder's h wants to see them:
        `(B, 2 N N)` (eq. 3-4)."""
        place = self.grid.place(state[0])
        filters = self.grid.filters_at(place)
        error = pictures - torch.sigmoid(self.decoder.logits(state))
        both = torch.stack([pictures, error], 1).unflatten(-1, (self.grid.side, self.grid.side))
        return extract(both, filters, place.intensity).flatten(1)

    @parametrize.cached()
    def draw(self, noise: Tensor) -> tuple[Tensor, Tensor, State]:
        """Pictures out of noise (eq. 13-16): `(T, B, Z)` to the canvas's probabilities after each
        step `(T, B, P)`, the frames `(T, B, 3)`, and the state after the last."""
        state = self.decoder.initial_state(noise.shape[1])
        pictures, frames = [], []
        for z in noise:
            state = self.decoder.step(z, state)
            pictures.append(torch.sigmoid(self.decoder.logits(state)))
            frames.append(self.decoder.frame(state))
        return torch.stack(pictures), torch.stack(frames), state


def kl_from_normal(mean: Tensor, log_deviation: Tensor) -> Tensor:
    """Nats from N(0, 1) to N(mean, deviation), summed over Z: `(B, Z)` to `(B,)` (eq. 11)."""
    variance = torch.exp(2 * log_deviation)
    return (mean * mean + variance - 2 * log_deviation - 1).sum(-1) / 2


def _lstm(inputs: int, config: DrawConfig) -> Stack:
    return Stack(inputs, config.units, 1, "lstm", config.norm, Dropout(), config.steps)
