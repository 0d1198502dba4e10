"""How every command line of the project is run: settings of PyTorch, errors, exit codes. And the
command that trains.
"""

import argparse
import io
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import torch
from safetensors import SafetensorError
from torch import distributed

from training.config import Recipe
from training.group import among_others
from training.machine import (
    Terminated,
    interruption_behind,
    keep_freed_memory,
    memory_shortage,
    terminated_as_interrupted,
    use_fast_float32,
)
from training.output import leave_full_output, read_enough
from training.recipe import read_recipe
from training.run import carry_out, data_folder, typed_data


def run(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> int:
    """Run the command of the options: 0, 1 for a broken bound, bad input or a reader of the output
    that has enough, 130 for Ctrl-C, 143 for SIGTERM, 129 for a closed terminal. A command that
    goes on where it stopped when it is run again has `goes_on` among its options."""
    options = parser.parse_args(arguments)
    use_fast_float32()
    keep_freed_memory()
    for stream in sys.stdout, sys.stderr:  # a file may have a name that is no text
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with terminated_as_interrupted():
            code = int(options.command(options) or 0)
            if sys.stdout is not None:
                sys.stdout.flush()
            return code
    except BrokenPipeError as error:
        interruption = interruption_behind(error)
        return _interrupted(interruption, options) if interruption else read_enough()
    except (ValueError, OSError, SafetensorError) as error:  # of files that do not fit too
        leave_full_output()
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as error:
        return _interrupted(error, options)
    except Exception as error:
        if (told := memory_shortage(error)) is not None:
            print(f"error: there is not enough memory: {told}", file=sys.stderr)
            return 1
        if (interruption := interruption_behind(error)) is not None:
            return _interrupted(interruption, options)
        raise


def _interrupted(error: KeyboardInterrupt, options: argparse.Namespace) -> int:
    goes_on = getattr(options, "goes_on", False)
    how = "; the same command goes on where it stopped" if goes_on else ""
    with suppress(OSError):  # the same Ctrl-C ends whoever reads it, such as `tee`
        print(f"\ninterrupted{how}", file=sys.stderr)
    leave_full_output()
    return 128 + (error.number if isinstance(error, Terminated) else signal.SIGINT)


def positive(text: str) -> int:
    """A whole number of an option of which there is at least one."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}; it must be 1 or more")
    return number


def add_training_options(command: argparse.ArgumentParser) -> None:
    """The options of `train`."""
    command.add_argument("recipe", help="name of a shipped recipe, or a TOML file")
    command.add_argument("--data", help="file or folder to train on instead")
    command.add_argument("--out", type=Path, help="folder of the run (runs/RECIPE)")
    command.add_argument(
        "--from",
        dest="start",
        type=Path,
        metavar="ARTIFACT",
        help="begin with its weights; it may be of another precision",
    )
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="TABLE.KEY=VALUE",
        help="change one value of the recipe; may be repeated",
    )
    command.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    command.set_defaults(goes_on=True)


def train(options: argparse.Namespace) -> None:
    """Carry out the recipe of the options."""
    train_by(asked_recipe(options), options)


def train_by(recipe: Recipe, options: argparse.Namespace) -> None:
    """Carry a recipe out, alone or as one of the processes that `torchrun` started."""
    folder = options.out or Path("runs", Path(options.recipe).stem)
    device, several = options.device, "WORLD_SIZE" in os.environ
    own_gpu = several and device == "cuda"
    if own_gpu:
        device = f"cuda:{os.environ.get('LOCAL_RANK', 0)}"
    require_device(device)
    if own_gpu:
        torch.cuda.set_device(device)
    if several:
        # Its functions have the group that is there when it is first imported, which an optimiser
        # does, as their default, so that no group would ever end.
        import_module("torch.distributed.nn.functional")
        with among_others():
            distributed.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    try:
        carry_out(recipe, folder, device, data_folder(), options.start)
    finally:
        # A group that is left to the interpreter's end can abort the process there.
        if distributed.is_initialized():
            distributed.destroy_process_group()


def is_first() -> bool:
    """Whether this is the first of the processes that `torchrun` started, which has the run, or the
    only one."""
    return int(os.environ.get("RANK", 0)) == 0


def asked_recipe(options: argparse.Namespace) -> Recipe:
    """The recipe that the options of `train` name, with what they change."""
    recipe = read_recipe(options.recipe, options.set)
    if options.data is not None:
        recipe = replace(recipe, data=replace(recipe.data, source=typed_data(options.data)))
    return recipe


def require_device(device: str) -> None:
    """Raise `ValueError` for a device that PyTorch does not have here."""
    try:
        torch.zeros(1, device=device).item()  # tensors of `meta` hold nothing
    except (AssertionError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"--device is {device!r}, which PyTorch has not: {reason}") from error
