"""What a folder looks like, by which names folders are told and found, and what is said of one that
cannot be served."""

import os
from collections.abc import Callable
from errno import EIO
from pathlib import Path
from typing import Any

import pytest

from service.artifact import ArtifactError
from service.catalogue import Models
from service.errors import UnknownModel
from service.places import Place, Places, is_there, look_at


def test_folders_are_told_by_their_names_whenever_they_came() -> None:
    places = Places()
    for name in ("there/b", "there/c", "there/a", "here/d"):
        places.of(Path(name))
    assert [str(place.folder) for place in places] == ["here/d", "there/a", "there/b", "there/c"]
    assert [*places.named] == ["a", "b", "c", "d"]


@pytest.mark.parametrize("is_dir", [Path.is_dir, os.path.isdir])
def test_a_folder_on_a_mount_that_is_dead_is_there_and_one_that_has_gone_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_dir: Callable[[Path], bool]
) -> None:
    """What it served is served on, also by a Python whose paths tell no errors, as 3.14."""
    monkeypatch.setattr(Path, "is_dir", is_dir)
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    assert is_there(tmp_path)
    for gone in ("none", "file", "file/none", "loop"):
        assert not is_there(tmp_path / gone)

    def dead(folder: Path, **_: bool) -> None:
        raise OSError(EIO, os.strerror(EIO), str(folder))

    monkeypatch.setattr(os, "stat", dead)
    there = is_there(tmp_path)
    monkeypatch.undo()
    assert there


def test_who_asks_for_no_artifact_is_told_which_there_are() -> None:
    """Those too that nobody has read yet."""
    places = Places()
    places.of(Path("b"))
    with pytest.raises(UnknownModel, match="the artifacts are: a, b") as unknown:
        places.find("c", [Path("b"), Path("a")])
    assert unknown.value.param == "name"
    assert [*places.named] == ["b"]  # one that was only asked for has no place


def test_a_file_that_a_link_leads_to_is_looked_at(tmp_path: Path) -> None:
    folder, kept = tmp_path / "letters", tmp_path / "kept"
    folder.mkdir()
    kept.write_text("one")
    (folder / "model.onnx").symlink_to(kept)
    before = look_at(folder)
    kept.write_text("three")
    assert look_at(folder) != before


def test_why_a_folder_is_refused_is_logged_once_and_with_its_place_if_nobody_expected_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    models: Any = None  # which is not asked
    place = Place.of(Path("letters"))
    expected, odd = ArtifactError("letters/step.onnx is missing"), ZeroDivisionError("odd")
    for error in (expected, expected, odd, odd):
        Models._refuse(models, place, error)
    assert [record.message for record in caplog.records] == [
        "letters/step.onnx is missing",
        "letters: ZeroDivisionError: odd",
    ]
    assert [record.exc_info and record.exc_info[1] for record in caplog.records] == [None, odd]
    assert place.problem == "letters: ZeroDivisionError: odd"
