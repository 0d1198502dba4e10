"""Conversion: which weights of a run become an artifact, and what is said of them."""

import math
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from errno import EACCES, EIO
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from contract.ink import InkManifest
from export import folders
from export.artifact import load_model, read_artifact
from export.convert import _keep_extras, convert, read_source
from export.folders import made_whole
from export.kinds import KINDS
from export.parity.numbers import structure
from export.text.golden import sample, training_logits
from export.variant import GraphWriter
from tests.training.tiny import tensors
from training import checkpoint
from training.loop import CHECKPOINT

_SHIPPED = Path(__file__).parents[2] / "artifacts"

ROOT = Path(__file__).parents[2]


def test_an_artifact_has_the_best_averaged_weights(run: Path, artifact: Path) -> None:
    weights = load_file(artifact / "model.safetensors")
    best, raw = (checkpoint.group(tensors(run), group) for group in ("best", "model"))
    assert weights.keys() == best.keys()
    assert all(torch.equal(weights[name], best[name]) for name in best)
    assert not any(torch.equal(weights[name], raw[name]) for name in raw)
    facts = checkpoint.load(run / CHECKPOINT)[1]
    provenance = read_artifact(artifact).provenance
    assert provenance["updates"] == facts["progress"]["best_update"]
    assert provenance["validation_loss"] == facts["progress"]["best_loss"]
    assert provenance["elapsed_s"] == round(facts["progress"]["elapsed_s"], 1)
    assert provenance["data"] == facts["data"]
    assert read_artifact(artifact).parameters == sum(tensor.numel() for tensor in best.values())


def test_neither_the_last_average_nor_the_raw_weights_are_looked_at(
    run: Path, tmp_path: Path
) -> None:
    content, facts = checkpoint.load(run / CHECKPOINT)
    spoilt = {n: t * torch.nan if n.startswith(("model.", "average.")) else t
              for n, t in content.items()}  # fmt: skip
    checkpoint.save(tmp_path / CHECKPOINT, spoilt, facts)
    model, _ = read_source(tmp_path)
    best = checkpoint.group(content, "best")
    assert all(torch.equal(t, best[name]) for name, t in model.state_dict().items())


def test_a_conversion_that_fails_leaves_the_old_artifact(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "manifest.json").write_text("as it was")

    def fails(*_: object) -> None:
        raise ValueError("no space left")

    monkeypatch.setattr("export.convert.write_artifact", fails)
    with pytest.raises(ValueError, match="no space left"):
        convert(run, tmp_path / "tiny")
    assert [p.name for p in tmp_path.iterdir()] == ["tiny"]
    assert (tmp_path / "tiny" / "manifest.json").read_text() == "as it was"


def test_a_full_disk_is_told_with_the_artifact_or_the_folder_of_the_comparison(
    run: Path, artifact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    full_disk: Callable[[int], AbstractContextManager[None]],
) -> None:  # fmt: skip
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    model = load_model(artifact, read_artifact(artifact)).double()
    drawn = sample(model, 4, 1, seed=1)
    with full_disk(1000):
        with pytest.raises(OSError, match=f"could not write {tmp_path / 'new'}: "):
            convert(run, tmp_path / "new")
        with pytest.raises(OSError, match=f"could not write {tmp_path}/"):
            structure(GraphWriter(KINDS["language"], model), drawn, training_logits, "logits")
    assert not list(tmp_path.iterdir())


def test_what_is_no_artifact_is_not_replaced(
    run: Path, artifact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def written(folder: Path, *_: object) -> None:  # the same graphs, without tracing them again
        shutil.copytree(artifact, folder, dirs_exist_ok=True)

    monkeypatch.setattr("export.convert.write_artifact", written)
    own = tmp_path / "artifacts" / "mine"
    shutil.copytree(artifact, own)
    for place in (own.parent, run):
        with pytest.raises(ValueError, match="is no artifact"):
            convert(run, place)
    assert (own / "manifest.json").exists()
    assert (run / CHECKPOINT).exists()
    (own / "other").write_text("of the artifact before")
    convert(run, own)
    assert not (own / "other").exists()
    assert [p.name for p in own.parent.iterdir()] == ["mine"]


def test_a_run_that_was_never_validated_has_no_weights_yet(run: Path, tmp_path: Path) -> None:
    content, facts = checkpoint.load(run / CHECKPOINT)
    facts["progress"] |= {"best_loss": math.inf}
    checkpoint.save(tmp_path / CHECKPOINT, content, facts)
    with pytest.raises(ValueError, match="not been validated yet"):
        convert(tmp_path, tmp_path / "tiny")


def test_a_run_of_the_laboratory_is_not_taken_for_a_models(run: Path, tmp_path: Path) -> None:
    content, facts = checkpoint.load(run / CHECKPOINT)
    facts = {"recipe": {}, "data": facts["data"], "progress": facts["progress"]}
    checkpoint.save(tmp_path / CHECKPOINT, content, facts)
    with pytest.raises(ValueError, match="is a run of the laboratory"):
        convert(tmp_path, tmp_path / "out")


def test_an_artifact_may_be_read_by_anyone(artifact: Path) -> None:
    assert artifact.stat().st_mode & 0o777 == 0o755
    assert {p.stat().st_mode & 0o777 for p in artifact.iterdir()} == {0o644}


def test_a_folder_is_made_with_those_above_it_for_any_reader(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b" / "it"
    with made_whole(folder, lambda _: False, "artifact") as made:
        (made / "private").touch(0o600)
    assert folder.stat().st_mode & 0o777 == 0o755
    assert (folder / "private").stat().st_mode & 0o777 == 0o644


def test_it_is_for_any_reader_as_soon_as_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that watches it would be refused."""
    modes, whole = list[int](), Path.rename

    def rename(made: Path, folder: Path) -> Path:
        modes.extend(path.stat().st_mode & 0o777 for path in (made, made / "file"))
        return whole(made, folder)

    monkeypatch.setattr(Path, "rename", rename)
    with made_whole(tmp_path / "it", lambda _: True, "folder") as made:
        (made / "file").touch(0o600)
    assert modes == [0o755, 0o644]


def test_it_is_on_the_disk_before_the_one_before_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loss of power leaves one of the two whole."""
    folder, synced = tmp_path / "it", set[tuple[int, bool]]()
    folder.mkdir()
    (folder / "file").write_text("old")

    def sync(opened: Any) -> None:
        synced.add((os.stat(opened.fileno()).st_ino, (folder / "file").read_text() == "old"))

    monkeypatch.setattr(os, "fsync", sync)
    with made_whole(folder, lambda _: True, "folder") as made:
        (made / "file").write_text("new")
        (made / "other").write_text("new too")
    assert synced == {(file.stat().st_ino, True) for file in folder.iterdir()}


def test_an_empty_folder_is_anybodys_and_a_file_is_not(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to("gone")
    with made_whole(tmp_path / "empty", lambda _: False, "artifact") as made:
        (made / "new").touch()
    assert (tmp_path / "empty" / "new").exists()
    for name, why in ("file", "is there and is no artifact"), ("link", "is a link to nothing"):
        with (
            pytest.raises(ValueError, match=f"{name} {why}"),
            made_whole(tmp_path / name, lambda _: False, "artifact"),
        ):
            pass
    assert (tmp_path / "file").read_text() == "mine"
    assert (tmp_path / "link").is_symlink()


def test_a_link_to_a_folder_stays_and_the_folder_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere" / "it"
    folder.mkdir(parents=True)
    (folder / "old").touch()
    (tmp_path / "link").symlink_to(Path("elsewhere", "it"))
    with made_whole(tmp_path / "link", lambda _: True, "folder") as made:
        (made / "new").touch()
    assert (tmp_path / "link").is_symlink()
    assert [path.name for path in folder.iterdir()] == ["new"]
    assert [path.name for path in folder.parent.iterdir()] == ["it"]


def _of_before(tmp_path: Path) -> Path:
    """A folder that another is to take the place of."""
    folder = tmp_path / "it"
    folder.mkdir()
    (folder / "old").touch()
    return folder


@pytest.mark.parametrize("fails", ["before", "made"])
def test_a_folder_that_cannot_be_put_in_place_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    folder = _of_before(tmp_path)
    rename = Path.rename

    def failing(path: Path, target: Path) -> Path:
        if fails in (path.name, Path(target).name):
            monkeypatch.undo()  # it fails once
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(KeyboardInterrupt), made_whole(folder, lambda _: True, "folder") as made:
        (made / "new").touch()
    assert [path.name for path in tmp_path.rglob("*")] == ["it", "old"]


def test_a_folder_that_cannot_be_put_back_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was removed with what should have taken its place."""
    folder = _of_before(tmp_path)
    rename = Path.rename

    def failing(path: Path, target: Path) -> Path:
        if target == folder:
            raise OSError(EIO, os.strerror(EIO), str(path), None, str(target))
        return rename(path, target)

    with (
        monkeypatch.context() as broken,
        pytest.raises(OSError, match=r"/before' -> '.*/it'$"),  # which tells where it is
        made_whole(folder, lambda _: True, "folder"),
    ):
        broken.setattr(Path, "rename", failing)
    assert not folder.exists()
    with pytest.raises(OSError, match="full"), made_whole(folder, lambda _: True, "folder"):
        raise OSError("the disk is full")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["it", "old"]


def test_nothing_is_left_of_a_folder_with_one_in_which_nobody_may_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was told as an error, with the new one in place, and stayed beside that for ever."""
    folder, remove = tmp_path / "it", shutil.rmtree
    (folder / "notes" / "old").mkdir(parents=True)
    (folder / "notes").chmod(0o555)

    def removed(path: Path) -> None:
        for place in path.rglob("*/"):
            if not place.stat().st_mode & stat.S_IWUSR:  # as anybody is told but root
                raise PermissionError(EACCES, os.strerror(EACCES), str(place))
        remove(path)

    monkeypatch.setattr(shutil, "rmtree", removed)
    with made_whole(folder, lambda _: True, "folder") as made:
        (made / "new").touch()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["it", "new"]


@pytest.mark.parametrize("put_aside", [False, True])
def test_what_was_killed_while_it_was_made_leaves_nothing_for_ever(
    tmp_path: Path, put_aside: bool
) -> None:
    """Nor is the folder before lost, which it may have put aside."""
    folder = _of_before(tmp_path)
    killed = (
        "import os, signal, sys; from pathlib import Path; from export.folders import made_whole\n"
        "with made_whole(Path(sys.argv[1]), lambda _: True, 'folder') as made:\n"
    )
    if put_aside:
        killed += "    Path(sys.argv[1]).rename(made.parent / 'before')\n"
    killed += "    os.kill(os.getpid(), signal.SIGKILL)"
    command = [sys.executable, "-c", killed, str(folder)]
    assert subprocess.run(command, cwd=ROOT, timeout=120).returncode == -signal.SIGKILL
    assert len(list(tmp_path.glob(".making-it~*"))) == 1
    assert folder.exists() is not put_aside
    with pytest.raises(OSError, match="full"), made_whole(folder, lambda _: True, "folder"):
        raise OSError("the disk is full")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["it", "old"]


def test_what_was_killed_before_it_held_its_folder_leaves_nothing_either(tmp_path: Path) -> None:
    (tmp_path / ".making-it~abcdefgh").mkdir()
    with made_whole(tmp_path / "it", lambda _: True, "folder") as made:
        (made / "new").touch()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["it", "new"]


def test_what_was_put_aside_for_another_name_does_not_come_back_by_this_one(
    tmp_path: Path,
) -> None:
    """An export of the laboratory may have a tilde in its name."""
    aside = tmp_path / ".making-it~2~abcdefgh" / "before"
    aside.mkdir(parents=True)
    with pytest.raises(OSError, match="full"), made_whole(tmp_path / "it", lambda _: True, "it"):
        raise OSError("the disk is full")
    assert aside.exists()
    assert not (tmp_path / "it").exists()


def test_what_another_is_making_is_left_to_it(tmp_path: Path) -> None:
    folder = tmp_path / "it"
    with made_whole(folder, lambda _: True, "folder") as first:
        (first / "first").touch()
        with made_whole(folder, lambda _: True, "folder") as second:
            (second / "second").touch()
        assert (first / "first").exists()
    assert [path.name for path in tmp_path.rglob("*")] == ["it", "first"]


def test_nor_is_what_another_has_just_begun_and_does_not_hold_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, hold = tmp_path / "it", folders.alone_in

    def late(place: Path, **how: bool) -> AbstractContextManager[None]:
        monkeypatch.undo()
        with made_whole(folder, lambda _: True, "folder") as second:
            (second / "second").touch()
        return hold(place, **how)

    monkeypatch.setattr(folders, "alone_in", late)
    with made_whole(folder, lambda _: True, "folder") as first:
        (first / "first").touch()
    assert [path.name for path in tmp_path.rglob("*")] == ["it", "first"]


def test_an_artifact_with_a_changed_weight_is_not_read_again(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(_SHIPPED / "shakespeare", tmp_path / "shakespeare"))
    read_source(folder)
    content = bytearray((folder / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match=r"model\.safetensors is not the file its manifest"):
        read_source(folder)


def test_stored_hands_go_with_an_artifact_that_is_converted_again(tmp_path: Path) -> None:
    source = _SHIPPED / "handwriting"
    before = read_artifact(source)
    assert isinstance(before, InkManifest)
    files = {name: sha for name, sha in before.files.items() if name != "styles.safetensors"}
    before.model_copy(update={"styles": (), "files": files}).write(tmp_path)
    _keep_extras(source, tmp_path)
    after = read_artifact(tmp_path)
    assert isinstance(after, InkManifest)
    assert after.styles == before.styles != ()
    assert after.files == before.files
    stored = [(folder / "styles.safetensors").read_bytes() for folder in (source, tmp_path)]
    assert stored[0] == stored[1]
