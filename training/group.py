"""The processes that train together: one alone, unless `torchrun` started several."""

import signal
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, distributed

from models.cells import State
from training.machine import Terminated, deferred_signals, memory_shortage


@contextmanager
def among_others() -> Iterator[None]:
    """Turn an error of a collective operation into a `ConnectionError`: a process of the group has
    ended, or was never reached."""
    try:
        yield
    except RuntimeError as error:  # of Gloo and NCCL, which have no type for it
        if memory_shortage(error):
            raise
        reason = str(error).partition("\n")[0].partition(". This is typically")[0]
        raise ConnectionError(
            "the processes of this training do not reach each other, or one has ended; the same "
            f"command goes on from what was saved last ({reason})"
        ) from error


class Group:
    """What a process shares with the others; each has taken the rows `rank::size` of a batch. All
    of them have to make the same calls."""

    def __init__(self, device: torch.device) -> None:
        self.size = distributed.get_world_size() if distributed.is_initialized() else 1
        self.rank = distributed.get_rank() if self.size > 1 else 0
        self._device = device
        self._came: Sequence[int] = ()  # signals that this process was sent
        self._told = 0  # the signal that some process was sent, once all know of it

    @contextmanager
    def together(self) -> Iterator[None]:
        """Have an interruption of one process wait until all know of it: what it left in the midst
        of an update, the others would wait for for ever."""
        if self.size == 1:
            yield
            return
        with deferred_signals() as self._came:
            yield

    def interrupt_if_told(self) -> None:
        """End the training of all processes where one was interrupted, after the same update."""
        if self._told:
            raise KeyboardInterrupt if self._told == signal.SIGINT else Terminated(self._told)

    def shares(self, error: BaseException | None) -> bool:
        """Whether all processes end here and can save together: this one is alone, or has no error,
        or was interrupted, which all hear of. Of another `error` of its own they do not know."""
        return self.size == 1 or error is None or isinstance(error, KeyboardInterrupt)

    def average(self, tensors: Iterable[Tensor]) -> None:
        """Have each tensor be the mean of those of all processes."""
        if self.size == 1:
            return
        with among_others():
            for tensor in tensors:
                distributed.all_reduce(tensor)
                tensor /= self.size

    def gather(self, state: State) -> State:
        """The rows of all processes, in the order of the batch."""
        if self.size == 1:
            return state
        gathered = []
        for s in state:
            parts = self._all_have(s.contiguous())
            gathered.append(torch.stack(parts, dim=1).flatten(0, 1))
        return tuple(gathered)

    def part(self, state: Sequence[Tensor]) -> State:
        """The rows of this process, of those of all; laid out as they are in a training that was
        not interrupted, since a product of others may round otherwise."""
        return tuple(s[self.rank :: self.size].contiguous() for s in state)

    def first_says(self, yes: bool, number: float) -> tuple[bool, float]:
        """Both values as the first process has them, so that all decide alike. All hear as well
        whether any process was interrupted."""
        if self.size == 1:
            return yes, number
        told = self._all_have(self._tensor(float(yes), number, max(self._came, default=0)))
        said, number, _ = told[0].tolist()
        self._told = max(int(one[2]) for one in told)
        return bool(said), number

    def agrees(self, number: int) -> bool:
        """Whether all have the number of the first."""
        if self.size == 1:
            return True
        mine = self._tensor(float(number))
        return all(torch.equal(one, mine) for one in self._all_have(mine))

    def _all_have(self, mine: Tensor) -> list[Tensor]:
        """The tensors of all processes, of one shape."""
        everyone = [torch.empty_like(mine) for _ in range(self.size)]
        with among_others():
            distributed.all_gather(everyone, mine)
        return everyone

    def _tensor(self, *values: float) -> Tensor:
        return torch.tensor(values, dtype=torch.float64, device=self._device)
