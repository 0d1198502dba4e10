"""A checkpoint is written where there is room for it, and read wherever it is."""

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from tests.training.tiny import tiny_recipe
from training import checkpoint
from training.log import LOG
from training.loop import CHECKPOINT
from training.run import PICTURE, carry_out

_ROOT = Path(__file__).parents[2]


def test_what_a_killed_process_had_begun_makes_room_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is as large, and would fill the disk for good."""
    left, there = tmp_path / ".it.safetensors.1", list[bool]()

    def in_bytes(flat: object, **_: object) -> bytes:
        there.append(left.exists())
        return b""

    left.touch()
    monkeypatch.setattr(checkpoint, "in_bytes", in_bytes)
    checkpoint.save(tmp_path / "it.safetensors", {}, {})
    assert there == [False]


def test_a_checkpoint_is_on_the_disk_before_it_is_called_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loss of power leaves the one before, or this one whole."""
    file, synced = tmp_path / "it.safetensors", list[tuple[int, int, bool]]()

    def sync(opened: Any) -> None:
        there = os.stat(opened.fileno())
        synced.append((there.st_ino, there.st_size, file.exists()))

    monkeypatch.setattr(os, "fsync", sync)
    checkpoint.save(file, {"weight": torch.ones(1000)}, {})
    assert synced == [(file.stat().st_ino, file.stat().st_size, False)]


_KILLED = """
import resource, signal, sys
from pathlib import Path
import torch
from training import checkpoint
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
checkpoint.save(Path(sys.argv[1]), {"w": torch.zeros(1000)}, {})
"""


def test_what_was_killed_in_the_midst_of_a_checkpoint_leaves_nothing_for_ever(
    tmp_path: Path,
) -> None:
    """The system ends it at the first byte that is too much."""
    path = tmp_path / CHECKPOINT
    done = subprocess.run([sys.executable, "-c", _KILLED, path], cwd=_ROOT, timeout=120)
    assert done.returncode == -signal.SIGXFSZ
    assert len(list(tmp_path.iterdir())) == 1
    checkpoint.save(path, {"w": torch.zeros(1000)}, {})
    assert list(tmp_path.iterdir()) == [path]


def test_what_killed_trainings_had_begun_beside_any_file_of_a_run_is_gone(
    corpus: Path, run: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(run, tmp_path / "tiny"))
    for name in (CHECKPOINT, LOG, PICTURE):
        (folder / f".{name}.12").touch()
    carry_out(tiny_recipe(corpus), folder, "cpu", Path())
    assert {file.name for file in folder.iterdir()} == {CHECKPOINT, LOG, PICTURE}


def test_a_folder_may_have_a_name_that_is_no_utf_8(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    tensors = {"one": torch.tensor([1.0, 2.0]), "none": torch.zeros(0, 3), "step": torch.tensor(7)}
    checkpoint.save(folder / CHECKPOINT, tensors, {"seed": 1})
    found, facts = checkpoint.load(folder / CHECKPOINT)
    assert facts == {"seed": 1}
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())


@pytest.mark.parametrize(
    ("table", "setting", "value"),
    [("training", "seed", 5), ("batch", "rows", 3), ("model", "units", 9)],
)
def test_other_settings_are_told_before_the_data_is_read(
    corpus: Path, run: Path, tmp_path: Path, table: str, setting: str, value: int
) -> None:
    """Which takes minutes, and may be away by now."""
    shutil.copyfile(run / CHECKPOINT, tmp_path / CHECKPOINT)
    recipe = tiny_recipe(tmp_path / "gone")
    other = replace(recipe, **{table: replace(getattr(recipe, table), **{setting: value})})
    told = (
        rf"checkpoint\.safetensors is of a run with other settings \({table}\.{setting}\); choose"
    )
    with pytest.raises(ValueError, match=told):
        carry_out(other, tmp_path, "cpu", Path())
    with pytest.raises(ValueError, match="gone"):
        carry_out(tiny_recipe(tmp_path / "gone"), tmp_path, "cpu", Path())


def test_a_run_that_an_older_version_began_with_an_option_without_use_goes_on(
    corpus: Path, run: Path, tmp_path: Path
) -> None:
    """With that alone: it would be refused both with it and, as another run, without."""
    tensors, facts = checkpoint.load(run / CHECKPOINT)
    facts["batch"]["growing"] = False
    (tmp_path / "run").mkdir()
    checkpoint.save(tmp_path / "run" / CHECKPOINT, tensors, facts)
    recipe = tiny_recipe(corpus)
    older = replace(recipe, batch=replace(recipe.batch, growing=False))
    carry_out(older, tmp_path / "run", "cpu", Path())
    other = replace(older, batch=replace(older.batch, steps=30))
    for asked, place in ((older, "new"), (other, "run")):
        with pytest.raises(
            ValueError, match=r"^batch\.growing: a model of kind language has no use"
        ):
            carry_out(asked, tmp_path / place, "cpu", Path())


def test_settings_that_one_of_two_runs_has_alone_are_named_too() -> None:
    theirs = {"kind": "reader", "data": {"name": "a", "own": 0.5, "lines": 3, "varied": 0.1}}
    ours = {"kind": "reader", "data": {"name": "b", "marked": 0.3, "lines": 3, "figured": 0.2}}
    names = "data.figured, data.marked, data.name, data.own, data.varied"
    assert checkpoint.told_apart(theirs, ours) == f"a run with other settings ({names})"


def test_a_run_of_another_kind_is_not_told_as_one_of_another_version() -> None:
    theirs = {"kind": "language", "model": {"units": 9, "layers": 1}}
    ours = {"kind": "reader", "model": {"units": 9, "both_ways": False}}
    names = "kind, model.both_ways, model.layers"
    assert checkpoint.told_apart(theirs, ours) == f"a run with other settings ({names})"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (KeyError("seed"), "'seed' is missing"),
        (IndexError("no such layer"), "no such layer"),
        (RuntimeError("a size\n  and " + "another " * 99), "a size and " + "another " * 99),
    ],
)
def test_what_is_wrong_with_a_run_is_told_from_its_beginning(error: Exception, reason: str) -> None:
    with pytest.raises(ValueError, match="altered") as told, checkpoint.understanding(Path("it")):
        raise error
    cut = reason if len(reason) < 200 else reason[:200]  # of weights it may be pages long
    assert str(told.value) == f"it is of another version or was altered: {cut}"


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}])
def test_weights_that_another_program_wrote_are_told_to_be_no_checkpoint(
    tmp_path: Path, metadata: dict[str, str] | None
) -> None:
    save_file({"one": torch.zeros(1)}, tmp_path / CHECKPOINT, metadata)
    for read in (checkpoint.load, checkpoint.facts_of):
        with pytest.raises(ValueError, match=r"\.safetensors is not a checkpoint of this project"):
            read(tmp_path / CHECKPOINT)


@pytest.mark.parametrize("content", [b"<html>404 Not Found</html>", b"\xff" * 40, b"run", b""])
def test_a_file_that_is_none_is_told_to_be_no_checkpoint_before_the_data_is_read(
    tmp_path: Path, content: bytes
) -> None:
    """Its first bytes are no number of bytes to be read, for which there is too little memory."""
    (tmp_path / CHECKPOINT).write_bytes(content)
    with pytest.raises(ValueError, match=r"\.safetensors is not a checkpoint of this project$"):
        carry_out(tiny_recipe(tmp_path / "gone"), tmp_path, "cpu", Path())


def test_too_little_memory_for_a_checkpoint_is_not_told_as_a_fault_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(content: bytes) -> None:
        raise MemoryError

    checkpoint.save(tmp_path / CHECKPOINT, {}, {})
    monkeypatch.setattr(checkpoint, "tensors_in", fails)
    with pytest.raises(MemoryError):
        checkpoint.load(tmp_path / CHECKPOINT)


def test_tensors_of_a_name_are_not_those_of_a_longer_one() -> None:
    tensors = {f"parts.{name}": torch.zeros(1) for name in ("1.mean", "10.mean", "1")}
    assert checkpoint.group(tensors, "parts.1").keys() == {"mean"}


@pytest.mark.parametrize("facts", [None, 3, "a run", []])
def test_facts_of_another_form_are_told_in_words(corpus: Path, tmp_path: Path, facts: Any) -> None:
    checkpoint.save(tmp_path / CHECKPOINT, {"one": torch.tensor([1.0])}, facts)
    with pytest.raises(ValueError, match=CHECKPOINT):
        carry_out(tiny_recipe(corpus), tmp_path, "cpu", Path())
