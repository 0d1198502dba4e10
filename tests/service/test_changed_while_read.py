"""An artifact may be copied into its folder while the service reads it: nothing is served that was
not checked."""

from pathlib import Path

import pytest

from service import artifact
from service.artifact import ArtifactError, load_artifact
from tests.service.altered import copy_of

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
