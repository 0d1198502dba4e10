"""A sentence as one vector: the state of a recurrent layer after its last word.

Sentences stand side by side, padded at the end; what follows a sentence leaves its vector alone.
Shapes: T words, B sentences, H units.
"""

import torch
from torch import Tensor, nn

from models.cells import State
from models.norms import NormKind
from models.stack import Dropout, Stack

# The first two of any vocabulary: what follows a sentence, and a word the vocabulary does not have.
PADDING, UNKNOWN = 0, 1


class SentenceEncoder(nn.Module):
    """Word embeddings and a GRU (Ba et al. 2016, supplement, eq. 26-28).

    `longest` is how many steps batch norm keeps statistics of. It counts rows that have ended in
    those of its batch, as padded batches have them.
    """

    def __init__(self, vocabulary: int, embedding: int, units: int, norm: NormKind, longest: int):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding)
        nn.init.normal_(self.embedding.weight, std=embedding**-0.5)
        self.stack = Stack(embedding, units, 1, "gru", norm, Dropout(), longest)

    @property
    def state_names(self) -> tuple[str, ...]:
        """The name of every state tensor; the first is the sentence so far."""
        return self.stack.state_names

    def initial_state(self, batch: int) -> State:
        """Zeros: a tensor per state name."""
        return self.stack.initial_state(batch)

    def forward(self, words: Tensor) -> Tensor:
        """All words, as in training: `(T, B)` to the sentence after each of them `(T, B, H)`; past
        the end of a sentence, that after its last word."""
        h, _ = self.stack(self.embedding(words), self.initial_state(words.shape[1]))
        held: Tensor = h.gather(0, places(words).unsqueeze(-1).expand_as(h))
        return held

    def last(self, words: Tensor) -> Tensor:
        """The sentences: `(T, B)` to `(B, H)`."""
        h, _ = self.stack(self.embedding(words), self.initial_state(words.shape[1]))
        last: Tensor = h[places(words)[-1], torch.arange(words.shape[1])]
        return last

    def step(self, word: Tensor, state: State) -> State:
        """One word, as in serving: `(B,)` and the state before it to that after it."""
        _, after = self.stack.step(self.embedding(word), state)
        present = (word != PADDING).unsqueeze(-1)
        return torch.where(present, after[0], state[0]), *after[1:]


def places(words: Tensor) -> Tensor:
    """The step each row has come to: `(T, B)` words to `(T, B)` int64, no further than its last."""
    last = (words != PADDING).sum(0) - 1
    return torch.minimum(torch.arange(len(words)).unsqueeze(-1), last)


def padded(sentences: list[list[int]]) -> Tensor:
    """Sentences of any lengths side by side: `(T, B)`."""
    rows = [torch.tensor(words) for words in sentences]
    return nn.utils.rnn.pad_sequence(rows, padding_value=PADDING)
