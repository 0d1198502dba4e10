"""Memory that was freed, back to the system."""

import ctypes


def give_back() -> None:
    """What glibc keeps of it: blocks of any size, once a larger one was freed, wherever something
    in use lies behind them. Takes milliseconds; other C libraries are left alone."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
