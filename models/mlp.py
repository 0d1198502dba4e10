"""A multi-layer perceptron with a normalisation of every hidden layer's summed inputs.

Shapes: B batch, E inputs, H units, C classes.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrize

from models.norms import NormKind, WeightNorm, make_layer_norm


@dataclass(frozen=True, slots=True, kw_only=True)
class MLPConfig:
    """Hyper-parameters of an `MLP`: `layers` hidden ones of `units`."""

    norm: NormKind = "layer"
    inputs: int = 784
    units: int = 1000
    layers: int = 2
    classes: int = 10


class NormalizedLinear(nn.Module):
    """`relu(LN(W x))` (Ba et al. 2016, eq. 1-3): the norm stands for the layer's bias as well."""

    def __init__(self, inputs: int, units: int, norm: nn.Module, *, weight_norm: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(units, inputs))
        nn.init.kaiming_normal_(self.weight, nonlinearity="relu")
        if weight_norm:
            parametrize.register_parametrization(self, "weight", WeightNorm())
        self.norm = norm

    def forward(self, x: Tensor) -> Tensor:
        """`(B, E) -> (B, H)`."""
        return F.relu(self.norm(F.linear(x, self.weight)))


class MLP(nn.Module):
    """Hidden layers and a softmax layer, which is not normalised: what is sure must be able to say
    so (Ba et al. 2016, section 6.6)."""

    def __init__(self, config: MLPConfig) -> None:
        super().__init__()
        widths = [config.inputs] + [config.units] * config.layers
        self.hidden = nn.Sequential(
            *(
                NormalizedLinear(
                    width,
                    config.units,
                    make_layer_norm(config.norm, config.units),
                    weight_norm=config.norm == "weight",
                )
                for width in widths[:-1]
            )
        )
        self.readout = nn.Linear(config.units, config.classes)

    def forward(self, x: Tensor) -> Tensor:
        """`(B, E)` to logits `(B, C)`."""
        logits: Tensor = self.readout(self.hidden(x))
        return logits
