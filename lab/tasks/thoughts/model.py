"""Skip-thoughts: an encoder of a sentence, and decoders of the one before and the one after it.

Shapes: T words, B sentences, E embedding, H units.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lab.experiment import Named
from models.generation import Port, Step, recurrent_ports
from models.norms import NormKind
from models.sentence import PADDING, UNKNOWN, SentenceEncoder
from models.stack import Dropout, Stack


@dataclass(frozen=True, slots=True, kw_only=True)
class ThoughtsConfig:
    """`norm` is of all three GRUs. Of a `vocabulary` that is read, the most frequent `predicted`
    words are predicted, any other as unknown. Sentences have `longest` words and no more."""

    norm: NormKind = "layer"
    vocabulary: int = 8000
    predicted: int = 2000
    embedding: int = 96
    units: int = 192
    longest: int = 20


class Decoder(nn.Module):
    """A GRU that begins at the sentence vector and is given each word before the next."""

    def __init__(self, config: ThoughtsConfig) -> None:
        super().__init__()
        # One step more than there are words: the end is predicted too.
        self.stack = Stack(
            config.embedding, config.units, 1, "gru", config.norm, Dropout(), config.longest + 1
        )

    def forward(self, thought: Tensor, before: Tensor) -> Tensor:
        """The sentence vector `(B, H)` and the words before `(T, B, E)` to `(T, B, H)`."""
        state = (thought, *self.stack.initial_state(len(thought))[1:])
        h: Tensor = self.stack(before, state)[0]
        return h


class ThoughtsModel(nn.Module):
    """Kiros et al. 2015, with the sentence vector as a decoder's first state, as in the
    public code that the paper used."""

    def __init__(self, config: ThoughtsConfig, vocabulary: int) -> None:
        super().__init__()
        self.config = config
        self.encoder = SentenceEncoder(
            vocabulary, config.embedding, config.units, config.norm, config.longest
        )
        self.previous, self.following = Decoder(config), Decoder(config)
        self.readout = nn.Linear(config.units, min(config.predicted, vocabulary))

    def loss(self, words: Tensor, previous: Tensor, following: Tensor) -> Tensor:
        """Mean nats of a word, and of the end, of both neighbours: each `(T, B)`."""
        thought = self.encoder.last(words)
        h, targets = [], []
        for decoder, neighbour in ((self.previous, previous), (self.following, following)):
            start = neighbour.new_full((1, neighbour.shape[1]), PADDING)
            target = torch.cat([neighbour, start])  # the end is what nothing follows
            before = self.encoder.embedding(torch.cat([start, neighbour]))
            counted = torch.cat([torch.ones_like(start), neighbour]) != PADDING
            h.append(decoder(thought, before)[counted])
            targets.append(target[counted])
        return F.cross_entropy(self.readout(torch.cat(h)), self.known(torch.cat(targets)))

    def known(self, words: Tensor) -> Tensor:
        """Words as they are predicted."""
        return torch.where(words < self.readout.out_features, words, UNKNOWN)


class ThoughtStep(Step):
    """One word of a sentence; the state after the last is the sentence vector."""

    row_ports = ()

    def __init__(self, model: ThoughtsModel) -> None:
        super().__init__()
        self.model = model.encoder
        self.state_ports = recurrent_ports(self.model)
        self.step_ports = (Port("word", torch.int64),)
        real, units = self.model.embedding.weight.dtype, model.config.units
        self.output_ports = (Port("thought", real, (units,)),)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        *state, word = inputs
        after = self.model.step(word, tuple(state))
        return *after, after[0].clone()  # a graph may not return one tensor under two names


def read(model: ThoughtsModel, inputs: Named) -> Named:
    """What training computes: all words at once, the vector after each of them."""
    return {"thought": model.encoder(inputs["word"])}
