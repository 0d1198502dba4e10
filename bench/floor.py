"""The floor under a step: the time to read its weights once, at the bandwidth of this machine.

At batch 1 every weight is used once per step, so a step that takes its weights from memory or from
a cache cannot be faster than reading them. The floor reads a float32 buffer of exactly as many
bytes again and again, so it stands in whatever cache the weights would stand in; with the same
number of threads, in the same rounds as what is compared with it; and with the fastest reader of
PyTorch, by median: `sum` or `amax`, both vectorised with several accumulators and parallel. On the
machines tried they were 1.6 times as fast as `dot`, `mv` and a norm.
"""

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

_READERS: dict[str, Callable[[Tensor], Tensor]] = {"sum": torch.sum, "amax": torch.amax}
_TRIALS = 50
_WARM_UP = 5


def weight_bytes(model: nn.Module) -> int:
    """The bytes of weights that one step at batch 1 touches: every parameter once, of an embedding
    one row. For a pen that is less than it reads, since its window embeds the whole text."""
    total = sum(p.nbytes for p in model.parameters())
    tables = [m.weight for m in model.modules() if isinstance(m, nn.Embedding)]
    return total - sum(table.nbytes - table[0].nbytes for table in tables)


def reads(size_bytes: int, steps: int) -> tuple[str, Callable[[], None]]:
    """The name of the fastest reader of a buffer, and `steps` reads of the whole of it."""
    # Not zeros, which may all be one page of memory until they are written.
    buffer = torch.ones(size_bytes // 4, dtype=torch.float32)
    name = min(_READERS, key=lambda reader: _median_s(_READERS[reader], buffer))
    read = _READERS[name]

    @torch.inference_mode()
    def run() -> None:
        for _ in range(steps):
            read(buffer)

    return name, run


@torch.inference_mode()
def _median_s(read: Callable[[Tensor], Tensor], buffer: Tensor) -> float:
    times = []
    for _ in range(_WARM_UP + _TRIALS):
        start = time.perf_counter()
        read(buffer)
        times.append(time.perf_counter() - start)
    return statistics.median(times[_WARM_UP:])
