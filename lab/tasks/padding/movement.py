"""How far a sentence's logits move when it stands among others and padding instead of alone.

Shapes: B rows, N of all batches, T positions, C classes.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lab.experiment import Figures
from lab.sequences import lengths_of


@torch.no_grad()
def movement(model: nn.Module, batches: Sequence[Tensor]) -> Figures:
    """Of batches of words `(B, T)` as they stand, and each of their rows alone without padding.

    `moved in training` and `moved served`: the largest difference of a logit, in training and in
    evaluation mode, over the root mean square of the logits alone; `other bits in training` and
    `other bits served`: of how many rows in 100 it is not 0.
    """
    was_training = model.training
    figures = {}
    for mode, training in (("in training", True), ("served", False)):
        model.train(training)
        together = torch.cat([model(batch) for batch in batches])  # (N, C)
        alone = torch.cat([model(row) for batch in batches for row in _rows(batch)])
        difference = (together - alone).abs().amax(1)  # (N,)
        figures[f"moved {mode}"] = (difference.max() / alone.square().mean().sqrt()).item()
        figures[f"other bits {mode}"] = 100 * (difference > 0).double().mean().item()
    model.train(was_training)
    return figures


def _rows(batch: Tensor) -> list[Tensor]:
    """Each row as a batch of its own, `(1, T)`, as wide as it is long."""
    return [batch[i : i + 1, :n] for i, n in enumerate(lengths_of(batch).tolist())]
