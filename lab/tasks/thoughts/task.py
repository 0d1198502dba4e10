"""Learning thoughts: sentences drawn anew every epoch; judged by nats, and by what probes read.

Shapes: T words, B sentences, H units.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lab.epochs import Epochs, evaluating
from lab.experiment import Figures
from lab.tasks.thoughts.data import Stories
from lab.tasks.thoughts.model import ThoughtsConfig, ThoughtsModel
from lab.tasks.thoughts.probe_data import Probes
from lab.tasks.thoughts.probes import bag_of_words, probe
from models.cells import State
from models.sentence import padded
from training.task import Batch

_VALIDATED = 1024  # sentences of a validation, the same each time
_PROBED, _PROBED_FOLDS = 800, 2  # of each set, at a checkpoint; a test has all of it
_AT_ONCE = 256


@dataclass
class Material:
    """What is learned from and probed with."""

    stories: Stories
    probes: Probes
    config: ThoughtsConfig

    @cached_property
    def sample(self) -> Probes:
        """What a checkpoint is probed with."""
        return self.probes.sample(_PROBED)

    @cached_property
    def baselines(self) -> dict[str, Figures]:
        """The probes of what has learned nothing: words alone, and an encoder before training."""
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = ThoughtsModel(self.config, self.stories.vocabulary.size)
        untrained = Encoder(model, self.stories)
        return {"bag of words": probe(self.probes, bag_of_words),
                "random encoder": probe(self.probes, untrained)}  # fmt: skip


@dataclass
class Encoder:
    """The vectors of sentences, in evaluation mode."""

    model: ThoughtsModel
    stories: Stories

    def __call__(self, sentences: Sequence[list[str]]) -> NDArray[Any]:
        """`(B, H)`. Sentences of one length are together, so there is little padding."""
        longest = self.model.config.longest
        numbers = [self.stories.vocabulary.numbers(words)[:longest] for words in sentences]
        order = sorted(range(len(numbers)), key=lambda i: len(numbers[i]))
        found = np.empty((len(numbers), self.model.config.units))
        with evaluating(self.model):
            for start in range(0, len(order), _AT_ONCE):
                places = order[start : start + _AT_ONCE]
                words = padded([numbers[i] for i in places])
                found[places] = self.model.encoder.last(words).numpy()
        return found


@dataclass
class Thoughts(Epochs):
    """Sentences around sentences."""

    model: ThoughtsModel
    material: Material
    rows: int
    seed: int

    @property
    def stories(self) -> Stories:
        """What it learns from."""
        return self.material.stories

    @property
    def examples(self) -> int:
        return len(self.stories.train)

    def batch(self, update: int) -> tuple[Batch, bool]:
        places = [self.stories.train[i] for i in self.drawn(update).tolist()]
        return self.around(places), True

    def around(self, places: Sequence[int]) -> Batch:
        """Sentences, those before and those after them: each `(T, B)`."""
        return tuple(self.words([place + move for place in places]) for move in (0, -1, 1))

    def words(self, places: Sequence[int]) -> Tensor:
        """Sentences by their places, as far as a sentence goes: `(T, B)`."""
        longest = self.model.config.longest
        return padded([self.stories.sentences[place][:longest] for place in places])

    def loss(self, batch: Batch, state: State) -> tuple[Tensor, State]:
        return self.model.loss(*batch), state

    def validate(self) -> float:
        nats = self.nats(self.stories.validation)
        encoder = Encoder(self.model, self.stories)
        self.figures = {"nats": nats} | probe(self.material.sample, encoder, _PROBED_FOLDS)
        return nats

    def test(self) -> Figures:
        nats = self.nats(self.stories.test)
        return {"nats": nats} | probe(self.material.probes, Encoder(self.model, self.stories))

    def nats(self, places: Sequence[int]) -> float:
        """Nats of a word of the sentences around some evenly spaced ones, in evaluation mode: the
        mean of those of `_AT_ONCE` at a time; NaN where they are not finite."""
        spaced = places[:: max(1, len(places) // _VALIDATED)][:_VALIDATED]
        parts = [spaced[start : start + _AT_ONCE] for start in range(0, len(spaced), _AT_ONCE)]
        with evaluating(self.model):
            found = [self.model.loss(*self.around(part)).item() * len(part) for part in parts]
        nats = sum(found) / len(spaced)
        return nats if math.isfinite(nats) else math.nan
