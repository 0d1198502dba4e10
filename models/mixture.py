"""The next pen point as a mixture of bivariate Gaussians and a pen that may lift (Graves 2013).

Shapes: B rows, M Gaussians, R = 6M + 1 raw outputs of a network; leading axes may be any.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from contract.mixture import LOG_SIGMA, STEEPEST_TILT


def _components(raw: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Raw outputs `(..., R)` by meaning: the logit of lifting the pen `(..., 1)`, the logits of the
    Gaussians `(..., M)`, and their means, log sigmas and tilts side by side `(..., 5M)`."""
    m = (raw.shape[-1] - 1) // 6
    pen_up, weight, gaussians = raw.split([1, m, 5 * m], dim=-1)
    return pen_up, weight, gaussians


def _within_limits(gaussians: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of X Gaussians `(..., 5X)`: the means and log sigmas in x and y `(..., 2X)`, and the tilts
    before their tanh `(..., X)` (before eq. 19-22), with the limits on width and tilt applied."""
    x = gaussians.shape[-1] // 5
    mean, log_sigma, tilt = gaussians.split([2 * x, 2 * x, x], dim=-1)
    return mean, _between(log_sigma, *LOG_SIGMA), _between(tilt, -STEEPEST_TILT, STEEPEST_TILT)


def log_density(raw: Tensor, point: Tensor) -> Tensor:
    """`log Pr(point)` in nats (eq. 23-26): `raw (..., R)` and `point (..., 3)` to `(...)`.

    Sums of exponentials are taken relative to the largest, and `1 - rho^2 = 1 / cosh^2` without
    the difference, so float32 keeps its digits where Gaussians are narrow or tilted.
    """
    pen_up, weight, gaussians = _components(raw)
    mean, log_sigma, tilt = _within_limits(gaussians)
    dx, dy, up = point.split(1, dim=-1)
    mean_x, mean_y = mean.chunk(2, dim=-1)  # (..., M)
    log_sigma_x, log_sigma_y = log_sigma.chunk(2, dim=-1)
    x = (dx - mean_x) * torch.exp(-log_sigma_x)
    y = (dy - mean_y) * torch.exp(-log_sigma_y)
    # log cosh t = |t| + log((1 + exp(-2|t|)) / 2)
    log_cosh = tilt.abs() + F.softplus(-2 * tilt.abs()) - math.log(2)
    # (x^2 + y^2 - 2 rho x y) / (1 - rho^2), as a sum of squares in which nothing cancels.
    along, across = x + y, x - y
    distance = (
        across * across * (1 + torch.exp(2 * tilt)) + along * along * (1 + torch.exp(-2 * tilt))
    ) / 4
    log_norm = log_cosh - log_sigma_x - log_sigma_y - math.log(2 * math.pi)
    log_mixture = torch.logsumexp(F.log_softmax(weight, -1) + log_norm - distance / 2, -1)
    log_pen = -F.softplus(torch.where(up > 0.5, -pen_up, pen_up))
    return log_mixture + log_pen.squeeze(-1)


def sample(raw: Tensor, uniform: Tensor, normal: Tensor, bias: Tensor) -> Tensor:
    """Draw a point: `raw (B, R)`, `uniform (B,)` in (0, 1), `normal (B, 2)`, `bias (B,)` to (B, 3).

    Part of the served graph. One uniform decides both the pen and the Gaussian, as an inverse CDF
    over the 2M cases: the pen lifts with each Gaussian, then it stays with each. `bias` sharpens
    weights and widths (eq. 61-62); 0 is the distribution as learned.
    """
    pen_up, weight, _ = _components(raw)
    neat = bias.unsqueeze(-1)  # (B, 1)
    weight = weight * (1 + neat)
    mass = torch.exp(weight - weight.amax(-1, keepdim=True))  # (B, M)
    lift, stay = mass * torch.sigmoid(pen_up), mass * torch.sigmoid(-pen_up)
    cumulative = torch.cat([lift, stay], -1).cumsum(-1)
    # The first case that reaches the target, as for symbols (sampling.py).
    target = uniform.unsqueeze(-1) * cumulative[:, -1:]
    case = torch.minimum(cumulative, target).argmax(-1, keepdim=True)  # (B, 1)
    count = mass.shape[-1]
    lifted = case < count
    # The five numbers of its Gaussian, from where they stand among the raw outputs.
    part = torch.arange(5, device=raw.device)
    places = case + torch.where(lifted, 1 + count + count * part, 1 + count * part)  # (B, 5)
    chosen = _within_bounds(raw.gather(-1, places), part)
    mean, log_sigma, tilt = chosen.split([2, 2, 1], dim=-1)
    sigma = torch.exp(log_sigma - neat)  # (B, 2)
    rho = torch.tanh(tilt)
    along, across = normal.split(1, dim=-1)
    noise = torch.cat([along, rho * along + torch.sqrt(1 - rho * rho) * across], dim=-1)
    return torch.cat([mean + sigma * noise, lifted.to(raw.dtype)], dim=-1)


def _within_bounds(gaussian: Tensor, part: Tensor) -> Tensor:
    """The limits on width and tilt, of one Gaussian a row `(B, 5)`: one operator for each end."""
    most = torch.where(part < 4, LOG_SIGMA[1], STEEPEST_TILT).masked_fill(part < 2, math.inf)
    least = torch.where(part < 4, LOG_SIGMA[0], -STEEPEST_TILT).masked_fill(part < 2, -math.inf)
    most, least = most.to(gaussian.dtype), least.to(gaussian.dtype)
    return torch.maximum(torch.minimum(gaussian, most), least)


def _between(a: Tensor, least: float, most: float) -> Tensor:
    # Not clamp: Where is on the allow-list of served graphs, Clip is not.
    return torch.where(a < least, least, torch.where(a > most, most, a))
