"""What the service reads may change meanwhile: nothing is served that was not checked, and the next
look finds the change."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from service import artifact
from service.artifact import Artifact, ArtifactError, load_artifact
from service.catalogue import Models
from service.http import keys
from service.http.keys import Key, Keys, new_key
from service.kinds import KINDS
from service.metrics import Metrics
from tests.service.altered import copy_of
from tests.service.serving import settings

# Adds a field of an ONNX file that nobody looks at, or changes the last number of a tensor.
_OTHERS = {"model.onnx": (0, b"\x32\x00"), "golden.safetensors": (1, b"\x01")}


@pytest.mark.parametrize("name", _OTHERS)
def test_what_is_read_has_the_hash_though_the_file_was_another_before(
    artifacts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    copy = copy_of(artifacts / "letters", tmp_path)
    check = artifact._check_file

    def then_exchanged(path: Path, expected: str) -> int:
        size = check(path, expected)
        if path.name == name:
            less, more = _OTHERS[name]
            path.write_bytes(path.read_bytes()[: size - less] + more)
        return size

    monkeypatch.setattr(artifact, "_check_file", then_exchanged)
    with pytest.raises(ArtifactError, match=rf"{name} has sha256"):
        load_artifact(copy)


@pytest.mark.parametrize("at_start", [True, False])
def test_an_artifact_that_changes_while_it_is_read_has_changed_at_the_next_look(
    folder: Path, monkeypatch: pytest.MonkeyPatch, at_start: bool
) -> None:
    looked: list[str] = []

    def then_changed(place: Path) -> Artifact:
        monkeypatch.undo()
        read = load_artifact(place)
        (place / "more").touch()
        return read

    def change() -> None:
        monkeypatch.setattr("service.catalogue.load_artifact", then_changed)

    async def swap(place: Any, seen: object) -> None:
        looked.append(place.name)

    async def look() -> None:
        if not at_start:
            change()
            await models.load("letters", again=False)
        models._swap = swap  # type: ignore[assignment]
        await models.look()

    if at_start:
        change()
    models = Models(settings(folder), Metrics(), KINDS)
    models["letters"].engine.ready = True  # so that the same is not made again
    asyncio.run(look())
    assert looked == ["letters"]


def test_a_file_of_keys_that_changes_while_it_is_read_again_is_read_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, made, read = tmp_path / "keys.toml", list[str](), keys.read_keys

    def then_changed(path: Path) -> dict[str, Key]:
        found = read(path)
        if not made:
            made.append(new_key(file, "late"))
        return found

    first = new_key(file, "first")
    known = Keys(file)
    monkeypatch.setattr(keys, "read_keys", then_changed)
    new_key(file, "second")
    known.look()
    assert known.find(first) is not None
    known.look()
    assert known.find(made[0]) is not None
