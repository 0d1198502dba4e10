"""Memory that nothing uses any more goes back to the system."""

import ctypes
import sys
from pathlib import Path

import pytest

from service.memory import give_back

_MB = 1 << 20
_BLOCKS, _BLOCK_BYTES = 1024, 64 << 10  # too small to be mapped each by itself


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's alone")
def test_what_was_freed_behind_something_in_use_is_given_back() -> None:
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "malloc_trim"):
        pytest.skip("glibc's alone")
    libc.malloc.restype = ctypes.c_void_p
    blocks = [ctypes.c_void_p(libc.malloc(_BLOCK_BYTES)) for _ in range(_BLOCKS)]
    for block in blocks:
        ctypes.memset(block, 1, _BLOCK_BYTES)
    kept = blocks.pop()
    try:
        for block in blocks:
            libc.free(block)
        before = _resident_bytes()
        give_back()
        assert before - _resident_bytes() > 40 * _MB
    finally:
        libc.free(kept)
