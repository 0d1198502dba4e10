"""Rows that stand beside a row, padded ones too: nothing to layer norm, everything to batch norm.

Shapes: N rows, F features; B sentences of T positions.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from lab.analysis.invariance import Kind, summed_inputs

Z = ((7, 5, 4), (2, 3, 4), (1, 2, 3), (7, 5, 6), (3, 3, 4))
_BIAS = (0.5, -1.0, 2.0)
_PADDED_ROWS = 2
_LENGTHS = (5, 3)
_WIDTH = 8


def per_row(z: Tensor, bias: Tensor | None = None) -> Tensor:
    """Layer norm of `(N, F)`, gain 1."""
    return _normalised("layer", z, bias)


def per_column(z: Tensor, bias: Tensor | None = None) -> Tensor:
    """Batch norm of `(N, F)` in training mode, gain 1."""
    return _normalised("batch", z, bias)


def _normalised(kind: Kind, z: Tensor, bias: Tensor | None) -> Tensor:
    gain = z.new_ones(z.shape[-1])
    bias = torch.zeros_like(gain) if bias is None else bias
    identity = torch.eye(len(gain), dtype=z.dtype)
    return summed_inputs(kind, identity, gain, bias, z)


@dataclass(frozen=True, slots=True)
class Worked:
    """The 5x3 table normalised both ways, and how far zero rows below it move its rows."""

    z: Tensor
    per_row: Tensor
    per_column: Tensor
    row_moved_by_padding: float
    column_moved_by_padding: float
    bias: Tensor
    padded_row_per_row: Tensor
    padded_row_per_column: Tensor


def worked_table() -> Worked:
    """The table, alone and with zero rows below it."""
    z = torch.tensor(Z, dtype=torch.float64)
    bias = torch.tensor(_BIAS, dtype=torch.float64)
    padded = F.pad(z, (0, 0, 0, _PADDED_ROWS))

    def moved(after: Tensor, before: Tensor) -> float:
        return (after[: len(z)] - before).abs().max().item()

    return Worked(
        z,
        per_row(z),
        per_column(z),
        moved(per_row(padded), per_row(z)),
        moved(per_column(padded), per_column(z)),
        bias,
        per_row(padded, bias)[-1],
        per_column(padded, bias)[-1],
    )


@dataclass(frozen=True, slots=True)
class Sentences:
    """Two sentences through one self-attention and a norm: how far a row moves when the other
    sentence stands beside it and padding after it, and what a padded position becomes."""

    layer_moved: float
    batch_moved: float
    layer_padding_off_bias: float
    finite: bool


def self_attention(x: Tensor, lengths: Tensor, weight: Tensor) -> Tensor:
    """One head with a residual: `x (B, T, F)`, `weight (3, F, F)` of query, key and value.

    Padded positions are neither looked at nor, having no query, looked from: they stay zero.
    """
    real = torch.arange(x.shape[1]) < lengths.unsqueeze(-1)  # (B, T)
    query, key, value = (x @ w.T for w in weight)
    scores = query @ key.transpose(1, 2) / x.shape[-1] ** 0.5
    scores = scores.masked_fill(~real.unsqueeze(1), -torch.inf)
    attended: Tensor = (x + scores.softmax(-1) @ value) * real.unsqueeze(-1)
    return attended


def padded_sentences(seed: int = 0) -> Sentences:
    """Sentences of 5 and 3 words; the short one is padded with zeros to stand beside the other."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.tensor(_LENGTHS)
    shape = (len(lengths), max(_LENGTHS), _WIDTH)
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    x[1, lengths[1] :] = 0
    weight = torch.randn((3, _WIDTH, _WIDTH), generator=generator, dtype=torch.float64)
    bias = torch.randn(_WIDTH, generator=generator, dtype=torch.float64)

    def attended(x: Tensor, lengths: Tensor) -> Tensor:
        return self_attention(x, lengths, weight / _WIDTH**0.5).flatten(0, 1)

    together = attended(x, lengths)
    short = slice(shape[1], shape[1] + _LENGTHS[1])
    alone = attended(x[1:, : _LENGTHS[1]], lengths[1:])
    layer, batch = per_row(together, bias), per_column(together, bias)
    return Sentences(
        (layer[short] - per_row(alone, bias)).abs().max().item(),
        (batch[short] - per_column(alone, bias)).abs().max().item(),
        (layer[short.stop :] - bias).abs().max().item(),
        bool(layer.isfinite().all()),
    )
