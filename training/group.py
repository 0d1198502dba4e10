"""The processes that train together: one alone, unless `torchrun` started several."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, distributed

from models.cells import State


class Group:
    """What a process shares with the others; each has taken the rows `rank::size` of a batch. All
    of them have to make the same calls."""

    def __init__(self, device: torch.device) -> None:
        self.size = distributed.get_world_size() if distributed.is_initialized() else 1
        self.rank = distributed.get_rank() if self.size > 1 else 0
        self._device = device

    def average(self, tensors: Iterable[Tensor]) -> None:
        """Have each tensor be the mean of those of all processes."""
        if self.size == 1:
            return
        for tensor in tensors:
            distributed.all_reduce(tensor)
            tensor /= self.size

    def gather(self, state: State) -> State:
        """The rows of all processes, in the order of the batch."""
        if self.size == 1:
            return state
        gathered = []
        for s in state:
            parts = [torch.empty_like(s) for _ in range(self.size)]
            distributed.all_gather(parts, s.contiguous())
            gathered.append(torch.stack(parts, dim=1).flatten(0, 1))
        return tuple(gathered)

    def part(self, state: Sequence[Tensor]) -> State:
        """The rows of this process, of those of all."""
        return tuple(s[self.rank :: self.size] for s in state)

    def first_says(self, yes: bool, number: float) -> tuple[bool, float]:
        """What the first process says of both."""
        if self.size == 1:
            return yes, number
        told = self._tensor(float(yes), number)
        distributed.broadcast(told, 0)
        said, number = told.tolist()
        return bool(said), number

    def agrees(self, number: int) -> bool:
        """Whether all have the number of the first."""
        if self.size == 1:
            return True
        mine = self._tensor(float(number))
        first = mine.clone()
        distributed.broadcast(first, 0)
        apart = (first != mine).double()
        distributed.all_reduce(apart)
        return not apart.any()

    def _tensor(self, *values: float) -> Tensor:
        return torch.tensor(values, dtype=torch.float64, device=self._device)
