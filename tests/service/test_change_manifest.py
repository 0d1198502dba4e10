"""A folder that has lost its manifest, as one that is being copied over may have."""

from pathlib import Path

from service.places import look_at
from tests.service.altered import copy_of
from tests.service.changing import changing


def test_a_folder_without_its_manifest_is_told_of_and_serves_on(
    artifacts: Path, tmp_path: Path
) -> None:
    copy_of(artifacts / "letters", tmp_path)
    copy_of(artifacts / "noise", tmp_path)  # were all without one, the volume may be away
    manifest, aside = tmp_path / "letters" / "manifest.json", tmp_path / "letters" / "aside"
    with changing(tmp_path) as service:
        before = service.text()
        manifest.rename(aside)
        for _ in range(2):  # it is told once
            service.look()
            assert "manifest.json is missing" in service.standing()["failed"]
            assert service.reloads("failed") == 1
        assert service.text() == before
        aside.rename(manifest)
        service.look()
        assert service.standing()["failed"] is None
        assert service.reloads("ok") == 0


def test_a_link_to_nothing_hides_no_change(tmp_path: Path) -> None:
    """As some editors lock a file; in which order a folder tells of its files nobody knows."""
    manifest = tmp_path / "manifest.json"
    manifest.write_text("1")
    for name in ".#manifest.json", *map(str, range(8)):
        (tmp_path / name).symlink_to("nobody@nowhere.1")
    before = look_at(tmp_path)
    manifest.write_text("22")
    assert {name for name, *_ in before} == {"manifest.json"}
    assert look_at(tmp_path) != before


def test_a_folder_that_nobody_may_look_into_stops_no_other(artifacts: Path, tmp_path: Path) -> None:
    """As on a mount that is dead. Here it is a link to a name that is too long to look for."""
    lost = "x" * 300
    (tmp_path / "odd").symlink_to(lost)
    (tmp_path / "versions").mkdir()
    copy_of(artifacts / "letters", tmp_path / "versions")
    (tmp_path / "current").symlink_to("versions/letters")
    with changing(tmp_path) as service:
        before = service.text()
        (tmp_path / "current").unlink()
        (tmp_path / "current").symlink_to(lost)
        copy_of(artifacts / "noise", tmp_path)
        service.look()
        assert service.standing("noise")["state"] == "ready"
        assert "File name too long" in service.standing()["failed"]
        assert service.text() == before
