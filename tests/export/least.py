"""Steps that are traced sooner than a model with its sampler: the least there is, a state under a
layer norm and a readout, in a quarter of the time; and a language model that draws nothing."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from contract.alphabets import VOCABULARY
from models.generation import Port, Step, Tensors, recurrent_ports
from models.language import LanguageModel
from models.norms import LayerNorm

UNITS = 6


class LeastModel(nn.Module):
    def __init__(self, norms: int = 1) -> None:
        super().__init__()
        self.norm = LayerNorm(UNITS, bias=True)
        self.more = nn.Sequential(*(LayerNorm(UNITS, bias=True) for _ in range(norms - 1)))
        self.readout = nn.Linear(UNITS, 3)


class LeastStep(Step):
    """`(state (B, UNITS), x (B, UNITS)) -> (state, y (B, 3))`."""

    def __init__(self, model: LeastModel | None = None) -> None:
        super().__init__()
        self.model = model or LeastModel()
        self.state_ports = (Port("state", torch.float32, (UNITS,)),)
        self.step_ports = (Port("x", torch.float32, (UNITS,)),)
        self.row_ports = ()
        self.output_ports = (Port("y", torch.float32, (3,)),)

    def forward(self, *inputs: Tensor) -> Tensors:
        state, x = inputs
        after = torch.tanh(self.model.more(self.model.norm(state + x)))
        return after, self.model.readout(after)


class PlainKind:
    """What a writer asks of a kind that has neither filters nor variants."""

    def __init__(self, step: Callable[[Any], Step]) -> None:
        self._step = step

    def step(self, model: nn.Module, **_: object) -> Step:
        return self._step(model)


class LogitsStep(Step):
    """`(*state, token (B,)) -> (*state, logits (B, V))`."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.model = model
        self.state_ports = recurrent_ports(model.stack)
        self.step_ports = (Port("token", torch.int64),)
        self.row_ports = ()
        self.output_ports = (Port("logits", torch.float32, (VOCABULARY,)),)

    def forward(self, *inputs: Tensor) -> Tensors:
        *state, token = inputs
        logits, after = self.model.step(token, tuple(state))
        return *after, logits
