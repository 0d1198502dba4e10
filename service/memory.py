"""How the process keeps its memory small: freed blocks go back to the operating system, and the
garbage collector passes over what stays."""

import ctypes
import gc

_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # of malloc.h
_LARGE_BYTES = 1024 * 1024
_ARENAS = 2


def keep_large_apart() -> None:
    """Have glibc map large blocks by themselves, so that they go back to the system when freed.

    Left alone it does so up to the largest such block that was ever freed, which here are weights:
    whatever is smaller comes to lie among what stays, in as many arenas as there are threads, and
    how much is held depends on who was first. Other C libraries are left alone.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        mallopt(_M_ARENA_MAX, _ARENAS)


def give_back() -> None:
    """Give freed memory that glibc still keeps back to the system: blocks of any size that lie
    before something in use. Takes milliseconds; other C libraries are left alone."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def settle() -> None:
    """Have the garbage collector pass over all objects that exist now, as they have come to stay.

    A full collection looks at every object, and nobody is answered meanwhile: with six models they
    are 86,000, and 20 to 30 ms on an idle machine. This is one itself.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
