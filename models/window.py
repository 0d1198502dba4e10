"""The soft window: which characters of the text the pen is writing (Graves 2013, eq. 46-51).

Shapes: B rows, H units, K Gaussians, U characters, E embedding.
"""

import math

import torch
from torch import Tensor, nn

# A stroke of the pen moves on by about this part of a character; the window begins at that pace.
_INITIAL_PACE = 0.1


class SoftWindow(nn.Module):
    """K Gaussians over the characters, whose centres `kappa` only ever move to the right.

    Characters are numbered from 0 and the centre of number u is at u + 1/2. After the last comes
    symbol 0, the end of the text; when the window rests on it, the writing is over.
    """

    positions: Tensor

    def __init__(self, units: int, gaussians: int, symbols: int, width: int, longest: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(symbols, width)
        self.parameters_of = nn.Linear(units, 3 * gaussians)
        self.register_buffer("positions", torch.arange(longest) + 0.5)
        alpha, beta, kappa = self.parameters_of.bias.data.chunk(3)
        alpha.fill_(-math.log(gaussians))
        beta.fill_(0.0)
        kappa.fill_(math.log(_INITIAL_PACE))

    def embed(self, text: Tensor) -> Tensor:
        """The characters as the network sees them: `text (B, U)` to `(B, U, E)`."""
        embedded: Tensor = self.embedding(text)
        return embedded

    def places(self, characters: int) -> Tensor:
        """Where the centres of the first `characters` are, `(U,)`."""
        # A slice of all of them would be folded into a second constant of the served graph.
        whole = characters == len(self.positions)
        return self.positions if whole else self.positions[:characters]

    def forward(
        self, h: Tensor, kappa: Tensor, text: Tensor, beyond: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """One step: `h (B, H)`, `kappa (B, K)`, embedded `text (B, U, E)` and `beyond (B, U)`, true
        past the end of the text, to the window `(B, E)`, its new `kappa`, its weights `(B, U)`.

        Both sums are matrix products, one row each, and characters beyond weigh exactly 0.
        """
        alpha, beta, pace = torch.exp(self.parameters_of(h)).chunk(3, dim=-1)
        kappa = kappa + pace
        distance = kappa.unsqueeze(-1) - self.places(text.shape[1])  # (B, K, U)
        bumps = torch.exp(-beta.unsqueeze(-1) * distance * distance)
        weights = torch.matmul(alpha.unsqueeze(-2), bumps).squeeze(-2)  # (B, U)
        weights = torch.where(beyond, 0.0, weights)
        return torch.matmul(weights.unsqueeze(-2), text).squeeze(-2), kappa, weights
