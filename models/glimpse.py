"""Selective attention: a grid of Gaussian filters over a picture (Gregor et al. 2015, section 3.2).

Shapes: B rows, H units, S pixels a side, N filters a side.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

# exp(-40) is nothing beside 1 even in float64. Left alone, the tails of a Gaussian are subnormal
# numbers, with which writing a patch takes up to four times as long (lab/tasks/draw/README.md).
_LEAST_EXPONENT = -40.0


class Place(NamedTuple):
    """Where a grid lies and how it looks: `centre (B, 2)` across and down, 1 to S inside the
    picture, and `stride (B, 1)` between filters, both in pixels; `sharpness (B, 1)`, which is
    1 / (2 variance), and `intensity (B, 1)`."""

    centre: Tensor
    stride: Tensor
    sharpness: Tensor
    intensity: Tensor


class Filters(NamedTuple):
    """The filters of a grid across and down, `(B, N, S)` each: every filter sums to 1."""

    across: Tensor
    down: Tensor


class GaussianGrid(nn.Module):
    """N x N Gaussians on a picture of S x S pixels, placed by a linear map of a hidden state."""

    positions: Tensor
    offsets: Tensor

    def __init__(self, units: int, side: int, filters: int, intensity: float = 1.0) -> None:
        super().__init__()
        self.side, self.filters = side, filters
        self.place_of = nn.Linear(units, 5)
        self._begin_with_all(intensity)
        # Buffers, because a graph may have no constant of 28 elements.
        self.register_buffer("positions", torch.arange(side) + 1.0)
        self.register_buffer("offsets", torch.arange(filters) - (filters - 1) / 2)

    def _begin_with_all(self, intensity: float) -> None:
        """Have a state of zeros cut the picture into N x N cells, each filter as wide as its cell.

        In the paper it puts the outermost filters on the outermost pixels, one pixel wide. Four of
        them then stand in the corners, where a digit has no ink: they would see nothing to learn
        from.
        """
        cell = self.side / self.filters  # pixels
        log_variance, log_stride = 2 * math.log(cell / 2), math.log(cell / self._widest)
        with torch.no_grad():
            self.place_of.bias.copy_(
                torch.tensor([0, 0, log_variance, log_stride, math.log(intensity)])
            )

    @property
    def _widest(self) -> float:
        return (self.side - 1) / (self.filters - 1)

    def place(self, h: Tensor) -> Place:
        """`h (B, H)` to where it places the grid (eq. 21-24)."""
        centre, log_variance, log_stride, log_intensity = self.place_of(h).split([2, 1, 1, 1], -1)
        return Place(
            (self.side + 1) / 2 * (centre + 1),
            self._widest * torch.exp(log_stride),
            torch.exp(-log_variance) / 2,
            torch.exp(log_intensity),
        )

    def filters_at(self, place: Place) -> Filters:
        """The Gaussians of both directions, each divided by its sum over the pixels (eq. 25-26)."""
        means = place.centre.unsqueeze(-1) + (self.offsets * place.stride).unsqueeze(1)  # (B, 2, N)
        distance = self.positions - means.unsqueeze(-1)  # (B, 2, N, S), of eq. 19-20
        exponent = -place.sharpness.unsqueeze(-1).unsqueeze(-1) * (distance * distance)
        # Far outside the picture every exponential is 0, their ratios are not. The sum is the last
        # of a cumulative one, whose kernel gives a row its bits in any batch.
        below = exponent - exponent.amax(-1, keepdim=True)
        bumps = torch.exp(torch.where(below > _LEAST_EXPONENT, below, _LEAST_EXPONENT))
        return Filters(*(bumps / bumps.cumsum(-1)[..., -1:]).unbind(1))


def extract(pictures: Tensor, filters: Filters, intensity: Tensor) -> Tensor:
    """What a grid sees: K pictures a row, `(B, K, S, S)`, to `(B, K, N, N)`:
    `intensity F_Y x F_X'` (eq. 27)."""
    across, down = (bank.unsqueeze(1) for bank in filters)
    seen = torch.matmul(torch.matmul(down, pictures), across.transpose(-1, -2))
    return intensity.unsqueeze(-1).unsqueeze(-1) * seen


def insert(patch: Tensor, filters: Filters, intensity: Tensor) -> Tensor:
    """What a grid leaves: `(B, N, N)` to `(B, S, S)`, `F_Y' w F_X / intensity` (eq. 29)."""
    patch = patch / intensity.unsqueeze(-1)
    return torch.matmul(torch.matmul(filters.down.transpose(1, 2), patch), filters.across)
