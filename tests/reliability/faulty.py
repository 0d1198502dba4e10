"""`python -m tests.reliability.faulty`: the service, with faults to be had by signal.

SIGUSR1 makes a run of a model raise, the next that comes after one that did not; SIGUSR2 sets the
clock back by an hour, as Python reads it.
"""

import signal
import sys
import time
from typing import Any

from service.__main__ import main
from service.engine.engine import Engine

_BACK_S = 3600
_run, _time, _time_ns = Engine._run, time.time, time.time_ns
_due = {"faults": 0}


def _run_or_fail(engine: Engine, *given: Any, **named: Any) -> float:
    if _due["faults"] and not engine._failures:
        _due["faults"] -= 1
        raise MemoryError("as told by SIGUSR1")
    return _run(engine, *given, **named)


def _fail_once(*_: object) -> None:
    _due["faults"] += 1


def _set_back(*_: object) -> None:
    time.time = lambda: _time() - _BACK_S
    time.time_ns = lambda: _time_ns() - _BACK_S * 10**9


if __name__ == "__main__":
    Engine._run = _run_or_fail  # type: ignore[assignment,method-assign]
    signal.signal(signal.SIGUSR1, _fail_once)
    signal.signal(signal.SIGUSR2, _set_back)
    sys.exit(main())
