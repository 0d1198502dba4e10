"""`python -m tests.reliability.faulty`: the service, with faults to be had by signal.

SIGUSR1 makes a run of a model raise, the next that comes after one that did not; SIGUSR2 sets the
clock back by an hour, as Python reads it.
"""

import signal
import sys
import time
from typing import Any
from weakref import WeakSet

from service.__main__ import main
from service.engine.chunk import Chunks

_BACK_S = 3600
_run, _time, _time_ns = Chunks.run, time.time, time.time_ns
_due = {"faults": 0}
_failed = WeakSet[Chunks]()  # at their last run


def _run_or_fail(chunks: Chunks, *given: Any, **named: Any) -> float:
    if _due["faults"] and chunks not in _failed:
        _due["faults"] -= 1
        _failed.add(chunks)
        raise MemoryError("as told by SIGUSR1")
    _failed.discard(chunks)
    return _run(chunks, *given, **named)


def _fail_once(*_: object) -> None:
    _due["faults"] += 1


def _set_back(*_: object) -> None:
    time.time = lambda: _time() - _BACK_S
    time.time_ns = lambda: _time_ns() - _BACK_S * 10**9


if __name__ == "__main__":
    Chunks.run = _run_or_fail  # type: ignore[assignment,method-assign]
    signal.signal(signal.SIGUSR1, _fail_once)
    signal.signal(signal.SIGUSR2, _set_back)
    sys.exit(main())
