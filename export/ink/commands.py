"""Verbs of the command line for ink: `pens` looks at data, `styles` stores hands."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from training.run import data_at, data_folder, typed_data

if TYPE_CHECKING:
    from training.ink.line import Line


def add_commands(commands: Any) -> None:
    """Add both to an argparse group of commands."""
    pens = commands.add_parser("pens", help="read pen data, say what it holds, draw some of it")
    pens.add_argument("folder", type=Path, help="one of pen data, or the word synthetic")
    pens.add_argument("--plot", type=Path, help="write a contact sheet as a PNG")
    pens.add_argument("--out", type=Path, help="write the prepared lines as one .npz file")
    pens.set_defaults(command=_pens)
    styles = commands.add_parser("styles", help="store hands of real writers with an artifact")
    styles.add_argument("artifact", type=Path)
    styles.add_argument("--data", default="unipen_r01_v07", help="pen data, or a prepared .npz")
    styles.add_argument("--hands", type=Path, help="whose, a TOML file with a [[style]] each")
    styles.set_defaults(command=_styles)


def _pens(options: argparse.Namespace) -> int:
    from export.folders import require_parent
    from training.ink.command import show

    if options.out is not None and options.out.suffix != ".npz":
        raise ValueError(f"--out is {str(options.out)!r}; a corpus is a file that ends with .npz")
    for place in options.plot, options.out:
        require_parent(place)
    if options.plot is not None:  # matplotlib takes seconds, and wants a place to write to
        from training.curves import require_picture
        from training.ink.sheet import plot_sheet

        require_picture(options.plot)
    lines = show(options.folder)
    kept = bool(lines)
    if lines and options.out is not None:
        kept = _keep(lines, options.folder, options.out)
    if lines and options.plot is not None:
        plot_sheet(lines, options.plot, title=f"{options.folder}: {len(lines):,} lines")
        print(f"\nwrote {options.plot}")
    return 0 if kept else 1


def _keep(lines: "list[Line]", folder: Path, out: Path) -> bool:
    """Prepare the lines and write them to a file, if anything is left of them."""
    from contract.files import printable
    from training.ink.corpus import PenCorpus
    from training.ink.line import Tally
    from training.ink.prepare import prepare

    tally = Tally()
    corpus = PenCorpus(printable(folder.resolve().name), prepare(lines, tally))
    print(tally.report())
    if corpus.inks:
        corpus.save(out)
    return bool(corpus.inks)


def _styles(options: argparse.Namespace) -> None:
    from contract.files import require_writable
    from export.ink.styles import RECIPE, add_styles, read_styles, require_pen
    from training.ink.corpus import read_pens
    from training.ink.line import Tally

    # Pen data takes minutes to read.
    require_pen(options.artifact)
    require_writable(options.artifact)
    hands = read_styles(options.hands or RECIPE)
    corpus = read_pens(Path(data_at(typed_data(options.data), data_folder())), Tally())
    add_styles(options.artifact, corpus, hands)
