"""Training: exact resumption, reproducibility, data parallel, and what can go wrong on the way."""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError

from export.__main__ import main
from tests.training.tiny import (
    SHORT,
    Interrupted,
    stop_after,
    stop_in_validation,
    tensors,
    tiny_recipe,
    write_corpus,
)
from training import checkpoint, command
from training.config import Recipe
from training.loop import CHECKPOINT, LOG
from training.recipe import read_recipe
from training.run import carry_out

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.usefixtures("_undrawn")


def _recipe(corpus: Path, **training: object) -> Recipe:
    """The tiny one, for two epochs, after each of which it is validated."""
    return tiny_recipe(corpus, **({"epochs": 2} | training))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text that is learned again and again here."""
    return write_corpus(tmp_path_factory.mktemp("corpus"), SHORT)


@pytest.fixture(scope="module")
def run(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run on it; nobody may change it."""
    folder = tmp_path_factory.mktemp("run") / "tiny"
    carry_out(_recipe(corpus), folder, "cpu", Path())
    return folder


def test_training_learns(run: Path) -> None:
    rows = [json.loads(line) for line in (run / LOG).read_text().splitlines()]
    assert rows[-1]["validation_loss"] < rows[0]["validation_loss"] < 3.5
    assert (run / "loss.png").stat().st_size > 5000


def test_the_same_seed_gives_the_same_weights_bit_for_bit(
    corpus: Path, run: Path, tmp_path: Path
) -> None:
    carry_out(_recipe(corpus), tmp_path / "again", "cpu", Path())
    first, second = tensors(run), tensors(tmp_path / "again")
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.long
def test_another_seed_gives_other_weights(corpus: Path, tmp_path: Path) -> None:
    for seed in (0, 1):
        recipe = _recipe(corpus, epochs=0.05, seed=seed)
        carry_out(recipe, tmp_path / str(seed), "cpu", Path())
    name = "best.stack.cells.0.weight_h"
    assert not torch.equal(tensors(tmp_path / "0")[name], tensors(tmp_path / "1")[name])


def _alike(one: Path, other: Path, *columns: str) -> bool:
    """Whether two runs have the same weights, bit for bit, and logs alike in these columns."""
    first, second = tensors(one), tensors(other)
    logs = [(folder / LOG).read_text().splitlines() for folder in (one, other)]
    told = [[[row[c] for c in columns] for row in map(json.loads, log)] for log in logs]
    return told[0] == told[1] and all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("updates", [pytest.param(1, marks=pytest.mark.long), 33])
def test_a_resumed_run_equals_an_uninterrupted_one_bit_for_bit(
    corpus: Path, run: Path, tmp_path: Path, updates: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        stop_after(patch, updates)
        with pytest.raises(Interrupted):
            carry_out(_recipe(corpus), tmp_path / "tiny", "cpu", Path())
    carry_out(_recipe(corpus), tmp_path / "tiny", "cpu", Path())
    assert _alike(run, tmp_path / "tiny", "train_loss", "validation_loss")


def _interrupt(recipe: Recipe, folder: Path, update: int) -> None:
    """Carry a recipe out up to a SIGINT in the middle of this update."""
    step, left = torch.optim.AdamW.step, [update]

    def interrupted(self: torch.optim.AdamW) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGINT)
        step(self)

    # What is started in the background has it ignored.
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch.optim.AdamW, "step", interrupted)
            with pytest.raises(KeyboardInterrupt):
                carry_out(recipe, folder, "cpu", Path())
    finally:
        signal.signal(signal.SIGINT, usual)
    assert checkpoint.load(folder / CHECKPOINT)[1]["progress"]["update"] == update


@pytest.mark.parametrize("first", [pytest.param(False, marks=pytest.mark.long), True])
def test_an_update_that_is_interrupted_is_done_once(
    corpus: Path, run: Path, tmp_path: Path, first: bool
) -> None:
    """Before the first validation, or just so."""
    validated = json.loads((run / LOG).read_text().splitlines()[0])["update"]
    _interrupt(_recipe(corpus), tmp_path / "tiny", validated if first else 17)
    carry_out(_recipe(corpus), tmp_path / "tiny", "cpu", Path())
    assert _alike(run, tmp_path / "tiny", "update", "train_loss", "validation_loss")


def test_what_is_interrupted_in_its_last_update_is_validated(corpus: Path, tmp_path: Path) -> None:
    # Which is no multiple of those between two validations.
    recipe = _recipe(corpus, epochs=1, validate_every_epochs=0.4)
    folders = [tmp_path / "whole", tmp_path / "interrupted"]
    carry_out(recipe, folders[0], "cpu", Path())
    last = checkpoint.load(folders[0] / CHECKPOINT)[1]["progress"]["update"]
    _interrupt(recipe, folders[1], last)
    carry_out(recipe, folders[1], "cpu", Path())
    assert _alike(*folders, "update", "validation_loss")


@pytest.mark.parametrize("which", [pytest.param("first", marks=pytest.mark.long), "last"])
def test_so_does_one_that_was_interrupted_while_it_was_validated(
    corpus: Path, run: Path, tmp_path: Path, which: str
) -> None:
    count = len((run / LOG).read_text().splitlines())
    with pytest.MonkeyPatch.context() as patch:
        stop_in_validation(patch, 1 if which == "first" else count)
        with pytest.raises(Interrupted):
            carry_out(_recipe(corpus), tmp_path / "tiny", "cpu", Path())
    carry_out(_recipe(corpus), tmp_path / "tiny", "cpu", Path())
    assert _alike(run, tmp_path / "tiny", "update", "train_loss", "validation_loss")


def test_what_was_killed_before_its_first_checkpoint_is_not_logged_twice(
    corpus: Path, run: Path, tmp_path: Path
) -> None:
    shutil.copy(run / LOG, tmp_path)
    carry_out(_recipe(corpus, epochs=1), tmp_path, "cpu", Path())
    logs = [(folder / LOG).read_text().splitlines() for folder in (run, tmp_path)]
    updates = [[json.loads(row)["update"] for row in log] for log in logs]
    assert updates[0][:1] == updates[1]


def test_a_run_whose_weights_had_other_names_is_not_resumed(
    corpus: Path, run: Path, tmp_path: Path
) -> None:
    named, facts = checkpoint.load(run / CHECKPOINT)
    before = {name.replace("readout.weight", "readout.whole"): w for name, w in named.items()}
    checkpoint.save(tmp_path / CHECKPOINT, before, facts)
    with pytest.raises(ValueError, match=r"is of another version or was altered: Error"):
        carry_out(_recipe(corpus), tmp_path, "cpu", Path())


@pytest.mark.parametrize(
    ("progress", "lost"),
    [
        ({"mood": 1}, ""),
        (None, ""),
        *[({}, lost) for lost in ("state.1", "best.readout.bias", "model.readout.bias")],
    ],
)
def test_a_checkpoint_of_another_version_is_told(
    corpus: Path, run: Path, tmp_path: Path, progress: dict[str, int] | None, lost: str
) -> None:
    named, facts = checkpoint.load(run / CHECKPOINT)
    named.pop(lost, None)
    facts |= {"progress": facts["progress"] | progress if progress is not None else None}
    checkpoint.save(tmp_path / CHECKPOINT, named, facts)
    told = r"checkpoint\.safetensors is of another version or was altered"
    with pytest.raises(ValueError, match=told):
        carry_out(_recipe(corpus), tmp_path, "cpu", Path())


def test_a_run_with_other_settings_is_not_resumed(corpus: Path, run: Path) -> None:
    with pytest.raises(ValueError, match=r"other settings \(training\.learning_rate\)"):
        carry_out(_recipe(corpus, learning_rate=0.5), run, "cpu", Path())


def test_a_checkpoint_cut_short_is_named(corpus: Path, run: Path, tmp_path: Path) -> None:
    whole = (run / CHECKPOINT).read_bytes()
    (tmp_path / CHECKPOINT).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"checkpoint\.safetensors cannot be read"):
        carry_out(_recipe(corpus), tmp_path, "cpu", Path())


def test_a_full_disk_leaves_the_old_checkpoint_and_says_so(
    tmp_path: Path, full_disk: Callable[[int], AbstractContextManager[None]]
) -> None:
    path = tmp_path / "a.safetensors"
    checkpoint.save(path, {"w": torch.ones(3)}, {"n": 1})
    with full_disk(10_000), pytest.raises(OSError, match=rf"{path}'$"):
        checkpoint.save(path, {"w": torch.zeros(100_000)}, {"n": 2})
    assert checkpoint.load(path)[1] == {"n": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["a.safetensors"]


@pytest.mark.parametrize("size", [0, 1, 100])
def test_a_corpus_too_small_for_one_batch_is_refused_with_both_sizes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], size: int
) -> None:
    (tmp_path / "small.txt").write_bytes(b"x" * size)
    arguments = ["train", "quickstart", "--data", str(tmp_path / "small.txt")]
    assert main([*arguments, "--out", str(tmp_path / "run")]) == 1
    message = capsys.readouterr().err
    assert "holds no bytes" in message if size == 0 else "needs at least" in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["train", "sonnets"],
            "one of: contrast, handwriting, handwriting-figures, handwriting-int8, "
            "handwriting-marks, handwriting-on, ",
        ),
        (["train", "quickstart", "--data", "/nowhere.txt"], "no such file or folder"),
        (["train", "quickstart", "--set", "model.width=3"], "unknown key width"),
        (["train", "quickstart", "--set", "model.units=wide"], "model.units is 'wide'"),
        (["train", "quickstart", "--set", "model.cell=LSTM"], "model.cell is 'LSTM'"),
        (["train", "handwriting", "--set", "model.cell=LSTM"], "model.cell is 'LSTM'"),
        (["train", "reader", "--set", "model.cell=LSTM"], "model.cell is 'LSTM'"),
        (["train", "quickstart", "--set", "model.layers=0"], "model.layers is 0"),
        (["train", "quickstart", "--set", "model.embedding=-1"], "model.embedding is -1"),
        (["train", "handwriting", "--set", "model.mixtures=0"], "model.mixtures is 0"),
        (["train", "handwriting", "--set", "model.window=-1"], "model.window is -1"),
        (["train", "handwriting", "--set", "model.layers=1"], "model.layers is 1"),
        (["train", "reader", "--set", "model.units=0"], "model.units is 0"),
        (["train", "quickstart", "--device", "gpu"], "--device is 'gpu'"),
        (["train", "quickstart", "--device", "cuda:77"], "--device is 'cuda:77'"),
        (["train", "quickstart", "--set", "kind.x=1"], "kind is \"{'x': 1}\""),
        (["train", "handwriting", "--set", "kind.x=1"], "kind is no table"),
        (["train", "quickstart", "--set", "training.patience_epochs=-1"], "patience_epochs is -1"),
        (["train", "quickstart", "--set", "training.weight_decay=nan"], "weight_decay is nan"),
        (["train", "quickstart", "--set", f"training.seed={2**64}"], f"training.seed is {2**64}"),
        (["train", "handwriting", "--set", "training.seed=-1"], "training.seed is -1"),
        (["train", "quickstart", "--set", "training.average_decay=1.0"], "average_decay is 1.0"),
        (["train", "quickstart", "--set", "training.keep=first"], "training.keep is 'first'"),
        (["train", "quickstart", "--set", "training.epochs=true"], "training.epochs is True"),
        (
            ["train", "quickstart", "--set", f"training.epochs={'9' * 400}"],
            "training.epochs is int",
        ),
        (
            ["train", "quickstart", "--set", "model.output_dropout=1.0"],
            "model.output_dropout is 1.0",
        ),
        (
            ["train", "quickstart", "--set", "model.input_dropout=-0.1"],
            "model.input_dropout is -0.1",
        ),
        (["train", "quickstart", "--set", "batch.rows=0"], "batch.rows is 0"),
        (["train", "quickstart", "--set", "training.learning_rate=nan"], "learning_rate is nan"),
        (["train", "quickstart", "--set", "training.learning_rate=1e300"], "at most 1000000"),
        (["train", "quickstart", "--set", "training.time_limit_s=abc"], "time_limit_s is 'abc'"),
        (["train", "quickstart", "--set", "data.source=1984"], "data.source is 1984"),
        (["train", "quickstart", "--data", "1984"], "the data is '1984': no such file or folder"),
        (["train", "quickstart", "--data", ""], "data.source is ''"),
        (["train", "handwriting", "--data", "/nowhere"], "(EVENKEEL_DATA)"),
        (["train", "handwriting", "--data", "gone.npz"], "saved, here or in "),
        (["train", "README.md"], "README.md is no recipe: "),
        (["train", "quickstart", "--set", "data.varied=0.1"], "data.varied: a model of kind"),
        (["train", "quickstart", "--set", "data.marked=0.1"], "language has no use for"),
        (["train", "handwriting", "--set", "data.reordered=0.5"], "handwriting has no use for"),
        (["train", "reader", "--set", "data.varied=0.1"], "reader has no use for that"),
        (["train", "reader", "--set", "model.norm=Layer"], "model.norm is 'Layer'"),
        (["train", "quickstart", "--set", "training.epochs=1e308"], "epochs is 1e+308"),
        (["train", "quickstart", "--device", "meta"], "--device is 'meta'"),
        (["train", "quickstart", "--set", "units=3"], "must look like"),
        (["train", "quickstart", "--set", "extra.units=3"], "unknown table extra"),
        (["convert", "/nowhere", "/tmp/never"], "train it first"),
        (["convert", "/nowhere", "/tmp/no name"], "'no name' is no name of an artifact"),
        (["verify", "/nowhere"], "not an artifact"),
        (["styles", "/nowhere"], "not an artifact"),
        (["verify", "/nowhere", "--plot", "gone/a.png"], "gone/a.png: there is no folder gone"),
        (["pens", "synthetic", "--plot", "gone/a.png"], "gone/a.png: there is no folder gone"),
        (["train", "quickstart", "--set", "training.time_limit_s=true"], "time_limit_s is True"),
        (["build", "quickstart", "--artifact", "/tmp/.hidden"], "is no name of an artifact"),
        (["build", "quickstart", "--artifact", "/usr"], "/usr is there and is no artifact"),
        (["build", "reader-twin"], "recipe reader-twin is a twin that reads both ways"),
    ],
)
def test_bad_arguments_are_refused_in_words(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if arguments[0] in ("train", "build"):
        arguments = [*arguments, "--out", str(tmp_path)]
    assert main(arguments) == 1
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("warmup", "told"), [(9, False), (10, True)])  # of ten updates
def test_a_run_that_never_leaves_its_warm_up_says_so(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], warmup: int, told: bool
) -> None:
    recipe = _recipe(corpus, epochs=0.5, warmup_updates=warmup)
    carry_out(recipe, tmp_path / "run", "cpu", tmp_path)
    assert ("all of them of the warm-up" in capsys.readouterr().err) == told


def test_a_full_disk_is_told_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    def fails(_: argparse.Namespace) -> int:
        raise SafetensorError("I/O error: No space left on device")

    parser = argparse.ArgumentParser()
    parser.set_defaults(command=fails)
    assert command.run(parser, []) == 1
    assert capsys.readouterr().err == "error: I/O error: No space left on device\n"


def test_ctrl_c_keeps_what_was_done(corpus: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "training.loop.Trainer._validate", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        arguments = ["--data", str(corpus), "--set", "batch.rows=8", "--set", "model.units=24"]
        assert main(["train", "quickstart", *arguments, "--out", str(tmp_path)]) == 130
    assert checkpoint.load(tmp_path / CHECKPOINT)[1]["progress"]["update"] > 0


def test_rows_that_processes_cannot_share_are_refused(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.distributed.is_initialized", lambda: True)
    monkeypatch.setattr("torch.distributed.get_world_size", lambda: 3)
    monkeypatch.setattr("torch.distributed.get_rank", lambda: 0)
    rows = _recipe(corpus).batch.rows
    with pytest.raises(ValueError, match=f"batch.rows is {rows}; 3 processes need a multiple"):
        carry_out(_recipe(corpus), tmp_path / "run", "cpu", Path())


@pytest.mark.long
def test_two_processes_train_what_one_does(corpus: Path, tmp_path: Path) -> None:
    settings = [
        "model.units=16",
        "model.output_dropout=0.0",
        "batch.rows=4",
        "batch.steps=20",
        "training.epochs=0.2",
        "training.save_every_s=0.02",  # together, whatever either's clock says
    ]
    common = ["train", "quickstart", "--data", str(corpus), "--device", "cpu"]
    for setting in settings:
        common += ["--set", setting]
    assert main([*common, "--out", str(tmp_path / "one")]) == 0
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    subprocess.run(
        [*torchrun, "-m", "export", *common, "--out", str(tmp_path / "two")],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=120,
    )
    one, two = tensors(tmp_path / "one"), tensors(tmp_path / "two")
    assert one.keys() == two.keys()
    for name in one:
        assert torch.allclose(one[name], two[name], rtol=1e-3, atol=1e-4), name


def test_a_recipe_that_names_no_data_is_refused_in_words(tmp_path: Path) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text("[training]\nepochs = 1\n")
    with pytest.raises(ValueError, match=r"\[data\]: source is missing"):
        read_recipe(str(recipe))
