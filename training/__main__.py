"""Train a recipe where there is no onnxruntime: `python -m training RECIPE`, as `export train`."""

import argparse
import signal
import sys

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # What follows takes seconds to load and keeps nothing: Ctrl-C ends it without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from training.command import add_training_options, run, train

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m training", description=__doc__)
    add_training_options(parser)
    parser.set_defaults(command=train)
    sys.exit(run(parser, None))
