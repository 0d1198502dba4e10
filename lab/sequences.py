"""Classification of sequences of words: batches of similar lengths, padded with the word 0.

Shapes: N examples, B rows, U words.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lab.classify import Classification


@dataclass
class SequenceClassification(Classification):
    """Inputs are `(N, U)` int64. Of `pool` batches of an order drawn anew each epoch, each holds
    the sequences of most similar length; a pool of 1 mixes short and long."""

    pool: int = 1

    def order(self, generator: torch.Generator) -> Tensor:
        return similar(lengths_of(self.train.inputs), self.rows, self.pool, generator).flatten()


def padded_rows(sequences: Iterable[Sequence[int]], width: int) -> Tensor:
    """Sequences of at most `width` words as rows, `(N, U)` int64."""
    return torch.tensor([[*words, *[0] * (width - len(words))] for words in sequences])


def lengths_of(words: Tensor) -> Tensor:
    """How many of `(N, U)` are words: `(N,)`."""
    return (words > 0).sum(-1)


def similar(lengths: Tensor, rows: int, pool: int, generator: torch.Generator) -> Tensor:
    """A random order of the examples in batches, `(N // B, B)`: of each `pool` batches the examples
    are put in order of length, then all batches are shuffled. What does not fill one is left out.
    """
    order = torch.randperm(len(lengths), generator=generator)
    order = order[: len(order) // rows * rows]
    parts = [part[lengths[part].argsort(stable=True)] for part in order.split(rows * pool)]
    batches = torch.cat(parts).view(-1, rows)
    return batches[torch.randperm(len(batches), generator=generator)]
