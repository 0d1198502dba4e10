"""Fisher information of a normalised generalised linear model, by autograd (section 5.2).

The model is `y ~ N(C f, C)` with natural parameters `f = norm(W x)`: the outputs correlate, and
their covariance C is constant, so whatever moves the Fisher information is the normalisation. Then
`F = E_x[J^T C J]`, where J is the Jacobian of f in the parameters (W, gain, bias).
Shapes: N cases, D inputs, F units, P parameters.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor
from torch.autograd.functional import jacobian as jacobian_of

from lab.analysis.invariance import KINDS, WEIGHT_SCALE, Network, random_network, summed_inputs

GLMKind = Literal["batch", "weight", "layer", "none"]
GLM_KINDS: tuple[GLMKind, ...] = (*KINDS, "none")
INPUT_FACTOR = 10.0
_CORRELATION = 0.5
# Small against W, so that the turn is proportional to the rate.
_LEARNING_RATE = 1e-3


def natural_parameters(kind: GLMKind, network: Network) -> Tensor:
    """f `(N, F)`; without a norm the gain plays no part."""
    n = network
    if kind == "none":
        return n.data @ n.weight.T + n.bias
    return summed_inputs(kind, n.weight, n.gain, n.bias, n.data)


def covariance(units: int) -> Tensor:
    """C `(F, F)`: variance 1 and the same correlation between all outputs."""
    eye = torch.eye(units, dtype=torch.float64)
    return eye + _CORRELATION * (1 - eye)


def fisher(kind: GLMKind, network: Network) -> Tensor:
    """F `(P, P)` in the order W row by row, gain, bias; the data stand for P(x)."""
    units, inputs = network.weight.shape

    def f(theta: Tensor) -> Tensor:
        weight, gain, bias = theta.split([units * inputs, units, units])
        return natural_parameters(
            kind, Network(weight.view(units, inputs), gain, bias, network.data)
        )

    theta = torch.cat([network.weight.flatten(), network.gain, network.bias])
    jacobian: Tensor = jacobian_of(f, theta)  # (N, F, P)
    return torch.einsum("nfp,fg,ngq->pq", jacobian, covariance(units), jacobian) / len(jacobian)


@dataclass(frozen=True, slots=True)
class Blocks:
    """Sizes of the parts of F that belong to the first unit. Matrices by their Frobenius norm."""

    vector: float  # its weight vector: ds^2 of steps in it
    vector_gain: float  # between its weight vector and all gains
    vector_vector: float  # between its weight vector and the second unit's
    gain: float
    along: float  # ds^2 of a unit step along the weight vector itself


def blocks(kind: GLMKind, network: Network) -> Blocks:
    """The blocks of F by what they hold."""
    matrix = fisher(kind, network)
    units, inputs = network.weight.shape
    first, second = slice(0, inputs), slice(inputs, 2 * inputs)
    gain = units * inputs
    direction = network.weight[0] / network.weight[0].norm()
    return Blocks(
        matrix[first, first].norm().item(),
        matrix[first, gain : gain + units].norm().item(),
        matrix[first, second].norm().item(),
        matrix[gain, gain].item(),
        (direction @ matrix[first, first] @ direction).item(),
    )


def weights_scaled(kind: GLMKind, network: Network, factor: float) -> Network:
    """The first weight vector times `factor`. Layer norm's statistics are shared by all units and
    only the whole matrix can grow without changing the output, so there it is the whole matrix."""
    rows = network.weight.shape[0] if kind == "layer" else 1
    scale = torch.ones(network.weight.shape[0], 1, dtype=torch.float64)
    scale[:rows] = factor
    return replace(network, weight=network.weight * scale)


def data_scaled(network: Network, factor: float) -> Network:
    """All cases times `factor`."""
    return replace(network, data=network.data * factor)


@dataclass(frozen=True, slots=True)
class Doubling:
    """What doubling the norm of a weight vector does, its direction fixed: after / before.

    The blocks of F: of the vector, of it with the gains, of it with another unit's vector, of its
    gain. A step's ds^2 is in the first, so its length goes with the root. Without a norm there is
    no gain.
    """

    norm: GLMKind
    output_change: float
    squared_length: float
    length: float
    vector_gain: float | None
    vector_vector: float
    gain: float | None
    gradient: float
    turn: float  # of the vector, in one step of gradient descent


def doubling(kind: GLMKind) -> Doubling:
    """Measured on one random model."""
    before = random_network(0)
    after = weights_scaled(kind, before, 2.0)
    a, b = blocks(kind, before), blocks(kind, after)
    outputs = natural_parameters(kind, before), natural_parameters(kind, after)
    descents = descent(kind, before), descent(kind, after)
    return Doubling(
        kind,
        ((outputs[1] - outputs[0]).abs().max() / outputs[0].abs().max()).item(),
        b.vector / a.vector,
        math.sqrt(b.vector / a.vector),
        b.vector_gain / a.vector_gain if a.vector_gain else None,
        b.vector_vector / a.vector_vector,
        b.gain / a.gain if a.gain else None,
        descents[1][0] / descents[0][0],
        descents[1][1] / descents[0][1],
    )


def descent(kind: GLMKind, network: Network) -> tuple[float, float]:
    """The gradient of the loss in the first weight vector, and by how many radians one step of
    gradient descent turns it. The loss is the mean negative log-likelihood of random targets."""
    generator = torch.Generator().manual_seed(1)
    shape = (len(network.data), len(network.weight))
    targets = torch.randn(shape, generator=generator, dtype=torch.float64)

    def loss(weight: Tensor) -> Tensor:
        f = natural_parameters(kind, replace(network, weight=weight))
        expected = f @ covariance(shape[1])
        return ((expected * f).sum(-1) / 2 - (targets * f).sum(-1)).mean()

    gradient = jacobian_of(loss, network.weight)[0]
    old = network.weight[0]
    rate = _LEARNING_RATE * WEIGHT_SCALE**2
    new = old - rate * gradient
    across = new - old * (new @ old) / (old @ old)
    return gradient.norm().item(), math.atan2(across.norm().item(), (new @ old / old.norm()).item())


def doublings() -> list[Doubling]:
    """For every normalisation, and none."""
    return [doubling(kind) for kind in GLM_KINDS]


@dataclass(frozen=True, slots=True)
class InputScale:
    """The curvature in which a unit's magnitude is learned, with inputs ten times larger: ratio.

    The magnitude is the gain; without a norm, a step along the weight vector.
    """

    norm: GLMKind
    curvature: float


def magnitude_curvature(kind: GLMKind, network: Network) -> float:
    """ds^2 of a unit step in the magnitude of the first unit."""
    found = blocks(kind, network)
    return found.along if kind == "none" else found.gain


def input_scales() -> list[InputScale]:
    """For every normalisation, and none."""
    network = random_network(0)
    larger = data_scaled(network, INPUT_FACTOR)
    return [
        InputScale(kind, magnitude_curvature(kind, larger) / magnitude_curvature(kind, network))
        for kind in GLM_KINDS
    ]
