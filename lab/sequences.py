"""Classification of sequences of words: batches of similar lengths, padded with the word 0.

Shapes: N examples, B rows, U words.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from lab.classify import Classification
from training.task import Batch


@dataclass
class SequenceClassification(Classification):
    """Inputs are `(N, U)` int64. Of `pool` batches of an order drawn anew each epoch, each holds
    the sequences of most similar length; a pool of 1 mixes short and long."""

    pool: int = 1

    def batch(self, update: int) -> tuple[Batch, bool]:
        epoch, index = divmod(update, self.updates_per_epoch)
        if epoch != self._epoch:
            generator = torch.Generator().manual_seed(hash((self.seed, epoch)) & 0x7FFFFFFF)
            lengths = lengths_of(self.train.inputs)
            self._order = similar(lengths, self.rows, self.pool, generator).flatten()
            self._epoch = epoch
        rows = self._order[index * self.rows : (index + 1) * self.rows]
        return (self.train.inputs[rows], self.train.classes[rows]), True


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
