"""The attentive reader (Hermann et al. 2015, section 3.2): a bidirectional LSTM over the story, one
over the question, and an answer from those places of the story that the question points to.

Shapes: B batch, T steps of the longest story of it, U words a story may have, Q of a question,
E embedding, H units of each LSTM, C answers. Word 0 is padding.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from models.bidirectional import Bidirectional
from models.norms import NormKind, make_norm

ReaderNorm = NormKind | Literal["batch-everywhere"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderConfig:
    """Hyper-parameters of an `AttentiveReader`. `norm` is that of the LSTMs; `batch-everywhere`
    puts batch norm also where story and question meet (Cooijmans et al. 2016). `words` is U."""

    norm: ReaderNorm = "layer"
    words: int = 64
    embedding: int = 32
    units: int = 64


class Meeting(nn.Module):
    """`tanh(N(W a) + N(V b))`; N is batch norm, or nothing, and one bias for both."""

    def __init__(self, inputs: int, units: int, norm: ReaderNorm) -> None:
        super().__init__()
        self.first = nn.Linear(inputs, units, bias=False)
        self.second = nn.Linear(inputs, units, bias=False)
        kind: NormKind = "batch" if norm == "batch-everywhere" else "none"
        self.norm_first = make_norm(kind, units, longest_step=1)
        self.norm_second = make_norm(kind, units, bias=False, longest_step=1)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """`a (B, inputs)` or, of T places, `(B, T, inputs)`, and `b (B, inputs)`; to as many of
        `units`."""
        first = self.norm_first(self.first(a.flatten(0, -2)))
        second = self.norm_second(self.second(b))
        if a.dim() == 3:
            first, second = first.view(-1, a.shape[1], first.shape[-1]), second.unsqueeze(1)
        return torch.tanh(first + second)


class Answer(nn.Module):
    """Attention and answer: `m_t = tanh(W y_t + V u)`, `s = softmax(w m)`, `r = sum s_t y_t`,
    `g = tanh(W' r + V' u)`, and the answers' logits of g."""

    def __init__(self, units: int, answers: int, norm: ReaderNorm) -> None:
        super().__init__()
        self.look = Meeting(2 * units, 2 * units, norm)
        self.score = nn.Linear(2 * units, 1, bias=False)
        self.join = Meeting(2 * units, 2 * units, norm)
        self.readout = nn.Linear(2 * units, answers)

    def forward(self, y: Tensor, real: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        """The story `y (B, T, 2H)`, where it is no padding `(B, T)`, and the question `u (B, 2H)`,
        to logits `(B, C)` and weights `(B, T)`."""
        m = self.look(y, u)
        scores = self.score(m.flatten(0, 1)).view(-1, y.shape[1])
        weights = torch.softmax(torch.where(real, scores, -torch.inf), dim=-1)
        r = torch.matmul(weights.unsqueeze(1), y).squeeze(1)  # (B, 2H)
        return self.readout(self.join(r, u)), weights


class AttentiveReader(nn.Module):
    """Words of a story and of a question to an answer."""

    def __init__(self, config: ReaderConfig, symbols: int, answers: int) -> None:
        super().__init__()
        self.config = config
        norm: NormKind = "batch" if config.norm == "batch-everywhere" else config.norm
        self.embedding = nn.Embedding(symbols, config.embedding)
        self.story, self.question = (
            Bidirectional(config.embedding, config.units, "lstm", norm, config.words)
            for _ in range(2)
        )
        self.answer = Answer(config.units, answers, config.norm)

    def forward(self, inputs: Tensor) -> Tensor:
        """A story and its question in one row, `(B, U + Q)`, to logits `(B, C)`."""
        logits, _ = self.attend(inputs)
        return logits

    def attend(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Logits, and how much each word of the story weighs, `(B, T)`."""
        story, question = self.split(inputs)
        y, _ = self.read(self.story, story)
        _, u = self.read(self.question, question)
        logits, weights = self.answer(y.transpose(0, 1), story[:, : len(y)] > 0, u)
        return logits, weights

    def split(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """The story `(B, U)` and the question `(B, Q)`."""
        return inputs[:, : self.config.words], inputs[:, self.config.words :]

    def read(self, reader: Bidirectional, words: Tensor) -> tuple[Tensor, Tensor]:
        """What one of the two LSTMs makes of words `(B, U)`, as far as the longest goes."""
        lengths = (words > 0).sum(-1)
        steps = int(lengths.max())
        embedded = self.embedding(words[:, :steps].t().contiguous())  # (T, B, E)
        y, last = reader(embedded, lengths)
        return y, last
