"""How the process of `evenkeel` begins and ends; `python -m clients` is the same."""

import signal
import sys


def main() -> None:
    """Carry out the command line. Ctrl-C while libraries are loaded, which takes a moment, and an
    output that nothing can be written to, as `/dev/full`, leave no traceback."""
    heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heard:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from clients.asking import leave_output
    from clients.command import main as command

    if heard:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        command()
    except OSError as error:  # of `--help`; the verbs tell of theirs
        leave_output()
        print(f"evenkeel: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
