"""How training uses the machine it runs on."""

import ctypes
import platform
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # of malloc.h


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
    """SIGTERM: what Ctrl-C keeps, it keeps."""


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Have SIGTERM raise `Terminated` where a signal can be asked for."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminated(*_: object) -> None:
        # Another, as one to all processes of a group, is not to cut short what is kept now.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def interruption_behind(error: BaseException) -> KeyboardInterrupt | None:
    """What an error came of, if that was an interruption: a library may take one in the midst of
    its imports for a failure of its own."""
    behind: BaseException | None = error
    while behind is not None:
        if isinstance(behind, KeyboardInterrupt):
            return behind
        behind = behind.__cause__ or behind.__context__
    return None


@contextmanager
def held_back(*numbers: signal.Signals) -> Iterator[list[int]]:
    """Have signals wait: half an update would be done again by whoever goes on from it. Yields
    those that have come."""
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    before = {n: signal.signal(n, lambda number, _: came.append(number)) for n in numbers}
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


def told_too_large(error: BaseException) -> str | None:
    """What memory there was not enough of, if it was that."""
    first = str(error).splitlines()[0] if str(error) else ""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return first or "it has run out"
    # A CPU's memory has no type of error, but words of its own.
    _, words, rest = first.partition("DefaultCPUAllocator: ")
    return rest if words else None
