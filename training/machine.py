"""How training uses the machine it runs on."""

import ctypes
import platform
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # of malloc.h
_TERMINATING = (signal.SIGTERM, signal.SIGHUP)  # the latter is of a terminal that is closed
_INTERRUPTING = (signal.SIGINT, *_TERMINATING)


def use_fast_float32() -> None:
    """Let CPU matrix products take oneDNN's float32 kernels: 2.3 times MKL's speed on an AMD CPU.

    PyTorch reaches them only under a setting that allows bfloat16. Where the CPU has AMX, or is an
    ARM, that would really mean bfloat16, so there the default stays.
    """
    plain = not torch.cpu.get_capabilities().get("amx_tile", False)
    if plain and platform.machine() in ("x86_64", "AMD64"):
        torch.backends.mkldnn.matmul.fp32_precision = "bf16"  # type: ignore[attr-defined]


def keep_freed_memory() -> None:
    """Have the C library keep the memory of freed tensors for the next ones.

    An update allocates the same blocks of tens of megabytes each time; mapped anew they are zeroed
    page by page by the kernel. Does nothing where the library is not glibc.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_MAX, 0)
        mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP, handled as Ctrl-C is: the run is saved."""

    def __init__(self, number: int = signal.SIGTERM) -> None:
        super().__init__()
        self.number = number


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Have SIGTERM and SIGHUP raise `Terminated` where a signal can be asked for; after the first
    interruption, a Ctrl-C as well, they do nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupted(number: int, _: object) -> None:
        # Another, as one to all processes of a group, is not to cut short what is kept now. No
        # `SIG_IGN`: of one that has come already Python would say that it is ignored.
        for heard in before.keys() & _TERMINATING:
            signal.signal(heard, lambda *_: None)
        raise KeyboardInterrupt if number == signal.SIGINT else Terminated(number)

    before = {n: signal.signal(n, interrupted) for n in _INTERRUPTING if not _ignored(n)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ignored(number: signal.Signals) -> bool:
    """Whether whoever started this wants it to go on, as `nohup` does with SIGHUP."""
    return signal.getsignal(number) is signal.SIG_IGN


def interruption_behind(error: BaseException) -> KeyboardInterrupt | None:
    """The interruption among the causes of an error, if there is one: a library that is interrupted
    in the midst of its imports may raise an error of its own from it."""
    behind: BaseException | None = error
    while behind is not None:
        if isinstance(behind, KeyboardInterrupt):
            return behind
        behind = behind.__cause__ or behind.__context__
    return None


@contextmanager
def deferred_signals() -> Iterator[list[int]]:
    """Hold interruptions back until the block has ended, and deliver them then: a run that was
    saved in the midst of an update would do half of it twice. Yields the list of those that have
    come."""
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    heard = [n for n in _INTERRUPTING if not _ignored(n)]
    before = {n: signal.signal(n, lambda number, _: came.append(number)) for n in heard}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for came_number in came:
        handler = before[signal.Signals(came_number)]
        if callable(handler):
            handler(came_number, None)
        elif handler is signal.SIG_DFL:
            signal.raise_signal(came_number)


def memory_shortage(error: BaseException) -> str | None:
    """The reason that an error gives if it came of too little memory, of the GPU or of the CPU;
    None for any other error."""
    first = str(error).splitlines()[0] if str(error) else ""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return first or "it has run out"
    # A CPU's memory has no type of error, but words of its own.
    _, words, rest = first.partition("DefaultCPUAllocator: ")
    return rest if words else None
