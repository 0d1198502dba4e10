"""What holds while a command loads its libraries, which takes seconds: Ctrl-C, as nothing is to be
kept yet, and how PyTorch's threads wait, which is settled then."""

import os
import signal


def end_at_ctrl_c() -> None:
    """Have Ctrl-C end the process without a traceback, unless whoever started it ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def hear_ctrl_c() -> None:
    """Have Ctrl-C raise `KeyboardInterrupt` again: from here on there is work to save."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def spin_briefly() -> None:
    """Have threads of PyTorch that wait for each other soon sleep, unless the environment says how
    they wait. By default they turn for milliseconds: where other processes want the cores, each
    keeps the one it waits for from running, and an update takes seconds."""
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")
