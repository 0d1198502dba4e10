"""The network and its step. Shapes: T steps, B rows; a value is one number."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from models.cells import State
from models.generation import Port, Step
from models.stack import Dropout, Stack

WIDEST = 4.0  # log sigma


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveConfig:
    """Hyper-parameters."""

    units: int = 16


class WaveModel(nn.Module):
    """Values in, mean and log sigma of the next one out."""

    def __init__(self, config: WaveConfig) -> None:
        super().__init__()
        self.config = config
        self.stack = Stack(2, config.units, 1, "lstm", "layer", Dropout())
        self.readout = nn.Linear(config.units, 2)

    def initial_state(self, batch: int) -> State:
        return self.stack.initial_state(batch)

    def forward(self, values: Tensor, state: State) -> tuple[Tensor, State]:
        """`values (T, B, 1)` to raw outputs `(T, B, 2)`."""
        y, state = self.stack(_with_constant(values), state)
        return self.readout(y), state

    def step(self, value: Tensor, state: State) -> tuple[Tensor, State]:
        y, state = self.stack.step(_with_constant(value), state)
        return self.readout(y), state


def gaussian(raw: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and log sigma `(..., 1)` of raw outputs `(..., 2)`."""
    mean, log_sigma = raw.chunk(2, dim=-1)
    log_sigma = torch.where(log_sigma < -WIDEST, -WIDEST, log_sigma)
    return mean, torch.where(log_sigma > WIDEST, WIDEST, log_sigma)


class WaveStep(Step):
    """One step with its draw."""

    def __init__(self, model: WaveModel) -> None:
        super().__init__()
        self.model = model
        real = model.readout.weight.dtype
        recurrent = zip(model.stack.state_names, model.initial_state(1), strict=True)
        self.state_ports = (
            Port("value", real, (1,)),
            *(Port(name, zeros.dtype, tuple(zeros.shape[1:])) for name, zeros in recurrent),
        )
        self.step_ports = (
            Port("forced", real, (1,)),
            Port("force", torch.bool),
            Port("normal", real, (1,)),
        )
        self.row_ports = (Port("scale", real),)
        self.output_ports = (Port("drawn", real, (1,)), Port("gaussian", real, (2,)))

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        value, *state = inputs[: len(self.state_ports)]
        forced, force, normal, scale = inputs[len(self.state_ports) :]
        raw, after = self.model.step(value, tuple(state))
        mean, log_sigma = gaussian(raw)
        drawn = mean + scale.unsqueeze(-1) * torch.exp(log_sigma) * normal
        value = torch.where(force.unsqueeze(-1), forced, drawn)
        return value, *after, drawn.clone(), raw.clone()


def _with_constant(values: Tensor) -> Tensor:
    # Layer norm hides how large a lone value is.
    return torch.cat([values, values * 0 + 1], dim=-1)
