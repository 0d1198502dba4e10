"""Who gets a core first: what answers everybody before what computes for some.

The event loop takes a fraction of a core and everybody waits for it; an engine and the threads of
its sessions take whatever there is. Were they equals, the loop would wait for a slice of theirs.
"""

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

# Of Linux's 19: beside one thread that gives way, whoever does not gets three quarters of a core.
_NICER = 5


def give_way() -> None:
    """From now on, the calling thread and those it will start. Linux alone has threads that differ
    in this; elsewhere nothing changes. There is no way back without privileges."""
    if sys.platform == "linux":
        own = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, own, os.getpriority(os.PRIO_PROCESS, own) + _NICER)


def in_background(make: Callable[[], T]) -> T:
    """What is made on a thread that gives way, so that all threads started by it do."""
    with ThreadPoolExecutor(1, "making", initializer=give_way) as thread:
        return thread.submit(make).result()
