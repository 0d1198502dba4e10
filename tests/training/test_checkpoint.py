"""A checkpoint is written where there is room for it."""

from pathlib import Path

import pytest

from training import checkpoint


def test_what_a_killed_process_had_begun_makes_room_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is as large, and would fill the disk for good."""
    left, there = tmp_path / ".it.safetensors.1", list[bool]()

    def save_file(flat: object, temporary: Path, **_: object) -> None:
        there.append(left.exists())
        temporary.touch()

    left.touch()
    monkeypatch.setattr(checkpoint, "save_file", save_file)
    checkpoint.save(tmp_path / "it.safetensors", {}, {})
    assert there == [False]
