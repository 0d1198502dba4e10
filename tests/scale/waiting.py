"""Waiting for what is done elsewhere."""

import time
from collections.abc import Callable

_PATIENCE_S = 180.0


def wait_for(what: str, condition: Callable[[], bool]) -> None:
    """Raises `RuntimeError` if it does not come true in three minutes."""
    end_s = time.monotonic() + _PATIENCE_S
    while not condition():
        if time.monotonic() > end_s:
            raise RuntimeError(f"{what}: not after {_PATIENCE_S:.0f} s")
        time.sleep(0.01)
