"""How a process begins that shares the jobs of a comparison: without PyTorch, which takes seconds
to load."""

import multiprocessing
import os
import threading

from training.loading import end_at_ctrl_c


def begin() -> None:
    """Have this process end at Ctrl-C, and with the one that began it, which may be killed: then
    nobody holds the folder it would go on to write in."""
    end_at_ctrl_c()
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
