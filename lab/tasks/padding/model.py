"""A classifier of sentences: one layer of self-attention, a norm, the largest of each feature.

Shapes: B batch, T positions, F features, C classes. Word 0 is padding.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from models.attention import SelfAttention
from models.norms import NormKind, make_layer_norm

PaddingNorm = Literal["layer", "batch", "batch-masked", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaddingConfig:
    """Hyper-parameters of a `SentenceClassifier`, and how its sentences are put side by side.

    `batch-masked` is batch norm whose statistics leave padding out. `padding`: the share of the
    positions of a batch that hold no word, in training; 0 is sentences of like length side by side,
    others mix short and long, and have at least what the longest makes.
    """

    norm: PaddingNorm = "layer"
    places: int = 64
    features: int = 64
    padding: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.padding < 1:
            raise ValueError(f"model.padding is {self.padding}; it must be 0 or more and below 1")


class SentenceClassifier(nn.Module):
    """`y = relu(N(x + A(x)))` of each position (Vaswani et al. 2017, section 3.1), then the largest
    of each feature over the sentence, then logits. The order of words is not told."""

    def __init__(self, config: PaddingConfig, words: int, classes: int) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(words, config.features)
        self.attention = SelfAttention(config.features)
        kind: NormKind = "batch" if config.norm == "batch-masked" else config.norm
        self.norm = make_layer_norm(kind, config.features)
        self.readout = nn.Linear(config.features, classes)

    def forward(self, words: Tensor) -> Tensor:
        """`(B, T)` to logits `(B, C)`."""
        real = words > 0
        x = torch.where(real.unsqueeze(-1), self.embedding(words), 0.0)
        normalised = self.normalise(x + self.attention(x, real), real)
        y = torch.where(real.unsqueeze(-1), F.relu(normalised), 0.0)
        logits: Tensor = self.readout(y.amax(1))
        return logits

    def normalise(self, summed: Tensor, real: Tensor) -> Tensor:
        """The norm over all positions of a batch, `(B, T, F)`, padding among them, where it is 0;
        or, if masked, over real ones. In evaluation mode neither looks at other positions."""
        if self.config.norm == "batch-masked" and self.training:
            masked = torch.zeros_like(summed)
            masked[real] = self.norm(summed[real])
            return masked
        rows: Tensor = self.norm(summed.flatten(0, 1))  # (B * T, F)
        return rows.view(-1, *summed.shape[1:])
