"""The export command line: `python -m export train|convert|verify|build`."""

import argparse
import os
import sys
from dataclasses import asdict
from pathlib import Path

import torch
from torch import distributed

from export.convert import MANIFEST, convert, read_manifest, write_json
from export.recipe import Recipe, read_recipe
from export.train import CHECKPOINT, LOG, Trainer, use_fast_float32

DATA_FOLDER = Path(os.environ.get("EVENKEEL_DATA", "data"))


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit code is 0, 1 for a broken bound or bad input, 130 for Ctrl-C."""
    options = _parser().parse_args(arguments)
    use_fast_float32()
    try:
        return int(options.command(options) or 0)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; the same command resumes where it stopped", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m export", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    train = commands.add_parser("train", help="train a recipe; resumes a run that was interrupted")
    convert_ = commands.add_parser("convert", help="turn a finished run into an artifact")
    verify = commands.add_parser("verify", help="compare training with serving; 1 if they differ")
    build = commands.add_parser("build", help="train, convert and verify")

    for command in (train, build):
        command.add_argument("recipe", help="name of a shipped recipe, or a TOML file")
        command.add_argument("--data", help="text file or folder to train on instead")
        command.add_argument("--out", type=Path, help="folder of the run (runs/RECIPE)")
        command.add_argument(
            "--set",
            action="append",
            default=[],
            metavar="TABLE.KEY=VALUE",
            help="change one value of the recipe; may be repeated",
        )
        command.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    convert_.add_argument("run", type=Path)
    for command in (convert_, verify):
        command.add_argument("artifact", type=Path)
    build.add_argument("--artifact", type=Path, help="folder to write (artifacts/RECIPE)")

    train.set_defaults(command=_train)
    convert_.set_defaults(command=lambda options: convert(options.run, options.artifact))
    verify.add_argument("--record", action="store_true", help="write the report to the manifest")
    verify.add_argument("--full", action="store_true", help="10^6 row-steps and 10^5 bytes")
    verify.add_argument("--plot", type=Path, help="write the error over time steps as a PNG")
    verify.set_defaults(
        command=lambda o: _verify(o.artifact, full=o.full, record=o.record, plot=o.plot)
    )
    build.set_defaults(command=_build)
    return parser


def _train(options: argparse.Namespace) -> None:
    settings = [*options.set, *([f"data.source={options.data}"] if options.data else [])]
    run = options.out or Path("runs", Path(options.recipe).stem)
    if "WORLD_SIZE" in os.environ:
        distributed.init_process_group("nccl" if options.device == "cuda" else "gloo")
    train(read_recipe(options.recipe, settings), run, options.device)


def train(recipe: Recipe, run: Path, device: str) -> None:
    """Train a recipe in the folder `run`, or go on with the run that is there."""
    from export.curves import plot_losses
    from export.tasks import LanguageTask
    from export.text_data import read_corpus
    from models.language import LanguageModel

    source = DATA_FOLDER / recipe.data.source
    corpus = read_corpus(str(source) if source.exists() else recipe.data.source)
    train_tokens, validation_tokens = corpus.split(recipe.data.validation_fraction)
    torch.manual_seed(recipe.training.seed)
    model = LanguageModel(recipe.model).to(device)
    world = distributed.get_world_size() if distributed.is_initialized() else 1
    rank = distributed.get_rank() if world > 1 else 0
    task = LanguageTask(
        model,
        train_tokens,
        validation_tokens,
        recipe.batch.rows,
        recipe.batch.steps,
        recipe.training.seed,
        rank,
        world,
    )
    facts = {
        "kind": "language",
        "model": asdict(recipe.model),
        "batch": asdict(recipe.batch),
        "data": {
            "name": corpus.name,
            "sha256": corpus.sha256,
            "bytes": len(corpus.content),
            "validation_fraction": recipe.data.validation_fraction,
        },
    }
    trainer = Trainer(task, recipe.training, run, facts)
    trainer.run()
    if rank == 0:
        plot_losses(run / LOG, run / "loss.png", f"{run.name} on {corpus.name}")
        print(f"{run / CHECKPOINT}: validation loss {trainer.progress.best_loss:.4f} nats/byte")


def _verify(
    artifact: Path, *, full: bool, record: bool, plot: Path | None = None, brief: bool = False
) -> int:
    from export.curves import plot_errors
    from export.verify import FULL, QUICK, verify

    report = verify(artifact, DATA_FOLDER, FULL if full else QUICK)
    headlines = {"log-probability", "sampling", "bits"}
    for finding in report.findings:
        if not brief or finding.name in headlines or not finding.holds:
            print(finding.line())
    if plot is not None:
        plot_errors(report.error_curves, plot, f"{artifact.name}: distance to float64")
    if record:
        manifest = read_manifest(artifact)
        manifest["parity"] = [asdict(f) | {"holds": f.holds} for f in report.findings]
        write_json(artifact / MANIFEST, manifest)
    return 0 if report.holds else 1


def _build(options: argparse.Namespace) -> int:
    name = Path(options.recipe).stem
    options.out = options.out or Path("runs", name)
    artifact = options.artifact or Path("artifacts", name)
    _train(options)
    print(f"converting {options.out} to {artifact}")
    convert(options.out, artifact)
    return _verify(artifact, full=False, record=True, brief=True)


if __name__ == "__main__":
    sys.exit(main())
