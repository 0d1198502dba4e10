"""Golden vectors of a reader: ink that nobody wrote, with what training computed for it.

A reader draws nothing, so what it reads is made by the synthetic pen from a seed.
Shapes: T steps, B rows, V symbols.
"""

import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from contract.golden import Golden
from contract.pieces import PIECE, RESTS, Pieces, cut, line_of
from export.golden import BOUND_FACTOR, Sample
from models.reader import ReaderModel
from training.ink.synthetic import random_style, random_text, write

_SEED = 20160721  # any constant: the same model always gets the same golden vectors
_STEPS, _ROWS = 160, 4


def sample(model: ReaderModel, steps: int, batch: int, seed: int) -> Sample:
    """Rows of invented lines one after the other, with the rests that a reader has after each, as
    numbers of the model's."""
    rows = [_row(steps, np.random.default_rng([seed, row])) for row in range(batch)]
    pieces = torch.from_numpy(np.stack(rows, axis=1))
    return Sample(pieces.to(model.readout.bias.dtype), {}, {})


@torch.no_grad()
def training_logits(model: nn.Module, of: Sample) -> Tensor:
    """What training computes for the pieces of a sample: logits `(T, B, V)` of each step, at which
    the piece before it is read. Training mode, the batched code path of the loss."""
    assert isinstance(model, ReaderModel)
    pieces = of.symbols.to(model.readout.bias.dtype)
    steps, batch = pieces.shape[:2]
    inputs = torch.cat([torch.zeros_like(pieces[:1]), pieces[:-1]])
    lengths = torch.full((batch,), steps)
    logits, _ = model.train()(inputs, lengths, model.initial_state(batch))
    return torch.as_tensor(logits)


def golden(model: ReaderModel, facts: dict[str, Any]) -> Golden:
    """Some rows of a batch as large as training's."""
    read = sample(model, _STEPS, max(_ROWS, facts["batch"]["rows"]), _SEED)
    float32 = training_logits(model, read)
    float64 = training_logits(copy.deepcopy(model).double(), read)
    error = (float32.double() - float64).abs()
    mine = read.of(slice(_ROWS))
    return Golden(
        steps=mine.read(),
        rows={},
        filtered=np.zeros(_ROWS, bool),
        truth={"logits": float64[:, :_ROWS].numpy()},
        bounds={"logits": BOUND_FACTOR * error.max().item()},
        exact={},
        training_error=error[:, :_ROWS].max().item(),
    )


def _row(steps: int, generator: np.random.Generator) -> Pieces:
    parts: list[Pieces] = []
    while sum(map(len, parts)) < steps:
        line = write(random_text(generator), random_style(generator), generator)
        strokes = line_of(line.strokes)
        assert strokes is not None, "the synthetic pen always writes something"
        parts += [cut(strokes), np.zeros((RESTS, PIECE), np.float32)]
    return np.concatenate(parts)[:steps]
