"""Reading as a training task: whole rows of ink, each from the zero state, and their texts.

Shapes: B rows.
"""

import numpy as np
from torch import Tensor
from torch.nn import functional as F

from contract.reader import BLANK
from models.cells import State
from models.reader import ReaderModel, TwinModel
from training.ink.prepare import Ink
from training.ink.rows import Growth, RowTask
from training.reader.rows import ReadBatch, collate, pieces_of
from training.task import Batch


class ReaderTask(RowTask[ReaderModel | TwinModel]):
    """The text of a row from its ink; an epoch is as many characters as the training lines have."""

    # Texts start short, because where a letter is has to be found out first.
    growth = Growth(first=6, last=32, epochs=1.0)
    amount_per_character = 1.0

    @staticmethod
    def amount(inks: list[Ink]) -> int:
        return sum(len(ink.text) for ink in inks)

    def collated(self, inks: list[Ink], generator: np.random.Generator | None) -> ReadBatch:
        rows = [pieces_of(i, generator, reordered=self._reorders(generator)) for i in inks]
        return collate(rows, [ink.text for ink in inks])

    def _reorders(self, generator: np.random.Generator | None) -> bool:
        """By lot; without a generator as a whole line is read, if any is read so."""
        if not self.reordered:
            return False
        return generator is None or bool(generator.random() < self.reordered)

    def losses(self, batch: Batch, state: State) -> tuple[Tensor, State]:
        return row_losses(self.model, ReadBatch(*batch), state)


def row_losses(
    model: ReaderModel | TwinModel, batch: ReadBatch, state: State
) -> tuple[Tensor, State]:
    """Nats of the text of every row `(B,)`, over all the ways its steps can say it, and the state
    after the last step. A row too short to say its text counts for nothing."""
    logits, state = model(batch.pieces, batch.lengths, state)
    nats = F.ctc_loss(
        F.log_softmax(logits, dim=-1),
        batch.symbols,
        batch.lengths,
        batch.counts,
        blank=BLANK,
        reduction="none",
        zero_infinity=True,
    )
    return nats, state
