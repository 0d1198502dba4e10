"""Train a recipe where there is no onnxruntime: `python -m training RECIPE`, as `export train`."""

import argparse
import sys

from training.loading import end_at_ctrl_c, spin_briefly

if __name__ == "__main__":
    end_at_ctrl_c()
    spin_briefly()

from training.command import add_training_options, run, train

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m training", description=__doc__)
    add_training_options(parser)
    parser.set_defaults(command=train)
    sys.exit(run(parser, None))
