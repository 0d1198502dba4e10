"""A file is written whole or not at all."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from stat import S_IMODE

import numpy as np
import pytest
from safetensors.numpy import save_file

from contract.files import (
    alone_in,
    forget_unfinished,
    printable,
    replacing,
    require_writable,
    write_whole,
)


def test_a_folder_is_made_in_the_nearest_one_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where files can be made: to write in it alone is not enough."""
    asked: list[tuple[Path, int]] = []
    monkeypatch.setattr("os.access", lambda *of: asked.append(of) or len(asked) < 3)
    assert require_writable(tmp_path) == require_writable(tmp_path / "a" / "b") == tmp_path
    with pytest.raises(ValueError, match=f"b: nothing may be written in {tmp_path}$"):
        require_writable(tmp_path / "a" / "b")
    assert asked == [(tmp_path, os.W_OK | os.X_OK)] * 3


def test_what_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    write_whole(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "new \ud800")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["manifest.json"]
    write_whole(path, "newer")
    assert path.read_text() == "newer"
    assert [p.name for p in tmp_path.iterdir()] == ["manifest.json"]


def test_a_full_disk_is_told_with_the_file_that_it_had_no_room_for(
    tmp_path: Path, full_disk: Callable[[int], AbstractContextManager[None]]
) -> None:
    path = tmp_path / "results.json"
    write_whole(path, "old")
    with full_disk(1000):
        with pytest.raises(OSError, match=f"{path}'$"):
            write_whole(path, "new" * 1000)
        with (
            pytest.raises(OSError, match=f"^could not write {path}: "),
            replacing(path) as temporary,
        ):
            save_file({"w": np.zeros(1000)}, temporary)
    assert path.read_text() == "old"
    with pytest.raises(BrokenPipeError) as raised, replacing(path):  # nor is another told as one
        raise BrokenPipeError
    assert raised.value.filename is None
    with pytest.raises(FileNotFoundError) as raised_of_another, replacing(path):
        (tmp_path / "nowhere").read_bytes()
    assert raised_of_another.value.filename == str(tmp_path / "nowhere")


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664])
def test_what_takes_a_files_place_is_for_the_same_readers(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "keys.toml"
    path.write_text("old")
    path.chmod(mode)
    masked = os.umask(0o037)  # of neither
    try:
        with replacing(path) as temporary:
            temporary.write_text("new")
            assert S_IMODE(temporary.stat().st_mode) == 0o600
    finally:
        os.umask(masked)
    assert (path.read_text(), S_IMODE(path.stat().st_mode)) == ("new", mode)


def test_what_a_link_leads_to_is_replaced_and_the_link_stays(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    file, link = tmp_path / "far" / "log.jsonl", tmp_path / "log.jsonl"
    write_whole(file, "old")
    link.symlink_to(Path("far", "log.jsonl"))
    write_whole(link, "new")
    assert file.read_text() == "new"
    assert link.is_symlink()
    assert [p.name for p in file.parent.iterdir()] == ["log.jsonl"]


def test_what_is_no_plain_file_stays_what_it_is_and_nothing_is_written_first(
    tmp_path: Path,
) -> None:
    """Of root's, /dev/null became a file."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for path in (tmp_path / "pipe", tmp_path / "link", tmp_path):
        with pytest.raises(FileExistsError, match="it is no plain file"), replacing(path):
            pytest.fail("it was to be written")
    assert (tmp_path / "pipe").is_fifo()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "pipe"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_what_root_writes_stays_its_owners(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.write_text("old")
    os.chown(path, 10001, 10002)
    with replacing(path) as temporary:
        temporary.write_text("new")
    assert (path.stat().st_uid, path.stat().st_gid) == (10001, 10002)


def test_what_cannot_be_given_away_is_for_the_same_readers_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: object) -> None:
        raise PermissionError

    path = tmp_path / "keys.toml"
    path.write_text("old")
    path.chmod(0o640)
    monkeypatch.setattr("contract.files.os.chown", refuses)
    write_whole(path, "new")
    assert (path.read_text(), S_IMODE(path.stat().st_mode)) == ("new", 0o640)


def test_names_that_are_no_utf_8_are_told_apart() -> None:
    assert [printable(os.fsdecode(b"caf" + end)) for end in (b"\xe9", b"\xe8", "é".encode())] == [
        r"caf\xe9",
        r"caf\xe8",
        "café",
    ]


def test_a_name_begins_no_line_of_a_log_and_moves_no_cursor() -> None:
    assert (
        printable("a b\nERROR \x1b[2J\x85\u2028\u2029é") == r"a b\nERROR \x1b[2J\x85\u2028\u2029é"
    )
    # Spaces of all widths, what joins an emoji, and one that Unicode has since 15 alone.
    other = "a\u00a0b\u3000c 👩\u200d🏫 \U0001fae8"
    assert printable(other) == other


def test_two_processes_that_write_one_file_do_not_take_each_others(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    other = "import sys, pathlib; from contract.files import write_whole; "
    other += "write_whole(pathlib.Path(sys.argv[1]), 'theirs')"
    with replacing(path) as mine:
        mine.write_text("mine")
        subprocess.run([sys.executable, "-c", other, str(path)], check=True, timeout=60)
        assert path.read_text() == "theirs"
    assert path.read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["manifest.json"]


def test_what_a_killed_process_left_beside_a_file_is_forgotten_and_nothing_else(
    tmp_path: Path,
) -> None:
    file, link = tmp_path / "far" / "a[b].safetensors", tmp_path / "near"
    file.parent.mkdir()
    kept = [".a[b].safetensors.old", ".ab.safetensors.12", "a[b].safetensors", "a[b].safetensors.1"]
    for name in (*kept, ".a[b].safetensors.12", ".a[b].safetensors.3456"):
        (file.parent / name).touch()
    link.symlink_to(file)
    forget_unfinished(link)
    assert sorted(p.name for p in file.parent.iterdir()) == sorted(kept)


def test_a_file_for_any_reader_is_that_as_soon_as_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looks at that moment would be refused, as a service is that watches an artifact."""
    modes, whole = list[int](), Path.replace

    def replace(temporary: Path, path: Path) -> Path:
        modes.append(temporary.stat().st_mode & 0o777)
        return whole(temporary, path)

    monkeypatch.setattr(Path, "replace", replace)
    (tmp_path / "file").touch(0o600)
    with replacing(tmp_path / "file", mode=0o644) as file:
        file.write_text("new")
    assert modes == [0o644]


@pytest.mark.parametrize("waits", [True, False])
def test_a_folder_is_held_by_one_alone_and_then_by_nobody(tmp_path: Path, waits: bool) -> None:
    beside = os.open(tmp_path, os.O_RDONLY)
    with alone_in(tmp_path, waits=waits), pytest.raises(BlockingIOError):
        fcntl.flock(beside, fcntl.LOCK_SH | fcntl.LOCK_NB)
    fcntl.flock(beside, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(beside, fcntl.LOCK_UN)
    with pytest.raises(ZeroDivisionError), alone_in(tmp_path, waits=waits):
        raise ZeroDivisionError
    fcntl.flock(beside, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(beside)
