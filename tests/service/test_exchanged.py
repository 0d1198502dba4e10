"""Folders that exchange their models go on with them, and are followed."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.service.altered import edit_manifest
from tests.service.changing import changing


def _both(artifacts: Path, tmp_path: Path) -> Path:
    """A folder with two models in it."""
    folder = tmp_path / "served"
    for name in ("letters", "noise"):
        shutil.copytree(artifacts / name, folder / name)
    return folder


def _turn(folder: Path, names: Sequence[str]) -> None:
    """Each folder has what the one before it had."""
    for name in names:
        (folder / name).rename(folder.parent / name)
    for name, before in zip(names, [names[-1], *names], strict=False):
        (folder.parent / before).rename(folder / name)


@pytest.mark.parametrize("names", [("a", "b"), ("a", "b", "c")])
def test_folders_that_exchange_their_models_go_on_with_them(
    artifacts: Path, tmp_path: Path, names: tuple[str, ...]
) -> None:
    folder = tmp_path / "served"
    for name, model in zip(names, ("letters", "noise", "letters"), strict=False):
        shutil.copytree(artifacts / model, folder / name)
        edit_manifest(folder / name, lambda manifest, name=name: manifest.update(name=name))
    with changing(folder) as service:
        before = {name: service.text(model=name) for name in names}
        models = {name: service.models[name] for name in names}
        _turn(folder, names)
        service.look()
        assert {name: service.models[name] for name in names} == models
        assert [service.standing(name)["failed"] for name in names] == [None] * len(names)
        edit_manifest(folder / "b", lambda manifest: manifest["provenance"].update(told="now"))
        service.look()
        told = service.client.get("/v1/models/a").json()["provenance"]
        assert told.get("told") == "now"
        assert {name: service.text(model=name) for name in names} == before


def test_an_engine_that_has_ended_is_revived_by_the_folder_that_has_its_model_now(
    artifacts: Path, tmp_path: Path
) -> None:
    folder = _both(artifacts, tmp_path)
    with changing(folder) as service:
        before = service.text()
        service.models["letters"].engine.stop()
        _turn(folder, ("letters", "noise"))
        service.look()
        assert service.text() == before


def test_a_run_that_fails_is_followed_by_another_runner_of_the_folder_it_has_now(
    artifacts: Path, tmp_path: Path
) -> None:
    """It was looked for in the other folder: the runner whose run had failed was kept."""
    folder = _both(artifacts, tmp_path)
    with changing(folder) as service:
        before, engine = service.text(), service.models["letters"].engine
        _turn(folder, ("letters", "noise"))
        service.look()
        assert service.models["letters"].engine is engine
        broken = engine._slots.runner
        broken.run = None  # type: ignore[assignment,method-assign]  # not callable
        body = {"model": "letters", "max_tokens": 3}
        assert service.client.post("/v1/completions", json=body).status_code == 500
        assert service.text() == before
        assert engine._slots.runner is not broken
