"""What an administrator unloaded comes back by no other folder until it is asked for, and a name is
free once nobody has it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.altered import copy_of, edit_manifest
from tests.service.changing import Changing, changing


@pytest.fixture
def serving(artifacts: Path, tmp_path: Path) -> Iterator[Changing]:
    for name in ("letters", "noise"):
        copy_of(artifacts / name, tmp_path)
    with changing(tmp_path) as service:
        yield service


def _rename(folder: Path, name: str) -> None:
    """Let the model of a folder be called so."""
    edit_manifest(folder, lambda manifest: manifest.update(name=name))


def _served(service: Changing) -> set[str]:
    return {model["id"] for model in service.client.get("/v1/models").json()["data"]}


def test_nor_by_the_folder_of_another_model_that_serves(serving: Changing, tmp_path: Path) -> None:
    before = serving.text()
    serving.tell("unload")
    _rename(tmp_path / "noise", "letters")
    serving.look()
    assert _served(serving) == {"noise"}
    assert "another folder has a model 'letters'" in serving.standing("noise")["failed"]
    assert serving.tell("reload", "noise").status_code == 409  # which asks for another name
    assert _served(serving) == {"noise"}
    assert serving.tell("load").status_code == 200
    assert serving.text() == before


def test_nor_where_its_own_folder_had_asked_for_the_name_of_another(
    serving: Changing, artifacts: Path, tmp_path: Path
) -> None:
    _rename(tmp_path / "letters", "noise")
    serving.look()
    serving.tell("unload")
    shutil.copytree(artifacts / "letters", tmp_path / "late")
    serving.look()
    assert _served(serving) == {"noise"}


def test_one_that_was_asked_for_is_looked_after_beside_the_folder_unloaded(
    serving: Changing, artifacts: Path, tmp_path: Path
) -> None:
    serving.tell("unload")
    other = Path(shutil.copytree(artifacts / "letters", tmp_path / "other"))
    assert serving.tell("load", "other").json()["id"] == "letters"
    edit_manifest(other, lambda manifest: manifest["provenance"].update(told="now"))
    serving.look()
    assert serving.client.get("/v1/models/letters").json()["provenance"]["told"] == "now"


def test_a_folder_that_never_gave_a_model_keeps_no_name_from_another(
    artifacts: Path, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        shutil.copytree(artifacts / "letters", tmp_path / name)
    (copy_of(artifacts / "letters", tmp_path) / "step.onnx").unlink()
    with changing(tmp_path) as service:
        assert "another folder has a model 'letters'" in service.standing("two")["failed"]
        before = service.text()
        shutil.rmtree(tmp_path / "one")
        service.look()
        assert service.text() == before
