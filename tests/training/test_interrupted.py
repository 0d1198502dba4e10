"""What a training keeps, and says, that is interrupted or started at an odd place."""

import argparse
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.training.forked import Forks, forking
from tests.training.tiny import SHORT, Interrupted, stop_after, tiny_recipe, write_corpus
from training import checkpoint
from training.command import run
from training.loop import CHECKPOINT, LOG, Trainer
from training.machine import Terminated
from training.run import carry_out
from training.weights import Weights

_PATIENCE_S = 120.0
pytestmark = pytest.mark.usefixtures("_undrawn")


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with forking() as forks:
        yield forks


def test_the_best_weights_and_their_loss_are_of_the_same_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while the weights of the second validation are copied."""
    whole, copies = Weights.averaged_model, count(1)

    def copied(weights: Weights) -> dict[str, Tensor]:
        if next(copies) == 3:  # after those it began with, and those of the first validation
            raise KeyboardInterrupt
        return whole(weights)

    monkeypatch.setattr(Weights, "averaged_model", copied)
    recipe, folder = tiny_recipe(write_corpus(tmp_path, SHORT)), tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        carry_out(recipe, folder, "cpu", Path())
    (first,) = map(json.loads, (folder / LOG).read_text().splitlines())
    progress = checkpoint.load(folder / CHECKPOINT)[1]["progress"]
    assert progress["best_update"] == first["update"] < progress["update"]
    assert progress["best_loss"] == first["validation_loss"]


def test_what_was_killed_while_it_was_saved_leaves_nothing_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, folder = tiny_recipe(write_corpus(tmp_path, SHORT)), tmp_path / "run"
    killed = (
        "import sys, os, signal; from contract.files import replacing; from pathlib import Path\n"
    )
    killed += "with replacing(Path(sys.argv[1])) as file:\n"
    killed += "    file.write_text('half')\n    os.kill(os.getpid(), signal.SIGKILL)"
    folder.mkdir()
    command = [sys.executable, "-c", killed, str(folder / CHECKPOINT)]
    assert subprocess.run(command, timeout=_PATIENCE_S).returncode == -signal.SIGKILL
    assert len(list(folder.iterdir())) == 1
    stop_after(monkeypatch, 3)
    with pytest.raises(Interrupted):
        carry_out(recipe, folder, "cpu", Path())
    assert [p.name for p in folder.iterdir()] == [CHECKPOINT]


def test_what_was_trained_is_kept_though_nobody_reads_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of `train … 2>&1 | head`."""

    def close() -> None:
        raise BrokenPipeError

    stop_after(monkeypatch, 3)
    bar = SimpleNamespace(update=lambda: None, close=close)
    monkeypatch.setattr(Trainer, "_bar", lambda trainer: bar)
    with pytest.raises(BrokenPipeError):
        carry_out(tiny_recipe(write_corpus(tmp_path, SHORT)), tmp_path / "run", "cpu", Path())
    assert checkpoint.load(tmp_path / "run" / CHECKPOINT)[1]["progress"]["update"] == 3


def test_a_run_that_is_interrupted_as_its_time_is_over_is_validated_when_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    recipe = tiny_recipe(write_corpus(tmp_path, SHORT), time_limit_s=1e-6)
    folder, bar = tmp_path / "run", SimpleNamespace(update=interrupt, close=lambda: None)
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_bar", lambda trainer: bar)
        with pytest.raises(KeyboardInterrupt):
            carry_out(recipe, folder, "cpu", Path())
    carry_out(recipe, folder, "cpu", Path())
    (row,) = (folder / LOG).read_text().splitlines()
    assert json.loads(row)["update"] == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_until_a_run_is_saved_and_all_have_made_the_next_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """Of several processes one would wait for ever for another that is interrupted alone."""
    whole, saved = Trainer.save, list[int]()

    def save(trainer: Trainer) -> None:
        saved.append(trainer.progress.update)
        if len(saved) == 1:
            os.kill(os.getpid(), number)
        whole(trainer)

    monkeypatch.setattr(Trainer, "save", save)
    recipe = tiny_recipe(write_corpus(tmp_path, SHORT), save_every_s=0.0)
    usual = signal.signal(number, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            carry_out(recipe, tmp_path / "run", "cpu", Path())
    finally:
        signal.signal(number, usual)
    assert saved == [1, 2]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_waits_until_what_was_trained_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """Of somebody impatient, or of `torchrun`, which sends one after that of the terminal."""
    whole = Trainer.save

    def save(trainer: Trainer) -> None:
        signal.raise_signal(number)
        whole(trainer)

    stop_after(monkeypatch, 3)
    monkeypatch.setattr(Trainer, "save", save)
    usual = signal.signal(number, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            carry_out(tiny_recipe(write_corpus(tmp_path, SHORT)), tmp_path / "run", "cpu", Path())
    finally:
        signal.signal(number, usual)
    assert checkpoint.load(tmp_path / "run" / CHECKPOINT)[1]["progress"]["update"] == 3


@pytest.mark.parametrize(("number", "ignored"), [(signal.SIGHUP, False), (signal.SIGTERM, True)])
def test_sigterm_or_a_closed_terminal_ends_a_training_as_ctrl_c_does(
    forks: Forks, tmp_path: Path, number: signal.Signals, ignored: bool
) -> None:
    """Also in a background job of a shell, which has Ctrl-C ignored. No file is left half."""
    out, log, told = tmp_path / "run", tmp_path / "run" / LOG, tmp_path / "told"
    recipe = ["quickstart", "--data", str(write_corpus(tmp_path)), "--out", str(out)]
    quick = ["--set", "training.epochs=1e6", "--set", "model.units=24"]
    # Started as by a terminal, though these tests may run under `nohup`.
    program = "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
    if ignored:
        program += "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    program += f"sys.argv[1:] = {[*recipe, *quick]}\n"
    program += "runpy.run_module('training', run_name='__main__')"
    with told.open("wb") as file:
        training = forks.begin(program, file.fileno())
    until_s = time.monotonic() + _PATIENCE_S
    while not (log.exists() and log.stat().st_size) and time.monotonic() < until_s:
        time.sleep(0.05)
    os.kill(training.number, number)
    assert training.code() == 128 + number, told.read_text()
    assert "the same command goes on where it stopped" in told.read_text()
    progress = checkpoint.load(out / CHECKPOINT)[1]["progress"]
    logged = [json.loads(line)["update"] for line in (out / LOG).read_text("utf-8").splitlines()]
    assert progress["update"] >= logged[-1] > 0
    assert not [file for file in out.iterdir() if file.name.startswith(".")]


@pytest.mark.parametrize("make", [torch.empty, np.empty, lambda size: bytearray(1 << 62)])
def test_a_model_that_is_too_large_for_the_machine_is_told_in_a_line(
    make: Callable[[int], object], capsys: pytest.CaptureFixture[str]
) -> None:
    parser = argparse.ArgumentParser()
    parser.set_defaults(command=lambda options: make(1 << 50))
    assert run(parser, []) == 1
    told = capsys.readouterr().err
    assert told.startswith("error: there is not enough memory: ")
    assert told.count("\n") == 1


def test_a_run_that_there_is_no_memory_for_is_not_told_as_altered(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="memory"), checkpoint.understanding(tmp_path):
        torch.empty(1 << 50)


def test_what_breaks_for_another_reason_is_not_told_as_one_of_memory() -> None:
    parser = argparse.ArgumentParser()
    parser.set_defaults(command=lambda options: torch.ones(2) @ torch.ones(3))
    with pytest.raises(RuntimeError, match="size"):
        run(parser, [])


def test_a_reader_of_the_output_that_has_enough_ends_a_command_without_a_word(
    forks: Forks,
) -> None:
    program = (
        "parser = argparse.ArgumentParser()\n"
        "parser.set_defaults(command=lambda options: print('more'))\n"
        "sys.exit(run(parser, []))\n"
    )
    read, written = os.pipe()
    os.close(read)
    ended = forks.ended(program, written)
    os.close(written)
    assert ended == (1, b"")


def test_ctrl_c_that_ends_the_reader_of_the_output_too_is_told_by_the_exit_code(
    forks: Forks,
) -> None:
    """As of `train … 2>&1 | tee log`: the bar is closed into a pipe that nobody reads."""
    program = (
        "def interrupted(options):\n"
        "    print('more')\n"
        "    try:\n"
        "        raise KeyboardInterrupt\n"
        "    finally:\n"
        "        print('bar', file=sys.stderr)\n"
        "parser = argparse.ArgumentParser()\n"
        "parser.set_defaults(command=interrupted)\n"
        "sys.exit(run(parser, []))\n"
    )
    read, written = os.pipe()
    os.close(read)
    code = forks.begin(program, written, written).code()
    os.close(written)
    assert code == 130


@pytest.mark.parametrize(("kind", "status"), [(KeyboardInterrupt, 130), (Terminated, 143)])
@pytest.mark.parametrize("goes_on", [False, True])
def test_an_interruption_that_a_library_takes_for_a_failure_of_its_own_is_one(
    kind: type[KeyboardInterrupt], status: int, goes_on: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """As torch.onnx does while it imports what it traces with."""

    def trace(options: argparse.Namespace) -> None:
        try:
            try:
                raise kind
            except KeyboardInterrupt:
                raise AttributeError("no attribute")  # noqa: B904
        except AttributeError as error:
            raise Exception("failed to export") from error

    parser = argparse.ArgumentParser()
    parser.set_defaults(command=trace, goes_on=goes_on)
    assert run(parser, []) == status
    told = capsys.readouterr().err.strip()
    how = "; the same command goes on where it stopped" if goes_on else ""
    assert told == f"interrupted{how}"


def test_of_two_trainings_at_once_in_a_folder_the_second_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would replace the checkpoint of the other, and both say that theirs is there."""
    whole, corpus, folder = Trainer.run, write_corpus(tmp_path, SHORT), tmp_path / "run"
    row = json.dumps(dict.fromkeys(("update", "epoch", "train_loss", "validation_loss"), 1)) + "\n"

    def beside_another(trainer: Trainer) -> dict[str, Tensor]:
        monkeypatch.setattr(Trainer, "run", whole)
        (folder / LOG).write_text(row)
        with pytest.raises(ValueError, match=r"run: another training is at work there"):
            carry_out(tiny_recipe(corpus, epochs=1, seed=2), folder, "cpu", Path())
        assert [file.read_text() for file in folder.iterdir()] == [row]  # which is its own
        return whole(trainer)

    monkeypatch.setattr(Trainer, "run", beside_another)
    for _ in range(2):  # whoever goes on with it is alone again
        carry_out(tiny_recipe(corpus, epochs=1, seed=1), folder, "cpu", Path())
    assert checkpoint.load(folder / CHECKPOINT)[1]["training"]["seed"] == 1


def test_nobody_has_to_be_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard error may be closed, as of what a clock starts; and a log may be left behind, or
    be empty."""
    monkeypatch.setattr("sys.stderr", None)
    recipe, folder = tiny_recipe(write_corpus(tmp_path, SHORT), epochs=1), tmp_path / "run"
    carry_out(recipe, folder, "cpu", Path())
    (folder / LOG).unlink()
    carry_out(recipe, folder, "cpu", Path())
    (folder / LOG).touch()
    carry_out(recipe, folder, "cpu", Path())


def test_a_name_that_is_no_text_is_told_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    parser, out = argparse.ArgumentParser(), io.BytesIO()
    parser.set_defaults(command=lambda options: print("runs/\udcff"))
    with monkeypatch.context() as patch:
        stdout = io.TextIOWrapper(out, encoding="utf-8")
        patch.setattr("sys.stdout", stdout)
        assert run(parser, []) == 0
        stdout.flush()
        assert out.getvalue() == b"runs/\\udcff\n"


def test_a_run_of_a_version_with_other_settings_says_which_it_had_not(
    corpus: Path, run: Path, tmp_path: Path
) -> None:
    """Whoever changed nothing is not told of settings they had changed."""
    named, facts = checkpoint.load(run / CHECKPOINT)
    facts["training"] = {n: v for n, v in facts["training"].items() if n != "calibrated"}
    facts["batch"] |= {"shuffled": True}
    checkpoint.save(tmp_path / CHECKPOINT, named, facts)
    told = r"another version, with batch\.shuffled, without training\.calibrated"
    with pytest.raises(ValueError, match=rf"{told}; choose another --out"):
        carry_out(tiny_recipe(corpus), tmp_path, "cpu", Path())
    both = rf"{told}, and of a run with other settings \(training\.learning_rate\); choose"
    with pytest.raises(ValueError, match=both):
        carry_out(tiny_recipe(corpus, learning_rate=0.5), tmp_path, "cpu", Path())


@pytest.mark.parametrize(
    ("module", "spins"),
    [("bench", None), ("export", "1000"), ("lab", "1000"), ("training", "1000")],
)
def test_ctrl_c_ends_what_is_being_imported_without_a_traceback(
    module: str, spins: str | None
) -> None:
    """By then PyTorch's threads have been told how to wait, unless they are to be measured."""
    program = (
        "import os, runpy, signal, sys\n"
        "class Importing:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'torch':\n"
        "            print(os.environ.get('GOMP_SPINCOUNT'), flush=True)\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "sys.meta_path.insert(0, Importing())\n"
        "runpy.run_module(sys.argv[1], run_name='__main__')"
    )
    command = [sys.executable, "-c", program, module]
    usual = {name: value for name, value in os.environ.items() if "OMP_" not in name}
    ended = subprocess.run(
        command, env=usual, capture_output=True, timeout=_PATIENCE_S, check=False
    )
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, b"")
    assert ended.stdout == f"{spins}\n".encode()


def test_ctrl_c_after_the_imports_is_told(forks: Forks) -> None:
    program = (
        "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
        "parser = argparse.ArgumentParser()\n"
        "parser.set_defaults(command=lambda options: os.kill(os.getpid(), signal.SIGINT))\n"
        "sys.exit(run(parser, []))"
    )
    code, told = forks.ended(program)
    assert code == 128 + signal.SIGINT
    assert b"interrupted" in told


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_an_output_that_is_full_is_told_in_a_line_and_by_the_exit_code(forks: Forks) -> None:
    program = (
        "parser = argparse.ArgumentParser()\n"
        "parser.set_defaults(command=lambda options: print('what was asked for'))\n"
        "sys.exit(run(parser, []))"
    )
    with open("/dev/full", "wb") as full:
        code, told = forks.ended(program, full.fileno())
    assert (code, told.count(b"\n")) == (1, 1)
    assert b"error: [Errno 28] No space left on device" in told
