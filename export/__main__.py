"""The export command line: `python -m export COMMAND`, for training, conversion and proof."""

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

from training.loading import end_at_ctrl_c, spin_briefly

if __name__ == "__main__":
    end_at_ctrl_c()
    spin_briefly()

from contract.files import require_writable
from export.artifact import read_artifact
from export.convert import convert, require_artifact, require_servable
from export.folders import require_parent
from export.kinds import KINDS
from training.command import add_training_options, asked_recipe, is_first, train, train_by
from training.command import run as run_command
from training.run import data_at, data_folder


def main(arguments: list[str] | None = None) -> int:
    """Run one command, with the exit codes of `training.command.run`."""
    return run_command(_parser(), arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m export", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    train_ = commands.add_parser("train", help="train a recipe; resumes a run that was interrupted")
    train_.set_defaults(command=train)
    build = commands.add_parser("build", help="train, convert and verify")
    build.add_argument("--artifact", type=Path, help="folder to write (artifacts/RECIPE)")
    build.set_defaults(command=_build)
    for command in (train_, build):
        add_training_options(command)

    convert_ = commands.add_parser(
        "convert", help="turn a finished run, or an artifact again, into an artifact"
    )
    convert_.add_argument("source", type=Path, help="folder of a run or an artifact")
    convert_.add_argument("artifact", type=Path)
    convert_.add_argument(
        "--fold", action="store_true", help="look the first layer's projected input up in a table"
    )
    convert_.add_argument(
        "--quantize", action="store_true", help="round the matrices to eight bits, untrained"
    )
    convert_.set_defaults(
        command=lambda o: convert(o.source, o.artifact, fold=o.fold, quantize=o.quantize)
    )

    verify = commands.add_parser("verify", help="compare training with serving; 1 if they differ")
    verify.add_argument("artifact", type=Path)
    verify.add_argument("--record", action="store_true", help="write the report to the manifest")
    verify.add_argument("--full", action="store_true", help="10^6 row-steps and 10^5 bytes")
    verify.add_argument("--plot", type=Path, help="write the error over time steps as a PNG")
    verify.set_defaults(
        command=lambda o: _verify(o.artifact, full=o.full, record=o.record, plot=o.plot)
    )

    for kind in KINDS.values():
        kind.add_commands(commands)
    return parser


def _verify(
    artifact: Path, *, full: bool, record: bool, plot: Path | None = None, brief: bool = False,
    data: Path | None = None,
) -> int:  # fmt: skip
    from export.parity.report import COST, FULL, QUICK
    from export.verify import verify

    if plot is not None:  # matplotlib takes seconds, and wants a place to write to
        from training.curves import plot_errors, require_picture

        require_parent(plot)
        require_picture(plot)
    if record:
        require_writable(artifact)
    before = read_artifact(artifact)
    report = verify(artifact, data or data_folder(), FULL if full else QUICK)
    headlines = {"log-probability", "log-density", "sampling", "bits"}
    for finding in report.findings:
        if not brief or finding.name in headlines or not finding.holds:
            print(finding.line())
    for note in report.notes:
        print(f"     {note}")
    manifest = read_artifact(artifact)
    if manifest.digest != before.digest:
        raise ValueError(f"{artifact} has become another while it was compared; verify it again")
    # Of a small network or on a busy machine the bound of time may break: no doubt of the model.
    kept = tuple(f for f in report.findings if f.holds or f.name != COST)
    if record and len(kept) < len(report.findings):
        print(f"     not recorded: {COST}, which is of time alone")
    manifest = manifest.model_copy(update={"parity": kept})
    if manifest.doubt is not None:
        print(manifest.doubt)
    if record:
        manifest.write(artifact)
    if plot is not None:
        plot_errors(report.error_curves, plot, f"{artifact.name}: distance to float64")
    return 0 if report.holds else 1


def _build(options: argparse.Namespace) -> int:
    name = Path(options.recipe).stem
    options.out = options.out or Path("runs", name)
    artifact = options.artifact or Path("artifacts", name)
    # Now, not after hours of training.
    require_artifact(artifact)
    recipe = asked_recipe(options)
    kind = KINDS[recipe.kind]
    require_servable(kind, kind.model(asdict(recipe.model)), f"recipe {name}")
    train_by(recipe, options)
    if not is_first():
        return 0
    # What was trained on, wherever it is, unless it is a word.
    own = Path(data_at(recipe.data.source, data_folder()))
    code = 0

    def compare(folder: Path) -> None:
        nonlocal code
        code = _verify(
            folder, full=False, record=True, brief=True, data=own if own.exists() else None
        )
        if code and artifact.exists():
            raise ValueError(
                f"{artifact} is left as it was; `python -m export convert {options.out} FOLDER` "
                "makes an artifact of the run all the same"
            )

    print(f"converting {options.out} to {artifact}")
    convert(options.out, artifact, approve=compare)
    return code


if __name__ == "__main__":
    sys.exit(main())
