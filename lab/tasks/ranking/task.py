"""Learning to rank: pairs drawn by seed and update, judged by what is found among all others.

Shapes: B pairs, T words, S pixels of a side.
"""

import random
from dataclasses import dataclass

import torch
from torch import Tensor

from lab.epochs import Epochs, evaluating
from lab.experiment import Figures
from lab.tasks.ranking.data import Captioned, Pair
from lab.tasks.ranking.model import RankingModel
from lab.tasks.ranking.score import MARGIN, SCORES, ranking_loss, retrieval
from models.cells import State
from models.sentence import padded
from training.task import Batch

_MOVES = 2  # pixels a picture is moved at most, in training
_AT_ONCE = 256  # rows of an evaluation


@dataclass
class Ranking(Epochs):
    """A caption is some of a picture's phrases, in any order;
    to be judged, all of them, the name first. Pictures are mirrored and moved at random."""

    model: RankingModel
    data: Captioned
    rows: int
    seed: int

    @property
    def examples(self) -> int:
        return len(self.data.train)

    def batch(self, update: int) -> tuple[Batch, bool]:
        chance = random.Random(f"batch {self.seed} {update}")
        pairs = [self.data.train[place] for place in self.drawn(update).tolist()]
        words = padded([self._drawn(pair.phrases, chance) for pair in pairs])
        return (self._varied(self.pictures(pairs), chance), words), True

    def loss(self, batch: Batch, state: State) -> tuple[Tensor, State]:
        pictures, words = batch
        return ranking_loss(
            self.scores(self.model.sentences(words), self.model.pictures(pictures)),
            MARGIN[self.model.config.score],
        ), state

    def validate(self) -> float:
        self.figures = retrieval(self.score(self.data.validation))
        return self.figures["rank"]

    def test(self) -> Figures:
        """Of all but flags; `flags rank` is that of flags among themselves."""
        flags = retrieval(self.score(self.data.flags))["rank"]
        return retrieval(self.score(self.data.test)) | {"flags rank": flags}

    def score(self, pairs: list[Pair]) -> Tensor:
        """Every caption with every picture, in evaluation mode: `(B, B)`."""
        captions, pictures = [], []
        with evaluating(self.model):
            for start in range(0, len(pairs), _AT_ONCE):
                some = pairs[start : start + _AT_ONCE]
                captions.append(self.model.sentences(self.captions(some)))
                pictures.append(self.model.pictures(self.pictures(some)))
        seen = torch.cat(pictures)
        return torch.cat([self.scores(part, seen) for part in torch.cat(captions).split(64)])

    def scores(self, captions: Tensor, pictures: Tensor) -> Tensor:
        """By the score of the model."""
        return SCORES[self.model.config.score](captions, pictures)

    def pictures(self, pairs: list[Pair]) -> Tensor:
        """`(B, S, S, 3)` in 0 to 1."""
        return self.data.pictures[[pair.picture for pair in pairs]].float() / 255

    def captions(self, pairs: list[Pair]) -> Tensor:
        """`(T, B)`: all phrases, as far as a caption goes."""
        return padded([self._joined(pair.phrases) for pair in pairs])

    def _drawn(self, phrases: list[list[int]], chance: random.Random) -> list[int]:
        return self._joined(chance.sample(phrases, chance.randint(1, len(phrases))))

    def _joined(self, phrases: list[list[int]]) -> list[int]:
        return [word for phrase in phrases for word in phrase][: self.model.config.longest]

    def _varied(self, pictures: Tensor, chance: random.Random) -> Tensor:
        mirrored = torch.tensor([chance.random() < 0.5 for _ in pictures]).view(-1, 1, 1, 1)
        moves = chance.randint(-_MOVES, _MOVES), chance.randint(-_MOVES, _MOVES)
        return torch.where(mirrored, pictures.flip(2), pictures).roll(moves, (1, 2))
