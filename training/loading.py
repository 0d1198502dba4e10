"""Ctrl-C while a command loads its libraries: that takes seconds, and nothing is to be kept yet."""

import signal


def end_at_ctrl_c() -> None:
    """Have Ctrl-C end the process without a traceback, unless whoever started it ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def hear_ctrl_c() -> None:
    """Have Ctrl-C raise `KeyboardInterrupt` again: from here on there is work to save."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
