"""The sampler of the language model, part of the served graph.

A draw is an inverse CDF in byte order: one uniform per step decides it. Every filter only moves a
threshold below which a symbol's probability is zero, so a graph with filters and one without agree
bit for bit where none is set, and one row's options never change another row's draw.
Shapes: B batch, V symbols. Everything is per row.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Options(NamedTuple):
    """How a row wants its symbol chosen.

    inverse_temperature (B,)  1 / temperature
    logit_bias (B, V)         added to the logits before anything else
    """

    inverse_temperature: Tensor
    logit_bias: Tensor


class Filters(NamedTuple):
    """Options that leave symbols out; a sort, or a threshold, is paid for only where one is asked.

    log_min_p (B,)  log of the least probability kept, relative to the most probable symbol's:
                    -inf keeps all
    top_k (B,)      int64; V keeps all
    top_p (B,)      1 keeps all
    """

    log_min_p: Tensor
    top_k: Tensor
    top_p: Tensor


def sample(logits: Tensor, uniform: Tensor, options: Options, filters: Filters | None) -> Tensor:
    """Draw one symbol per row: `logits (B, V)` and `uniform (B,)` in (0, 1) to `(B,)` int64."""
    scaled = (logits + options.logit_bias) * options.inverse_temperature.unsqueeze(-1)
    below = scaled - scaled.amax(-1, keepdim=True)  # (B, V): log p relative to the best, <= 0
    mass = torch.exp(below)
    if filters is not None:
        mass = torch.where(below >= _threshold(below, filters), mass, 0.0)
    cumulative = mass.cumsum(-1)
    # 0 < uniform < 1, so the target is reached: by the first symbol at which the sum, cut off
    # there, is largest. Not a comparison: its cast would be one more node in every step.
    target = uniform.unsqueeze(-1) * cumulative[:, -1:]
    return torch.minimum(cumulative, target).argmax(-1)


def _threshold(below: Tensor, filters: Filters) -> Tensor:
    """The log-probability `(B, 1)` a symbol needs to survive min-p, top-k and top-p.

    Symbols that tie with the last one kept are kept too. All three look at the whole distribution,
    so their order does not matter.
    """
    ordered = below.topk(below.shape[-1], dim=-1).values
    kth = ordered.gather(-1, filters.top_k.unsqueeze(-1) - 1)
    mass = torch.exp(ordered)
    cumulative = mass.cumsum(-1)
    before = cumulative - mass  # mass of the more probable symbols
    top_p = filters.top_p.unsqueeze(-1)
    inside = before < top_p * cumulative[:, -1:]  # the best is inside if top_p > 0
    least = torch.where(inside, ordered, torch.inf).amin(-1, keepdim=True)
    nucleus = torch.where(top_p < 1.0, least, -torch.inf)
    return torch.maximum(torch.maximum(kth, nucleus), filters.log_min_p.unsqueeze(-1))
