"""Output that nobody reads any more, or that is full, at the end of a command."""

import os
import sys
from typing import TextIO


def read_enough() -> int:
    """Whoever reads the output has enough: what is left of it is for nobody. Returns the exit
    code."""
    for stream in sys.stdout, sys.stderr:
        if stream is not None:
            _lead_nowhere(stream)
    return 1


def leave_full_output() -> None:
    """Write what has been printed or, where that fails, lead it nowhere: at the end of the process
    it would fail once more, and the exit code be 120."""
    for stream in sys.stdout, sys.stderr:
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            _lead_nowhere(stream)


def _lead_nowhere(stream: TextIO) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
