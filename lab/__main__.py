"""The laboratory's command line: `python -m lab COMMAND`; claims of paper and pen, measured."""

import argparse
import sys
from functools import partial
from pathlib import Path
from types import ModuleType

from training.loading import end_at_ctrl_c, spin_briefly

if __name__ == "__main__":
    end_at_ctrl_c()
    spin_briefly()

from contract.files import require_writable
from export.folders import require_parent
from export.results import command
from lab.command import add_verbs
from lab.glyphs import report as glyphs
from lab.legibility import chosen, pages
from lab.legibility import report as legibility
from lab.reading import accents, hands, own, several, writers
from lab.reading import report as reading
from service.artifact import ArtifactError
from training.command import run as run_command
from training.recipe import read_recipe
from training.run import carry_out, data_folder, typed_data
from training.task import Diverged

RESULTS = Path("docs", "results")
# What has ink read; each that has goals exits with 1 if one is missed.
_READINGS: dict[str, tuple[ModuleType, str]] = {
    "legibility": (legibility, "have Tesseract read real and generated ink"),
    "reading": (reading, "have the reader, its twin and Tesseract read real ink"),
    "lines": (several, "have the reader read what people wrote on several lines"),
    "glyphs": (glyphs, "have both read every printable character as the pen writes it"),
    "accents": (accents, "have Tesseract read sentences of seven languages with their accents"),
    "hands": (hands, "have both read lines in every stored hand, at several biases"),
    "writers": (writers, "have the reader read lines in the hand of every writer of a corpus"),
    "own": (own, "have the pen write lines it can learn from, those that the reader reads right"),
    "pages": (pages, "measure whether pages stay in one hand and lines keep their strokes"),
    "chosen": (chosen, "have Tesseract read the best of four draws, which the reader chose"),
}


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit code is 0, or 1 where a claim does not hold or input is bad."""
    parser = _parser()
    parser.set_defaults(told=command("lab", arguments))  # to stand beside the results
    return run_command(parser, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    analysis = commands.add_parser(
        "analysis", help="compute the paper's analysis; 1 if it differs from the paper's"
    )
    analysis.add_argument("--out", type=Path, default=RESULTS / "analysis", help="folder to write")
    analysis.set_defaults(command=_analysis)
    norms = commands.add_parser("norms", help="train twins, each of another norm, at several rates")
    norms.add_argument("--out", type=Path, default=RESULTS, help="folder to write")
    norms.set_defaults(command=_norms, goes_on=True)
    race = commands.add_parser("race", help="train pens with and without layer norm")
    race.add_argument("--data", help="pen data or a prepared .npz to train on instead")
    race.add_argument("--out", type=Path, default=RESULTS, help="folder to write")
    race.set_defaults(command=_race, goes_on=True)
    for name, (module, text) in _READINGS.items():
        one = commands.add_parser(name, help=text)
        module.add_options(one)
        one.set_defaults(command=partial(_read, module))
    report = commands.add_parser(
        "report", help="write docs/measured.md and the table of docs/paper.md"
    )
    report.set_defaults(command=_report)
    add_verbs(commands)
    return parser


def _read(module: ModuleType, options: argparse.Namespace) -> int:
    """Have ink read. Places for results are looked at first: hours later it would be too late to
    learn that there are none."""
    given = vars(options)
    for file in (given.get("out"), given.get("sheet")):
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            require_parent(file)
    if "sheet" in given:
        from training.curves import require_picture

        require_picture(options.sheet)
    try:
        return int(module.run(options))
    except ArtifactError as error:
        raise ValueError(str(error)) from error


def _analysis(options: argparse.Namespace) -> int:
    from lab.analyse import analyse

    return 0 if analyse(options.out) else 1


def _norms(options: argparse.Namespace) -> None:
    from lab.norms import NORMS, RATES, contrast_twins

    require_writable(options.out)
    runs = {norm: {rate: _twin(norm, rate) for rate in RATES} for norm in NORMS}
    contrast_twins(runs, read_recipe("contrast"), options.out, options.told)


def _twin(norm: str, rate: float) -> Path | None:
    """The run of a twin; None if it diverged, which is as good a result of a rate that is tried."""
    run = Path("runs", f"contrast-{norm}-{rate:g}")
    changes = [f"model.norm={norm}", f"training.learning_rate={rate}"]
    try:
        carry_out(read_recipe("contrast", changes), run, "cpu", data_folder())
    except Diverged as error:
        print(f"{run}: {error}", file=sys.stderr)
        return None
    return run


def _race(options: argparse.Namespace) -> None:
    from lab.race import NORMS, race

    require_writable(options.out)
    # The result names the data as it was typed, whatever folder that was in.
    data = [f"data.source={options.data}"] if options.data else []
    there = [f"data.source={typed_data(options.data)}"] if options.data else []
    runs = {norm: Path("runs", f"pen-contrast-{norm}") for norm in NORMS}
    for norm, run in runs.items():
        recipe = read_recipe("pen-contrast", [f"model.norm={norm}", *there])
        carry_out(recipe, run, "cpu", data_folder())
    race(runs, read_recipe("pen-contrast", data), options.out, options.told)


def _report(options: argparse.Namespace) -> None:
    from lab import paper, plots
    from lab.measured import page

    print(f"written to {page.write()} and {paper.write()}")
    print(f"{len(plots.publish())} pictures copied to {plots.SHOWN}")


if __name__ == "__main__":
    sys.exit(main())
