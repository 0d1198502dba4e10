"""The next pen point as a mixture of bivariate Gaussians and a pen that may lift (Graves 2013).

Shapes: B rows, M Gaussians, R = 6M + 1 raw outputs of a network; leading axes may be any.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

# Pen noise lies between: a narrower Gaussian fits the grid of a tablet, not a hand.
LOG_SIGMA = (-4.0, 4.0)
# tanh(5) = 0.9999: past it 1 - rho^2 has no digits left in float32.
STEEPEST_RHO = 5.0


class Mixture(NamedTuple):
    """The raw outputs by meaning, `(..., M)` each, `pen_up (..., 1)` and the rest before eq. 18-22.

    A point is `(dx, dy, up)` in units of the data; y points up.
    """

    pen_up: Tensor  # logit of lifting the pen after the point
    weight: Tensor  # logits of the Gaussians
    mean_x: Tensor
    mean_y: Tensor
    log_sigma_x: Tensor
    log_sigma_y: Tensor
    rho: Tensor  # before the tanh


def outputs_of(mixtures: int) -> int:
    """R: how many raw outputs `mixtures` Gaussians need."""
    return 6 * mixtures + 1


def split(raw: Tensor) -> Mixture:
    """Raw outputs `(..., R)` by meaning, with the limits on width and tilt applied."""
    m = (raw.shape[-1] - 1) // 6
    pen_up, weight, mean_x, mean_y, sigma_x, sigma_y, rho = raw.split([1] + [m] * 6, dim=-1)
    least, most = LOG_SIGMA
    return Mixture(
        pen_up,
        weight,
        mean_x,
        mean_y,
        _between(sigma_x, least, most),
        _between(sigma_y, least, most),
        _between(rho, -STEEPEST_RHO, STEEPEST_RHO),
    )


def log_density(raw: Tensor, point: Tensor) -> Tensor:
    """`log Pr(point)` in nats (eq. 23-26): `raw (..., R)` and `point (..., 3)` to `(...)`.

    Sums of exponentials are taken relative to the largest, and `1 - rho^2 = 1 / cosh^2` without
    the difference, so float32 keeps its digits where Gaussians are narrow or tilted.
    """
    mixture = split(raw)
    dx, dy, up = point.split(1, dim=-1)
    x = (dx - mixture.mean_x) * torch.exp(-mixture.log_sigma_x)
    y = (dy - mixture.mean_y) * torch.exp(-mixture.log_sigma_y)
    # log cosh t = |t| + log((1 + exp(-2|t|)) / 2)
    tilt = mixture.rho.abs()
    log_cosh = tilt + F.softplus(-2 * tilt) - math.log(2)
    distance = (x * x + y * y - 2 * torch.tanh(mixture.rho) * x * y) * torch.exp(2 * log_cosh)
    log_gaussian = (
        log_cosh - mixture.log_sigma_x - mixture.log_sigma_y - math.log(2 * math.pi) - distance / 2
    )
    log_mixture = torch.logsumexp(F.log_softmax(mixture.weight, -1) + log_gaussian, -1)
    log_pen = -F.softplus(torch.where(up > 0.5, -mixture.pen_up, mixture.pen_up))
    return log_mixture + log_pen.squeeze(-1)


def sample(raw: Tensor, uniform: Tensor, normal: Tensor, bias: Tensor) -> Tensor:
    """Draw a point: `raw (B, R)`, `uniform (B,)` in (0, 1), `normal (B, 2)`, `bias (B,)` to (B, 3).

    Part of the served graph. One uniform decides both the pen and the Gaussian, as an inverse CDF
    over the 2M cases: the pen lifts with each Gaussian, then it stays with each. `bias` sharpens
    weights and widths (eq. 61-62); 0 is the distribution as learned.
    """
    mixture = split(raw)
    neat = bias.unsqueeze(-1)  # (B, 1)
    weight = mixture.weight * (1 + neat)
    mass = torch.exp(weight - weight.amax(-1, keepdim=True))  # (B, M)
    up = torch.sigmoid(mixture.pen_up)
    cumulative = torch.cat([mass * up, mass * torch.sigmoid(-mixture.pen_up)], -1).cumsum(-1)
    # uniform <= 1 - 2**-24, so the product is always less than the total: a case is always found.
    beyond = cumulative > uniform.unsqueeze(-1) * cumulative[:, -1:]
    case = beyond.to(torch.float32).argmax(-1, keepdim=True)  # (B, 1)
    count = mass.shape[-1]
    lifted = case < count
    chosen = torch.where(lifted, case, case - count)
    sigma_x = torch.exp(mixture.log_sigma_x.gather(-1, chosen) - neat)
    sigma_y = torch.exp(mixture.log_sigma_y.gather(-1, chosen) - neat)
    rho = torch.tanh(mixture.rho.gather(-1, chosen))
    along, across = normal.split(1, dim=-1)
    dx = mixture.mean_x.gather(-1, chosen) + sigma_x * along
    tilted = rho * along + torch.sqrt(1 - rho * rho) * across
    dy = mixture.mean_y.gather(-1, chosen) + sigma_y * tilted
    return torch.cat([dx, dy, lifted.to(raw.dtype)], dim=-1)


def _between(a: Tensor, least: float, most: float) -> Tensor:
    # Not clamp: Max and Min are on the allow-list of served graphs, Clip is not.
    return torch.minimum(torch.maximum(a, a.new_tensor(least)), a.new_tensor(most))
