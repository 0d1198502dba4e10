"""The least that can be exported: a state under a layer norm, and a readout. Without cell and
sampler it is traced in a quarter of the time of a model's step."""

import torch
from torch import Tensor, nn

from models.generation import Port, Step, Tensors
from models.norms import LayerNorm

UNITS = 6


class LeastModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = LayerNorm(UNITS, bias=True)
        self.readout = nn.Linear(UNITS, 3)


class LeastStep(Step):
    """`(state (B, UNITS), x (B, UNITS)) -> (state, y (B, 3))`."""

    def __init__(self) -> None:
        super().__init__()
        self.model = LeastModel()
        self.state_ports = (Port("state", torch.float32, (UNITS,)),)
        self.step_ports = (Port("x", torch.float32, (UNITS,)),)
        self.row_ports = ()
        self.output_ports = (Port("y", torch.float32, (3,)),)

    def forward(self, *inputs: Tensor) -> Tensors:
        state, x = inputs
        after = torch.tanh(self.model.norm(state + x))
        return after, self.model.readout(after)
