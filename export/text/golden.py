"""Golden vectors of a language model: bytes it drew from itself, with what training computed.

Under batch norm no single row can repeat what training computed, so the vectors hold the evaluation
mode. Shapes: T steps, B rows, V symbols.
"""

import copy
import math
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from contract.alphabets import START_TOKEN, VOCABULARY
from contract.golden import Arrays, Golden
from contract.noise import UniformStream
from contract.text import FILTERS, GREEDY, NEUTRAL
from export.golden import BOUND_FACTOR, MARGIN, Sample, draw
from models.generation import LanguageStep
from models.language import LanguageModel

_MOST_STEPS = 1024  # of 16 kB each: the service reads no golden file of more than 64 MiB
_SEED = 20160721  # any constant: the same model always gets the same golden vectors
# What the golden rows ask for, beyond the model's own distribution.
_ROWS: tuple[dict[str, float], ...] = (
    {},
    {},
    {"inverse_temperature": 1 / 0.7, "logit_bias": 1.5},
    {"inverse_temperature": GREEDY},
    {"top_k": 12},
    {"top_p": 0.8},
    {"inverse_temperature": 1 / 1.6, "log_min_p": math.log(0.05)},
    {"inverse_temperature": 1 / 1.2, "logit_bias": -1.5, "top_k": 60, "top_p": 0.9},
)


def golden_mode(model: LanguageModel) -> Literal["training", "evaluation"]:
    """The mode of PyTorch that is served; the two differ under batch norm alone."""
    return "evaluation" if model.config.norm == "batch" else "training"


def options(rows: tuple[dict[str, float], ...]) -> dict[str, Tensor]:
    """Row inputs, neutral but for what each row says; a bias is on every third byte."""
    biased = (torch.arange(VOCABULARY) % 3 == 0).float()
    ports: dict[str, list[Tensor]] = {name: [] for name in NEUTRAL}
    for row in rows:
        for name, value in (NEUTRAL | row).items():
            one = value * biased if name == "logit_bias" else torch.tensor(value)
            ports[name].append(one.long() if name == "top_k" else one.float())
    return {name: torch.stack(values) for name, values in ports.items()}


def noise(seed: int, steps: int, batch: int) -> Arrays:
    """The uniforms `(T, B)` of requests with this seed and choices 0 to B - 1."""
    streams = [UniformStream(seed, choice).take(0, steps) for choice in range(batch)]
    return {"uniform": np.stack(streams, axis=1)}


def sample(
    model: LanguageModel,
    steps: int,
    batch: int,
    seed: int,
    margin: float = 0.0,
    rows: tuple[dict[str, float], ...] = (),
) -> Sample:
    """What the model writes in golden mode: the first rows as they say, the others neutrally."""
    model.train(golden_mode(model) == "training")
    row = options((*rows, *[{}] * (batch - len(rows))))
    step = LanguageStep(model, filtered=bool(rows))
    return draw(step, row, noise(seed, steps, batch), margin, seed)


def training_logits(model: nn.Module, of: Sample) -> Tensor:
    """What training computes for the bytes `(T, B)` of a sample: logits `(T, B, V)` of each, given
    those before. Training mode, the batched code path of the loss, starting states zero."""
    return _logits(model.train(), of.symbols)


def golden_logits(model: nn.Module, of: Sample) -> Tensor:
    """The same in golden mode: what serving should compute."""
    assert isinstance(model, LanguageModel)
    return _logits(model.train(golden_mode(model) == "training"), of.symbols)


@torch.no_grad()
def _logits(model: nn.Module, tokens: Tensor) -> Tensor:
    assert isinstance(model, LanguageModel)
    inputs = torch.cat([torch.full_like(tokens[:1], START_TOKEN), tokens[:-1]])
    logits, _ = model.forward(inputs, model.initial_state(tokens.shape[1]))
    return logits


def golden(model: LanguageModel, facts: dict[str, Any]) -> Golden:
    """Rows of every option, in golden mode and at the batch of training."""
    batch, steps = facts["batch"]["rows"], min(facts["batch"]["steps"], _MOST_STEPS)
    batches = -(-len(_ROWS) // batch)
    drawn = sample(model, steps, batches * batch, _SEED, MARGIN, _ROWS)

    def in_batches(network: LanguageModel) -> Tensor:
        parts = [drawn.of(slice(i * batch, (i + 1) * batch)) for i in range(batches)]
        return torch.cat([golden_logits(network, part) for part in parts], dim=1)

    float32, float64 = in_batches(model), in_batches(copy.deepcopy(model).double())
    kept = slice(len(_ROWS))
    error = (float32.double() - float64).abs()
    mine = drawn.of(kept)
    return Golden(
        steps=mine.drawn(),
        rows=mine.rows(),
        filtered=np.array([any(name in row for name in FILTERS) for row in _ROWS]),
        truth={"logits": float64[:, kept].numpy()},
        bounds={"logits": BOUND_FACTOR * error.max().item()},
        exact={"next": mine.symbols.numpy()},
        training_error=error[:, kept].max().item(),
    )
