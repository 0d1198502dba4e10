"""A file is written whole or not at all."""

import subprocess
import sys
from pathlib import Path

import pytest

from contract.files import replacing, write_whole


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


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_who_may_read_a_file_stays_when_it_is_replaced(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "keys.toml"
    write_whole(path, "old")
    path.chmod(mode)
    write_whole(path, "new")
    assert path.stat().st_mode & 0o777 == mode


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
