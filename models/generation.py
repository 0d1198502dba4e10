"""The one graph: reading a prompt, scoring it and generating are the same step.

A step takes the token or the pen point before and emits the next one, forced or drawn. Everything
it needs is an argument, described by ports: recurrent state, per-step inputs, per-row options,
per-step outputs. Shapes: T time, B batch; a port's shape is that of one row at one step.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from contract.alphabets import START_TOKEN, VOCABULARY, WINDOW_SYMBOLS
from contract.mixture import outputs_of
from models import mixture
from models.handwriting import POINT, HandwritingModel, Text
from models.language import LanguageModel
from models.sampling import Filters, Options, sample
from models.tabulated import TabulatedLanguageModel

Tensors = tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class Port:
    """One tensor that enters or leaves a step; `initial` fills a state before the first step."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...] = ()
    initial: int = 0


class Step(nn.Module):
    """One step of a model with its sampler, which is what is exported.

    `forward(*state, *step, *row) -> (*state, *outputs)`, each in the order of its ports and with
    B in front. The first state is what was emitted last; the first two step inputs are `forced`,
    of the same type, and `force`, and any others are the noise of a draw.
    """

    model: Any
    state_ports: tuple[Port, ...]
    step_ports: tuple[Port, ...]
    row_ports: tuple[Port, ...]
    output_ports: tuple[Port, ...]

    @property
    def noise_ports(self) -> tuple[Port, ...]:
        """The step inputs that decide a draw."""
        return self.step_ports[2:]

    def initial_state(self, batch: int) -> Tensors:
        """The state before the first step, in the order of `state_ports`."""
        return tuple(
            torch.full((batch, *p.shape), p.initial, dtype=p.dtype) for p in self.state_ports
        )


class Recurrent(Protocol):
    """Whatever has a state by names, all of it zeros before the first step."""

    @property
    def state_names(self) -> tuple[str, ...]:
        """The name of every state tensor, in order."""
        ...

    def initial_state(self, batch: int) -> Tensors:
        """A tensor per state name."""
        ...


def recurrent_ports(model: Recurrent) -> tuple[Port, ...]:
    """The ports of a recurrent state."""
    states = zip(model.state_names, model.initial_state(1), strict=True)
    return tuple(Port(name, zeros.dtype, tuple(zeros.shape[1:])) for name, zeros in states)


class LanguageStep(Step):
    """One step of the language model.

    `filtered` adds the options that leave symbols out: min-p, top-k and top-p.
    """

    def __init__(self, model: LanguageModel | TabulatedLanguageModel, *, filtered: bool) -> None:
        super().__init__()
        self.model = model
        real = model.readout.weight.dtype
        self.state_ports = (
            Port("token", torch.int64, initial=START_TOKEN),
            *recurrent_ports(model.stack),
        )
        self.step_ports = (
            Port("forced", torch.int64),
            Port("force", torch.bool),
            Port("uniform", real),
        )
        filters = (Port("log_min_p", real), Port("top_k", torch.int64), Port("top_p", real))
        self.row_ports = (
            Port("inverse_temperature", real),
            Port("logit_bias", real, (VOCABULARY,)),
            *(filters if filtered else ()),
        )
        self.output_ports = (Port("next", torch.int64), Port("logits", real, (VOCABULARY,)))

    def forward(self, *inputs: Tensor) -> Tensors:
        token, *state = inputs[: len(self.state_ports)]
        forced, force, uniform, *row = inputs[len(self.state_ports) :]
        logits, after = self.model.step(token, tuple(state))
        filters = Filters(*row[2:]) if len(row) > 2 else None
        drawn = sample(logits, uniform, Options(*row[:2]), filters)
        token = torch.where(force, forced, drawn)
        # Cloned, because a graph may not return one tensor under two names.
        return token, *after, token.clone(), logits.clone()


class HandwritingStep(Step):
    """One step of a handwriting model.

    `drawn` is what the step would write by itself, also where a point is forced on it, so reading
    a person's ink shows both. The synthesis network also says which `character` the window rests
    on, and whether the text had `ended`: the window rests past its last character and the pen is
    off the paper, so the point drawn at that step is no ink any more.
    """

    def __init__(self, model: HandwritingModel) -> None:
        super().__init__()
        self.model = model
        real = model.readout.weight.dtype
        self.state_ports = (Port("point", real, (POINT,)), *recurrent_ports(model))
        self.step_ports = (
            Port("forced", real, (POINT,)),
            Port("force", torch.bool),
            Port("uniform", real),
            Port("normal", real, (2,)),
        )
        self.row_ports = (Port("bias", real),)
        outputs = outputs_of(model.config.mixtures)
        self.output_ports = (
            Port("drawn", real, (POINT,)),
            Port("mixture", real, (outputs,)),
        )
        if model.config.window:
            text = (Port("text", torch.int64, (WINDOW_SYMBOLS,)), Port("length", torch.int64))
            self.row_ports += text
            self.output_ports += (Port("character", torch.int64), Port("ended", torch.bool))

    def forward(self, *inputs: Tensor) -> Tensors:
        point, *state = inputs[: len(self.state_ports)]
        forced, force, uniform, normal, bias, *text = inputs[len(self.state_ports) :]
        # Not ones_like, whose shape a graph would ask for; of a row input, it is made once a chunk.
        one = bias.unsqueeze(-1) * 0 + 1
        letters = Text(*text) if text else None
        raw, after, weights = self.model.step(point, letters, tuple(state), one)
        drawn = mixture.sample(raw, uniform, normal, bias)
        following = torch.where(force.unsqueeze(-1), forced, drawn)
        # Cloned, because a graph may not return one tensor under two names.
        results = (following, *after, drawn.clone(), raw.clone())
        if not text:
            return results
        # Not argmax alone: far past the end every weight is 0, that of the end too.
        length = text[1]
        end = length.unsqueeze(-1)
        rests = weights.gather(-1, end) >= weights.amax(-1, keepdim=True)  # (B, 1)
        kappa = after[self.model.state_names.index("kappa")]
        # Not a cast of the length: hoisted out of the scan, it makes onnxruntime complain.
        place = self.model.window.positions.index_select(0, length).unsqueeze(-1)  # length + 1/2
        beyond = kappa.amax(-1, keepdim=True) > place - 0.5
        past = (rests & beyond).squeeze(-1)
        character = torch.where(past, length, weights.argmax(-1))
        return *results, character, past & (point[:, 2] > 0.5)
