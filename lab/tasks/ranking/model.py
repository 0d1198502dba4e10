"""Pictures and sentences as points of one space, and what is exported of them.

Shapes: B rows, T words, S pixels of a side, D dimensions.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lab.experiment import Named
from lab.steps import RowStep
from models.convolution import ConvolutionalNetwork, ConvolutionConfig
from models.generation import Port, Step, recurrent_ports
from models.norms import EPSILON, NormKind
from models.sentence import SentenceEncoder

Score = Literal["order", "cosine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingConfig:
    """`norm` is of the GRU alone. `language` is that of the captions; `dimensions` are the units
    of the GRU as well; a caption has `longest` words and no more."""

    norm: NormKind = "layer"
    score: Score = "order"
    language: str = "en"
    side: int = 32
    channels: int = 16
    picture_units: int = 256
    embedding: int = 96
    dimensions: int = 128
    longest: int = 16

    def __post_init__(self) -> None:
        if self.score not in ("order", "cosine"):
            raise ValueError(f"model.score is {self.score!r}; it must be 'order' or 'cosine'")


class Unit(nn.Module):
    """`|x| / sqrt(sum x^2)` for order embeddings, whose space has no negative side (Vendrov et al.
    2016), without the absolute value for the cosine.

    The sum is a product with ones: of all ways to add up, its bits do not depend on the batch.
    """

    def __init__(self, score: Score, dimensions: int) -> None:
        super().__init__()
        self.positive = score == "order"
        self.ones: Tensor
        self.register_buffer("ones", torch.ones(1, dimensions))

    def forward(self, x: Tensor) -> Tensor:
        """`(B, D) -> (B, D)`."""
        x = x / torch.sqrt(F.linear(x * x, self.ones) + EPSILON)
        return torch.maximum(x, -x) if self.positive else x


class PictureEmbedding(nn.Module):
    """Three convolutions without a norm, two layers on top: the same whatever the GRU's norm is."""

    def __init__(self, config: RankingConfig) -> None:
        super().__init__()
        self.network = ConvolutionalNetwork(
            ConvolutionConfig(
                norm="none",
                side=config.side,
                colors=3,
                channels=config.channels,
                units=config.picture_units,
                classes=config.dimensions,
            )
        )
        self.side = config.side
        self.unit = Unit(config.score, config.dimensions)

    def forward(self, pictures: Tensor) -> Tensor:
        """`(B, S, S, 3)` in 0 to 1 to `(B, D)`."""
        embedded: Tensor = self.unit(self.network(pictures))
        return embedded


class SentenceEmbedding(nn.Module):
    """A GRU over words; its state of unit length."""

    def __init__(self, config: RankingConfig, vocabulary: int) -> None:
        super().__init__()
        self.encoder = SentenceEncoder(
            vocabulary, config.embedding, config.dimensions, config.norm, config.longest
        )
        self.unit = Unit(config.score, config.dimensions)

    def forward(self, words: Tensor) -> Tensor:
        """`(T, B)` to `(B, D)`."""
        embedded: Tensor = self.unit(self.encoder.last(words))
        return embedded


class RankingModel(nn.Module):
    """Both of them."""

    def __init__(self, config: RankingConfig, vocabulary: int) -> None:
        super().__init__()
        self.config = config
        self.pictures = PictureEmbedding(config)
        self.sentences = SentenceEmbedding(config, vocabulary)


def picture_step(model: RankingModel) -> RowStep:
    """A picture to its point."""
    ones, side = model.pictures.unit.ones, model.pictures.side
    put = Port("picture", ones.dtype, (side, side, 3))
    return RowStep(model.pictures, put, Port("point", ones.dtype, (ones.shape[1],)))


class SentenceStep(Step):
    """One word of a sentence, and the point of what has been read so far."""

    row_ports = ()

    def __init__(self, model: RankingModel) -> None:
        super().__init__()
        self.model = model.sentences
        encoder = self.model.encoder
        self.state_ports = recurrent_ports(encoder)
        self.step_ports = (Port("word", torch.int64),)
        ones = self.model.unit.ones
        self.output_ports = (Port("point", ones.dtype, (ones.shape[1],)),)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        *state, word = inputs
        after = self.model.encoder.step(word, tuple(state))
        return *after, self.model.unit(after[0])


def seen(model: RankingModel, inputs: Named) -> Named:
    """What training computes of pictures."""
    return {"point": model.pictures(inputs["picture"])}


def read(model: RankingModel, inputs: Named) -> Named:
    """What training computes of sentences: all words at once, the point after each of them."""
    after = model.sentences.encoder(inputs["word"])
    return {"point": model.sentences.unit(after.flatten(0, 1)).view_as(after)}
