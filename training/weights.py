"""The weights a run trains, and their averages, which are what is validated and kept."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from training.machine import deferred_signals


class Weights:
    """A model's tensors by name: as they stand, averaged over the updates, and of the best
    validation.

    Averaging is of parameters. Buffers, which are batch norm's running statistics, are validated
    and kept as they stand: already averages over time, though of the weights being trained.
    `blend` is the share that the weights the run began from have in what is validated and kept.
    """

    def __init__(self, model: nn.Module, blend: float) -> None:
        self.parameters = dict(model.named_parameters())
        self.buffers = dict(model.named_buffers())
        self.average = {n: p.detach().clone() for n, p in self.parameters.items()}
        self._blend = blend
        # Of a run that goes on too: it is given the weights it began from before its checkpoint.
        self._began = {n: t.clone() for n, t in self.average.items()} if blend else {}
        self.best = self.averaged_model()

    @property
    def device(self) -> torch.device:
        return next(iter(self.parameters.values())).device

    def take(self, average: dict[str, Tensor], best: dict[str, Tensor]) -> None:
        """Set the average and the best weights to those of a checkpoint, in the order of the
        parameters, whatever that of the file."""
        self.average = {name: average[name] for name in self.parameters}
        self.best = {name: best[name] for name in self.parameters | self.buffers}

    def average_in(self, update: int, decay: float) -> None:
        """Let the average follow the weights after the update of this number, from 0."""
        # A young average follows closely, so that it forgets the random start.
        decay = min(decay, (1 + update) / (10 + update))
        torch._foreach_lerp_(
            list(self.average.values()),
            [p.detach() for p in self.parameters.values()],
            1 - decay,
        )

    def averaged_model(self) -> dict[str, Tensor]:
        """A copy of what would be kept now: the blended averages, and the buffers."""
        return {n: t.clone() for n, t in (self.blended() | self.buffers).items()}

    def blended(self) -> dict[str, Tensor]:
        """The averages, mixed with a share `blend` of the weights the run began from."""
        began = self._began or self.average
        return {n: torch.lerp(t, began[n], self._blend) for n, t in self.average.items()}

    @contextmanager
    def swapped_in(self, weights: dict[str, Tensor]) -> Iterator[None]:
        """Give the model these weights inside of the block. It has its own again afterwards, also
        when the block ends with an error."""
        live = self.copied(weights)
        try:
            self._load(weights)
            yield
        finally:
            with deferred_signals():  # what is saved next would be half of each
                self._load(live)

    def copied(self, names: Iterable[str]) -> dict[str, Tensor]:
        """The model's own tensors of these names."""
        tensors = self.parameters | self.buffers
        return {name: tensors[name].detach().clone() for name in names}

    @torch.no_grad()
    def _load(self, weights: dict[str, Tensor]) -> None:
        tensors = self.parameters | self.buffers
        for name, tensor in weights.items():
            tensors[name].copy_(tensor)
