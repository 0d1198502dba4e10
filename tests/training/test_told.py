"""What a training tells: its loss at its end, that its time was too short, and which of several
processes tells it; and which data it was, without which nobody may go on with it."""

import argparse
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from models.language import LanguageConfig, LanguageModel
from tests.training.tiny import tiny_recipe
from training import checkpoint, command
from training.config import TrainConfig
from training.group import Group
from training.log import LOG
from training.loop import CHECKPOINT, Trainer
from training.run import alone, carry_out
from training.text.task import LanguageTask

pytestmark = pytest.mark.usefixtures("_undrawn")


def _trainer(folder: Path, **settings: Any) -> Trainer:
    """Of three updates."""
    text = torch.arange(1240) % 256
    model = LanguageModel(LanguageConfig(units=4, embedding=2))
    task = LanguageTask(model, text, text[:100], 4, 10, seed=0)
    return Trainer(task, TrainConfig(**{"epochs": 0.1} | settings), folder, {})


@pytest.mark.parametrize(
    ("options", "out", "source", "start"),
    [
        ("", "runs/own", "tales", None),
        ("--out there --data sheep --from a", "there", "sheep", Path("a")),
    ],
)
def test_a_run_is_carried_out_as_its_options_say(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: str,
    out: str,
    source: str,
    start: Path | None,
) -> None:
    (tmp_path / "own.toml").write_text("[data]\nsource = 'tales'\n")
    monkeypatch.setenv("EVENKEEL_DATA", "elsewhere")
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    asked: list[tuple[Any, ...]] = []
    monkeypatch.setattr(command, "carry_out", lambda *given: asked.append(given))
    parser = argparse.ArgumentParser()
    command.add_training_options(parser)
    words = [str(tmp_path / "own.toml"), "--device", "cpu", *options.split()]
    command.train(parser.parse_args(words))
    ((recipe, *others),) = asked
    assert recipe.data.source == source
    assert others == [Path(out), "cpu", Path("elsewhere"), start]


class _Joined:
    """torch.distributed, which notes what is asked of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def is_initialized(self) -> bool:
        return True

    def init_process_group(self, backend: str) -> None:
        self.asked.append(backend)

    def destroy_process_group(self) -> None:
        self.asked.append("left")


@pytest.mark.parametrize(
    ("device", "own", "backend"),
    [("cpu", "cpu", "gloo"), ("cuda", "cuda:1", "nccl"), ("cuda:0", "cuda:0", "nccl")],
)
def test_one_of_many_processes_has_a_gpu_of_its_own_machine_and_leaves_the_others_at_its_end(
    monkeypatch: pytest.MonkeyPatch, device: str, own: str, backend: str
) -> None:
    """Of all machines it is the sixth, of this one the second; and some error may be its end."""
    for name, number in {"WORLD_SIZE": "8", "RANK": "5", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, number)
    joined, chosen, places = _Joined(), list[str](), list[str]()

    def fails(*given: Any) -> None:
        places.append(given[2])
        raise OSError("no space left on device")

    monkeypatch.setattr(command, "distributed", joined)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setattr(command, "require_device", places.append)
    monkeypatch.setattr(command, "carry_out", fails)
    parser = argparse.ArgumentParser()
    command.add_training_options(parser)
    with pytest.raises(OSError, match="no space"):
        command.train(parser.parse_args(["quickstart", "--device", device]))
    assert places == [own, own]
    assert chosen == [own] * (device == "cuda")
    assert joined.asked == [backend, "left"]


def test_a_gpu_that_is_not_there_is_told_before_the_others_are_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As of more processes than this machine has GPUs."""
    for name, number in {"WORLD_SIZE": "78", "RANK": "77", "LOCAL_RANK": "77"}.items():
        monkeypatch.setenv(name, number)
    joined = _Joined()
    monkeypatch.setattr(command, "distributed", joined)
    parser = argparse.ArgumentParser()
    command.add_training_options(parser)
    with pytest.raises(ValueError, match=r"^--device is 'cuda:77', which PyTorch has not: "):
        command.train(parser.parse_args(["quickstart", "--device", "cuda"]))
    assert joined.asked == []


def test_a_run_tells_at_its_end_the_loss_of_what_it_keeps(
    corpus: Path,
    run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = Path(shutil.copytree(run, tmp_path / "tiny"))
    loss = checkpoint.load(run / CHECKPOINT)[1]["progress"]["best_loss"]
    line = f"{folder / CHECKPOINT}: validation loss {loss:.4f} nats/byte\n"
    carry_out(tiny_recipe(corpus), folder, "cpu", Path())
    assert capsys.readouterr().out == line
    monkeypatch.setattr(LanguageTask, "units_per_sequence", 10.0)
    carry_out(tiny_recipe(corpus), folder, "cpu", Path())
    assert capsys.readouterr().out == f"{line}that is {loss * 10:.1f} nats/sequence\n"


@pytest.mark.parametrize(
    ("update", "rank", "told"), [(1234, 0, True), (1234, 1, False), (5678, 0, False)]
)
def test_a_run_whose_time_was_too_short_says_how_far_it_came(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], update: int, rank: int, told: bool
) -> None:
    trainer = _trainer(tmp_path, time_limit_s=100.0)
    trainer.total_updates, trainer.group.rank = 5678, rank
    trainer.progress.update, trainer.progress.elapsed_s = update, 100.0
    trainer.run()
    words = "(100 s) ended the run after 1,234 of 5,678 updates; with more time"
    lines = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert [words in line for line in lines] == [True] * told


def test_of_several_processes_the_first_alone_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their logs and checkpoints would be written over each other's."""
    trainer = _trainer(tmp_path)
    trainer.group.rank = 1
    trainer.run()
    assert trainer.progress.update == trainer.total_updates == 3
    assert not list(tmp_path.iterdir())
    assert capsys.readouterr().err == ""


class _OneOfTwo:
    """torch.distributed in the second of two processes, which find the same."""

    def is_initialized(self) -> bool:
        return True

    def get_world_size(self) -> int:
        return 2

    def get_rank(self) -> int:
        return 1

    def all_reduce(self, tensor: Tensor) -> None:
        tensor *= 2

    def all_gather(self, parts: list[Tensor], mine: Tensor) -> None:
        for part in parts:
            part.copy_(mine)


def test_a_second_process_leaves_the_folder_and_the_terminal_to_the_first(
    corpus: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both would put another log in the place of one that is ahead of the checkpoint."""
    folder, drawn = tmp_path / "run", list[str]()
    for module in ("training.run", "training.group"):
        monkeypatch.setattr(f"{module}.distributed", _OneOfTwo())
    monkeypatch.setattr("training.run._plot", lambda *_: drawn.append("a picture"))
    figures = ("update", "epoch", "train_loss", "validation_loss")
    ahead = json.dumps(dict.fromkeys(figures, 7)) + "\n"
    with alone(folder):  # as the first has it
        (folder / LOG).write_text(ahead, "utf-8")
        carry_out(tiny_recipe(corpus, epochs=0.05, warmup_updates=99), folder, "cpu", Path())
    assert [path.name for path in folder.iterdir()] == [LOG]
    assert (folder / LOG).read_text("utf-8") == ahead
    assert not drawn
    assert capsys.readouterr() == ("", "")


def test_a_log_tells_the_seconds_and_what_else_a_validation_found(tmp_path: Path) -> None:
    trainer = _trainer(tmp_path)
    trainer.figures = lambda: {"accuracy": 0.5}
    trainer.progress.elapsed_s = 100.0  # before it went on
    trainer.run()
    (row,) = map(json.loads, (tmp_path / LOG).read_text("utf-8").splitlines())
    assert row["elapsed_s"] == round(trainer.progress.elapsed_s, 1) >= 100
    assert row["accuracy"] == 0.5


def test_a_run_of_hardly_an_epoch_is_an_update_and_is_validated(tmp_path: Path) -> None:
    trainer = _trainer(tmp_path, epochs=1e-6, validate_every_epochs=1e-6)
    trainer.run()
    (row,) = map(json.loads, (tmp_path / LOG).read_text("utf-8").splitlines())
    assert (row["update"], trainer.progress.best_update) == (1, 1)


def test_a_validation_that_was_logged_and_not_kept_is_logged_once(tmp_path: Path) -> None:
    """As of a run that is interrupted just then: it validates again."""
    trainer = _trainer(tmp_path)
    trainer.run()
    trainer.progress.due = True
    trainer.save()
    _trainer(tmp_path).run()
    rows = [json.loads(line) for line in (tmp_path / LOG).read_text("utf-8").splitlines()]
    assert [row["update"] for row in rows] == [3]


def test_a_run_that_has_ended_and_is_begun_again_keeps_the_last_row_of_its_log(
    tmp_path: Path,
) -> None:
    for _ in range(2):
        _trainer(tmp_path).run()
        (row,) = map(json.loads, (tmp_path / LOG).read_text("utf-8").splitlines())
        assert row["update"] == 3


def test_a_machine_without_the_checkpoint_of_the_first_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Group, "agrees", lambda group, number: number != 0)
    with pytest.raises(ValueError, match=r"at update 0 here .* needs the checkpoint of the first"):
        _trainer(tmp_path)


def test_a_run_does_not_go_on_with_more_of_the_data_than_it_began_with(
    corpus: Path, run: Path, tmp_path: Path
) -> None:
    """What it is validated on it would have learned."""
    folder = Path(shutil.copytree(run, tmp_path / "tiny"))
    recipe = tiny_recipe(corpus)
    other = replace(recipe, data=replace(recipe.data, validation_fraction=0.2))
    with pytest.raises(ValueError, match=r"other settings \(data\.validation_fraction\)"):
        carry_out(other, folder, "cpu", Path())
