"""The mixture of a pen point: its density against torch.distributions, its sampler against it."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributions import Bernoulli, Categorical, MixtureSameFamily, MultivariateNormal

from contract.mixture import LOG_SIGMA, STEEPEST_TILT, outputs_of
from models.mixture import log_density, sample

M = 4
_DRAWS = 20_000
_LEAST, _MOST = 2.0**-24, 1 - 2.0**-24


def raw(rows: int, seed: int = 0, scale: float = 1.0) -> Tensor:
    """Raw outputs `(B, R)` in float64."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, outputs_of(M), generator=generator, dtype=torch.float64) * scale


def one(**parts: list[float]) -> Tensor:
    """Raw outputs of one row in float64 by part; zeros where nothing is said."""
    sizes = {"pen_up": 1, "weight": M, "mean": 2 * M, "log_sigma": 2 * M, "tilt": M}
    values = [v for name, size in sizes.items() for v in parts.get(name, [0.0] * size)]
    return torch.tensor([values], dtype=torch.float64)


def parts(outputs: Tensor) -> dict[str, Tensor]:
    """A plain reading of raw outputs `(B, R)` (Graves 2013, eq. 18-22)."""
    e = outputs.unbind(-1)
    weight, x, y, sx, sy, tilt = (torch.stack(e[1 + i * M : 1 + (i + 1) * M], -1) for i in range(6))
    sigma = torch.stack([sx, sy], -1).clamp(*LOG_SIGMA).exp()  # (B, M, 2)
    rho = torch.tanh(tilt.clamp(-STEEPEST_TILT, STEEPEST_TILT))
    return {
        "up": torch.sigmoid(e[0]),
        "weight": weight.softmax(-1),
        "mean": torch.stack([x, y], -1),
        "sigma": sigma,
        "rho": rho,
    }


def covariance(p: dict[str, Tensor]) -> Tensor:
    (x, y), rho = p["sigma"].unbind(-1), p["rho"]
    rows = [torch.stack([x * x, rho * x * y], -1), torch.stack([rho * x * y, y * y], -1)]
    return torch.stack(rows, -2)  # (B, M, 2, 2)


def reference(outputs: Tensor, point: Tensor) -> Tensor:
    p = parts(outputs)
    gaussians = MultivariateNormal(p["mean"], covariance(p))
    ink = MixtureSameFamily(Categorical(p["weight"]), gaussians).log_prob(point[..., :2])
    return ink + Bernoulli(p["up"]).log_prob(point[..., 2])


def draws(outputs: Tensor, bias: float = 0.0, seed: int = 5) -> Tensor:
    """Many points `(N, 3)` of one row of raw outputs, the uniforms on an even grid."""
    generator = torch.Generator().manual_seed(seed)
    uniform = (torch.arange(_DRAWS, dtype=torch.float64) + 0.5) / _DRAWS
    normal = torch.randn(_DRAWS, 2, generator=generator, dtype=torch.float64)
    wide = outputs.expand(_DRAWS, -1)
    return sample(wide, uniform, normal, torch.full((_DRAWS,), bias, dtype=torch.float64))


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0])
def test_the_density_is_that_of_torch(scale: float) -> None:
    outputs = raw(300, 1, scale)
    generator = torch.Generator().manual_seed(2)
    point = torch.randn(300, 3, generator=generator, dtype=torch.float64) * 2
    point[:, 2] = (point[:, 2] > 0).double()
    found, expected = log_density(outputs, point), reference(outputs, point)
    # The reference factors its covariance, and loses digits where a Gaussian is tilted.
    assert ((found - expected).abs() / expected.abs().clamp(min=1)).max() < 1e-8
    shifted = outputs.clone()
    shifted[:, 1] += 1e-3
    assert (log_density(shifted, point) - expected).abs().max() > 1e-5


def test_the_density_takes_any_leading_axes() -> None:
    outputs, point = raw(12), torch.ones(12, 3, dtype=torch.float64)
    flat = log_density(outputs, point)
    folded = log_density(outputs.view(3, 4, -1), point.view(3, 4, 3))
    assert torch.equal(folded, flat.view(3, 4))


def test_the_density_has_a_total_of_one() -> None:
    outputs = one(weight=[0.0, 1, 2, -1], mean=[0, 1, -1, 0, 1, 0, 0, -1], tilt=[0, 1, -1, 0.5])
    axis = torch.linspace(-9, 9, 361, dtype=torch.float64)
    x, y = torch.meshgrid(axis, axis, indexing="ij")
    total = 0.0
    for up in (0.0, 1.0):
        points = torch.stack([x.flatten(), y.flatten(), torch.full((x.numel(),), up)], -1)
        density = log_density(outputs.expand(len(points), -1), points).exp()
        total += density.sum().item() * (18 / 360) ** 2
    assert total == pytest.approx(1, abs=1e-6)


_EXTREMES = {
    "narrow": one(log_sigma=[-9.0] * 2 * M, mean=[0.1, 0, 0, 0, 0.1, 0, 0, 0]),
    "wide": one(log_sigma=[9.0] * 2 * M),
    "tilted": one(tilt=[40.0, -40, 4.9, -4.9]),
    "narrow and tilted": one(log_sigma=[-9.0] * 2 * M, tilt=[40.0, -40, 4.9, -4.9]),
    "sure of the pen": one(pen_up=[200.0]),
    "sure of a Gaussian": one(weight=[300.0, -300, 0, 10]),
    "far away": one(mean=[1e4] * 2 * M),
}


@pytest.mark.parametrize("extreme", _EXTREMES)
@pytest.mark.parametrize("up", [0.0, 1.0])
def test_float32_keeps_its_digits_at_the_extremes(extreme: str, up: float) -> None:
    outputs = _EXTREMES[extreme].float().requires_grad_()
    point = torch.tensor([[0.1, 0.1, up]])
    found = log_density(outputs, point)
    truth = log_density(outputs.detach().double(), point.double())
    assert torch.isfinite(found).all()
    assert ((found - truth).abs() / truth.abs().clamp(min=1)).max() < 1e-5
    found.sum().backward()
    assert outputs.grad is not None
    assert torch.isfinite(outputs.grad).all()


def test_plain_float32_would_lose_them() -> None:
    p = {name: part.float() for name, part in parts(_EXTREMES["far away"]).items()}
    density = MultivariateNormal(p["mean"], covariance(p)).log_prob(torch.zeros(2)).exp()
    assert (p["weight"] * density).sum().log().isinf().all()


def test_a_limit_on_width_and_tilt_leaves_no_gradient_beyond_it() -> None:
    outputs = one(log_sigma=[-9.0] * 2 * M, tilt=[9.0] * M).requires_grad_()
    log_density(outputs, torch.zeros(1, 3, dtype=torch.float64)).sum().backward()
    assert outputs.grad is not None
    assert (outputs.grad[:, 1 + 3 * M :] == 0).all()


def test_frequencies_are_those_of_the_density() -> None:
    # Gaussians far enough apart that a point tells which one it came from.
    outputs = one(
        pen_up=[-0.8],
        weight=[0.0, 0.7, 1.4, -0.6],
        mean=[-60, -20, 20, 60, 5, -5, 5, -5],
        log_sigma=[0.0, 0.5, -0.5, 1, 0.3, -0.2, 0, 0.8],
        tilt=[0.0, 1.0, -1.5, 0.4],
    )
    p, points = parts(outputs), draws(outputs)
    standard_error = 4 / math.sqrt(_DRAWS)
    assert points[:, 2].mean().item() == pytest.approx(p["up"].item(), abs=standard_error)
    near = (points[:, None, 0] - p["mean"][0, :, 0]).abs().argmin(-1)
    for m in range(M):
        mine = points[near == m]
        assert len(mine) / _DRAWS == pytest.approx(p["weight"][0, m].item(), abs=standard_error)
        assert mine[:, 2].mean().item() == pytest.approx(p["up"].item(), abs=0.03)
        standard = (mine[:, :2] - p["mean"][0, m]) / p["sigma"][0, m]
        bound = 4.5 / math.sqrt(len(mine))
        assert standard.mean(0).abs().max() < bound
        expected = torch.eye(2, dtype=torch.float64)
        expected[0, 1] = expected[1, 0] = p["rho"][0, m]
        assert (torch.cov(standard.T) - expected).abs().max() < 1.5 * bound


def test_the_mean_score_of_draws_is_the_entropy_of_the_density() -> None:
    outputs = raw(1, 7)
    p = parts(outputs)
    gaussians = MultivariateNormal(p["mean"][0], covariance(p)[0])
    torch.manual_seed(1)
    ink = MixtureSameFamily(Categorical(p["weight"][0]), gaussians).sample((_DRAWS,))
    theirs = torch.cat([ink, Bernoulli(p["up"]).sample((_DRAWS,))], -1)
    scores = [log_density(outputs.expand(_DRAWS, -1), x) for x in (theirs, draws(outputs))]
    spread = scores[0].std().item() / math.sqrt(_DRAWS)
    assert abs((scores[0].mean() - scores[1].mean()).item()) < 5 * spread


@pytest.mark.parametrize("bias", [0.0, 0.5, 2.0, 5.0])
def test_bias_sharpens_weights_and_widths_alike(bias: float) -> None:
    outputs = one(
        pen_up=[-1.0],
        weight=[0.0, 0.2, 0.4, 0.1],
        mean=[-80, -30, 30, 80, 0, 0, 0, 0],
        log_sigma=[0.5] * 2 * M,
        tilt=[0.5] * M,
    )
    p, points = parts(outputs), draws(outputs, bias)
    sharper = (p["weight"].log() * (1 + bias)).softmax(-1)[0]  # eq. 62
    near = (points[:, None, 0] - p["mean"][0, :, 0]).abs().argmin(-1)
    shares = torch.bincount(near, minlength=M) / _DRAWS
    assert (shares - sharper).abs().max() < 0.002  # the uniforms are a grid
    best = points[near == 2, :2] - p["mean"][0, 2]
    assert best.std(0).mean().item() == pytest.approx(math.exp(0.5 - bias), rel=0.03)  # eq. 61
    assert torch.corrcoef(best.T)[0, 1].item() == pytest.approx(math.tanh(0.5), abs=0.03)
    # The pen is not biased.
    assert points[:, 2].mean().item() == pytest.approx(p["up"].item(), abs=0.002)


@pytest.mark.parametrize("tilt", [-50.0, 50.0])
@pytest.mark.parametrize(("log_sigma", "limit"), [(-9.0, LOG_SIGMA[0]), (9.0, LOG_SIGMA[1])])
def test_a_draw_keeps_the_limits_of_the_density(
    log_sigma: float, limit: float, tilt: float
) -> None:
    outputs = one(log_sigma=[log_sigma] * 2 * M, tilt=[tilt] * M).expand(2, -1)
    uniform, bias = torch.tensor([[0.5, 0.5], [0.0, 0.0]]).double()
    drawn = sample(outputs, uniform, torch.eye(2).double(), bias)[:, :2]
    width, rho = math.exp(limit), math.copysign(math.tanh(STEEPEST_TILT), tilt)
    expected = torch.tensor([[width, rho * width], [0.0, width / math.cosh(STEEPEST_TILT)]])
    torch.testing.assert_close(drawn, expected.double(), rtol=1e-6, atol=0)


def test_a_bias_is_that_of_its_row() -> None:
    outputs, uniform = raw(6, 3), torch.full((6,), 0.7, dtype=torch.float64)
    normal = torch.ones(6, 2, dtype=torch.float64)
    bias = torch.tensor([0.0, 1, 0, 5, 2, 0], dtype=torch.float64)
    rows = [
        sample(*(t[i : i + 1] for t in (outputs, uniform, normal, bias))).squeeze(0)
        for i in range(6)
    ]
    assert torch.equal(sample(outputs, uniform, normal, bias), torch.stack(rows))


def test_a_draw_is_the_inverse_cdf_over_both_pens_and_all_gaussians() -> None:
    outputs = raw(400, 4)
    generator = torch.Generator().manual_seed(6)
    uniform = torch.rand(400, generator=generator, dtype=torch.float64)
    zeros = torch.zeros(400, 2, dtype=torch.float64)
    points = sample(outputs, uniform, zeros, zeros[:, 0])
    p = parts(outputs)
    up = p["up"].unsqueeze(-1).numpy()
    cases = np.concatenate([up * p["weight"].numpy(), (1 - up) * p["weight"].numpy()], -1)
    case = (cases.cumsum(-1) <= uniform.numpy()[:, None]).sum(-1)
    assert points[:, 2].tolist() == (case < M).tolist()
    assert torch.equal(points[:, :2], p["mean"][torch.arange(400), torch.from_numpy(case % M)])


@pytest.mark.parametrize("seed", range(5))
def test_small_uniforms_lift_the_pen_and_large_ones_leave_it(seed: int) -> None:
    grid = torch.linspace(_LEAST, _MOST, 2001, dtype=torch.float64)
    zeros = torch.zeros(2001, 2, dtype=torch.float64)
    lifted = sample(raw(1, seed).expand(2001, -1), grid, zeros, zeros[:, 0])[:, 2]
    assert lifted[0] == 1
    assert lifted[-1] == 0
    assert (lifted.diff() <= 0).all()


@pytest.mark.parametrize("mixtures", [1, 20, 100])
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0])
def test_every_uniform_finds_a_case_in_float32(mixtures: int, scale: float) -> None:
    rows = 4000
    outputs = torch.randn(rows, outputs_of(mixtures), generator=torch.Generator().manual_seed(8))
    outputs = outputs * scale
    noise = torch.zeros(rows, 2)
    # Where none was found the first would be taken, and the pen lifts in it.
    for pen_up, uniform, lifted in ((-50.0, _MOST, 0.0), (50.0, _LEAST, 1.0)):
        outputs[:, 0] = pen_up
        points = sample(outputs, torch.full((rows,), uniform), noise, noise[:, 0])
        assert points[:, 2].tolist() == [lifted] * rows


def test_a_uniform_of_zero_would_find_a_case_that_cannot_be() -> None:
    outputs = torch.zeros(1, outputs_of(M))
    outputs[0, 0] = -200
    assert sample(outputs, torch.zeros(1), torch.zeros(1, 2), torch.zeros(1))[0, 2] == 1
