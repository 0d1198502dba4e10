"""The sampler of the language model, part of the served graph.

A draw is an inverse CDF in byte order: one uniform per step decides it. Every option only moves a
threshold below which a symbol's probability is zero, so a graph that can sort and one that cannot
agree bit for bit, and one row's options never change another row's draw.
Shapes: B batch, V symbols. Everything is per row.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Options(NamedTuple):
    """How a row wants its symbol chosen.

    inverse_temperature (B,)  1 / temperature
    log_min_p (B,)            log of the least probability kept, relative to the most probable
                              symbol's: -inf keeps all; 0 keeps only the best, which is greedy
    logit_bias (B, V)         added to the logits before anything else
    """

    inverse_temperature: Tensor
    log_min_p: Tensor
    logit_bias: Tensor


class Filters(NamedTuple):
    """Options that need a sort: top_k (B,) int64, V keeps all; top_p (B,), 1 keeps all."""

    top_k: Tensor
    top_p: Tensor


def sample(logits: Tensor, uniform: Tensor, options: Options, filters: Filters | None) -> Tensor:
    """Draw one symbol per row: `logits (B, V)` and `uniform (B,)` in (0, 1) to `(B,)` int64."""
    scaled = (logits + options.logit_bias) * options.inverse_temperature.unsqueeze(-1)
    below = scaled - scaled.amax(-1, keepdim=True)  # (B, V): log p relative to the best, <= 0
    threshold = options.log_min_p.unsqueeze(-1)
    if filters is not None:
        threshold = torch.maximum(threshold, _sorted_threshold(below, filters))
    mass = torch.where(below >= threshold, torch.exp(below), 0.0)
    cumulative = mass.cumsum(-1)
    # uniform <= 1 - 2**-24, so the product is always less than the total: a symbol is always found.
    target = uniform.unsqueeze(-1) * cumulative[:, -1:]
    return (cumulative > target).to(torch.float32).argmax(-1)


def _sorted_threshold(below: Tensor, filters: Filters) -> Tensor:
    """The log-probability `(B, 1)` a symbol needs to survive both top-k and top-p.

    Symbols that tie with the last one kept are kept too. Both options look at the whole
    distribution, so their order does not matter.
    """
    ordered = below.topk(below.shape[-1], dim=-1).values
    kth = ordered.gather(-1, filters.top_k.unsqueeze(-1) - 1)
    mass = torch.exp(ordered)
    cumulative = mass.cumsum(-1)
    before = cumulative - mass  # mass of the more probable symbols
    top_p = filters.top_p.unsqueeze(-1)
    inside = before < top_p * cumulative[:, -1:]  # the best is inside if top_p > 0
    least = torch.where(inside, ordered, torch.inf).amin(-1, keepdim=True)
    return torch.maximum(kth, torch.where(top_p < 1.0, least, -torch.inf))
