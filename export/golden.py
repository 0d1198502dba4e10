"""Golden vectors: a sample the model drew from itself, with what training computed for it.

The service replays them before it says it is ready. No corpus is needed, none is shipped. Under
batch norm no single row can repeat what training computed, so the vectors hold the evaluation mode.
Shapes: T steps, B rows, V symbols.
"""

import copy
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from models.generation import LanguageStep, Step
from models.language import LanguageModel

# Draws closer than this to the border between two symbols are drawn again, so that a replay that
# computes the same distribution up to rounding must draw the same symbols.
_MARGIN = 1e-3
# A quantised model's distribution moves more, where a value rounds to the other integer.
_QUANTIZED_MARGIN = 1e-2
# Where every symbol is improbable, as in an untrained model, no place is clear of borders.
_MOST_REDRAWS = 1000
LEAST_UNIFORM = 2.0**-24  # a draw needs a uniform above 0 and below 1
# Row options that leave the model's own distribution as it is.
NEUTRAL = {
    "inverse_temperature": 1.0,
    "logit_bias": 0.0,
    "log_min_p": -torch.inf,
    "top_k": 256,
    "top_p": 1.0,
}
# Attestation allows this many times the float32 error that training itself had against float64.
BOUND_FACTOR = 4.0


@dataclass(frozen=True, slots=True)
class Sample:
    """Symbols a model drew `(T, B)` and the uniforms that made it draw them `(T, B)`."""

    tokens: Tensor
    uniforms: Tensor


def golden_mode(model: LanguageModel) -> Literal["training", "evaluation"]:
    """The mode of PyTorch that is served; the two differ under batch norm alone."""
    return "evaluation" if model.config.norm == "batch" else "training"


def default_options(step: LanguageStep, batch: int) -> tuple[Tensor, ...]:
    """Row options that leave the model's distribution as it is, in the order of `row_ports`."""
    return tuple(
        torch.full((batch, *p.shape), NEUTRAL[p.name], dtype=p.dtype) for p in step.row_ports
    )


@torch.no_grad()
def draw(model: LanguageModel, steps: int, batch: int, seed: int, margin: float = 0.0) -> Sample:
    """Let the model write: every symbol drawn by the served sampler, in PyTorch, in golden mode.

    With a `margin`, uniforms within it of another symbol are replaced.
    """
    model.train(golden_mode(model) == "training")
    step = LanguageStep(model, filtered=False)
    generator = torch.Generator().manual_seed(seed)
    free = torch.zeros(batch, dtype=torch.bool)
    unused = torch.zeros(batch, dtype=torch.int64)
    options = default_options(step, batch)
    real = model.readout.weight.dtype
    state = initial_state(step, batch)
    tokens, uniforms = [], []
    for _ in range(steps):
        u = torch.rand(batch, generator=generator).clamp(min=LEAST_UNIFORM).to(real)
        if margin:
            u = _clear_of_borders(step, state, u, margin, generator)
        results = step(*state, unused, free, u, *options)
        state = results[: len(step.state_ports)]
        tokens.append(state[0])
        uniforms.append(u)
    return Sample(torch.stack(tokens), torch.stack(uniforms))


def initial_state(step: Step, batch: int) -> tuple[Tensor, ...]:
    """The state before the first step, in the order of `state_ports`."""
    return tuple(torch.full((batch, *p.shape), p.initial, dtype=p.dtype) for p in step.state_ports)


def training_logits(model: LanguageModel, tokens: Tensor) -> Tensor:
    """What training computes for `tokens (T, B)`: logits `(T, B, V)` of each, given those before.

    Training mode, the batched code path of the loss, starting states zero.
    """
    return _logits(model.train(), tokens)


def golden_logits(model: LanguageModel, tokens: Tensor) -> Tensor:
    """The same in golden mode: what serving should compute."""
    return _logits(model.train(golden_mode(model) == "training"), tokens)


@torch.no_grad()
def _logits(model: LanguageModel, tokens: Tensor) -> Tensor:
    first = LanguageStep(model, filtered=False).state_ports[0].initial
    inputs = torch.cat([torch.full_like(tokens[:1], first), tokens[:-1]])
    logits, _ = model.forward(inputs, model.initial_state(tokens.shape[1]))
    return logits


def golden_vectors(
    model: LanguageModel,
    steps: int,
    batch: int,
    rows: int,
    seed: int,
    exact: LanguageModel | None = None,
) -> tuple[dict[str, Tensor], float]:
    """The tensors of `golden.safetensors` and the bound on a replay's error in its logits.

    Golden mode runs at the batch of training; the first `rows` rows are kept. A quantised model is
    bounded by its distance to the `exact` one: a value beside the border of two integers may round
    to the other, which is far more than rounding of float32, and far less than quantisation.
    """
    sample = draw(model, steps, batch, seed, _MARGIN if exact is None else _QUANTIZED_MARGIN)
    float32 = golden_logits(model, sample.tokens)
    float64 = golden_logits(copy.deepcopy(model).double(), sample.tokens)
    bound = BOUND_FACTOR * (float32.double() - float64).abs().max().item()
    if exact is not None:
        wide = golden_logits(copy.deepcopy(exact).double(), sample.tokens)
        bound = (float64 - wide).abs().max().item()
    kept = {
        "tokens": sample.tokens,
        "uniforms": sample.uniforms,
        "logits_float32": float32,
        "logits_float64": float64,
    }
    return {name: t[:, :rows].contiguous() for name, t in kept.items()}, bound


def _clear_of_borders(
    step: LanguageStep,
    state: tuple[Tensor, ...],
    u: Tensor,
    margin: float,
    generator: torch.Generator,
) -> Tensor:
    batch = len(u)
    free, unused = torch.zeros(batch, dtype=torch.bool), torch.zeros(batch, dtype=torch.int64)
    options = default_options(step, batch)

    def token(at: Tensor) -> Tensor:
        return step.forward(
            *state, unused, free, at.clamp(LEAST_UNIFORM, 1 - LEAST_UNIFORM), *options
        )[0]

    for _ in range(_MOST_REDRAWS):
        near = (token(u - margin) != token(u)) | (token(u + margin) != token(u))
        if not near.any():
            break
        again = torch.rand(batch, generator=generator).clamp(min=LEAST_UNIFORM).to(u.dtype)
        u = torch.where(near, again, u)
    return u
