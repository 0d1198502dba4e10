"""How every command line of the project is run: settings of PyTorch, errors, exit codes."""

import argparse
import sys
from collections.abc import Sequence

from training.loop import keep_freed_memory, use_fast_float32


def run(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> int:
    """Run the command of the options: 0, 1 for a broken bound or bad input, 130 for Ctrl-C."""
    options = parser.parse_args(arguments)
    use_fast_float32()
    keep_freed_memory()
    try:
        return int(options.command(options) or 0)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; the same command resumes where it stopped", file=sys.stderr)
        return 130
