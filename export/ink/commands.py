"""Verbs of the command line for ink: `pens` looks at data, `styles` stores hands."""

import argparse
from pathlib import Path
from typing import Any

from training.run import data_folder


def add_commands(commands: Any) -> None:
    """Add both to an argparse group of commands."""
    pens = commands.add_parser("pens", help="read pen data, say what it holds, draw some of it")
    pens.add_argument("folder", type=Path, help="IAM-OnDB, UNIPEN, or the word synthetic")
    pens.add_argument("--plot", type=Path, help="write a contact sheet as a PNG")
    pens.add_argument("--out", type=Path, help="write the prepared lines as one .npz file")
    pens.set_defaults(command=_pens)
    styles = commands.add_parser("styles", help="store hands of real writers with an artifact")
    styles.add_argument("artifact", type=Path)
    styles.add_argument("--data", default="unipen_r01_v07", help="pen data, or a prepared .npz")
    styles.add_argument("--hands", type=Path, help="whose, a TOML file with a [[style]] each")
    styles.set_defaults(command=_styles)


def _pens(options: argparse.Namespace) -> int:
    from contract.files import printable
    from export.folders import require_parent
    from training.ink.command import show
    from training.ink.corpus import PenCorpus
    from training.ink.line import Tally
    from training.ink.prepare import prepare

    if options.out is not None and options.out.suffix != ".npz":
        raise ValueError(f"--out is {str(options.out)!r}; a corpus is a file that ends with .npz")
    for place in options.plot, options.out:
        require_parent(place)
    lines = show(options.folder, options.plot)
    if lines and options.out is not None:
        tally = Tally()
        corpus = PenCorpus(printable(options.folder.name), prepare(lines, tally))
        print(tally.report())
        if not corpus.inks:
            return 1
        corpus.save(options.out)
    return 0 if lines else 1


def _styles(options: argparse.Namespace) -> None:
    from export.convert import read_artifact
    from export.ink.styles import RECIPE, add_styles, read_styles
    from training.ink.corpus import read_pens
    from training.ink.line import Tally

    # Pen data takes minutes to read.
    read_artifact(options.artifact)
    hands = read_styles(options.hands or RECIPE)
    source = data_folder() / options.data
    corpus = read_pens(source if source.exists() else Path(options.data), Tally())
    add_styles(options.artifact, corpus, hands)
