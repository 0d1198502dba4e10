"""Data that is kept elsewhere is found through links; what nobody wrote is not learned; a training
that ran out of time says so.
"""

import bz2
import errno
import gzip
import io
import lzma
import os
import re
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from lab.tasks.digits.data import FILES as DIGITS
from lab.tasks.digits.data import read_digits
from lab.tasks.ranking.data import PICTURES, TABLE, read_captioned
from lab.tasks.reader.data import ARCHIVE as STORIES
from lab.tasks.reader.data import read_stories
from tests.training.tiny import SHORT, tiny_recipe, write_corpus
from training.files import files_below, folders_below, unpacking
from training.ink.corpus import read_pens
from training.ink.line import Tally
from training.ink.sources import read_lines
from training.run import carry_out
from training.text.data import read_corpus

_FIXTURES = Path(__file__).parent / "ink" / "fixtures"


def _as_tar(content: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as tar:
        member = tarfile.TarInfo("data/7/words.dat")
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def _as_arrays(content: bytes) -> bytes:
    packed = io.BytesIO()
    np.savez_compressed(packed, images=np.frombuffer(content, np.uint8))
    return packed.getvalue()


@pytest.mark.parametrize("cut", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(
    ("name", "pack", "read"),
    [
        ("unipen.tar.xz", _as_tar, lambda folder: read_lines(folder, Tally())),
        ("saved.npz", _as_arrays, lambda folder: read_pens(folder / "saved.npz", Tally())),
        (DIGITS[0] + "-ubyte.gz", gzip.compress, lambda folder: read_digits(folder, 0.1)),
        (STORIES, _as_tar, lambda folder: read_stories(folder, 0.1, 60)),
        (PICTURES, _as_arrays, lambda folder: read_captioned(folder, "en", 0.1)),
    ],
    ids=["pens", "corpus", "digits", "stories", "pictures"],
)
def test_a_packed_file_that_is_cut_short_is_named(
    tmp_path: Path,
    name: str,
    pack: Callable[[bytes], bytes],
    read: Callable[[Path], object],
    cut: float,
) -> None:
    for other in DIGITS[1:]:
        (tmp_path / f"{other}-ubyte.gz").write_bytes(gzip.compress(b""))
    (tmp_path / TABLE).write_text("skin\n")
    packed = pack(np.random.default_rng(0).bytes(50_000))
    (tmp_path / name).write_bytes(packed[: round(cut * len(packed))])
    with pytest.raises(ValueError, match=re.escape(name)):
        read(tmp_path)


@pytest.mark.parametrize("way", [gzip, lzma, bz2])
def test_a_packed_file_that_was_altered_is_named(tmp_path: Path, way: ModuleType) -> None:
    path, packed = tmp_path / "lines", bytearray(way.compress(b"a line of ink\n" * 999))
    packed[20:24] = b"\xff" * 4
    path.write_bytes(packed)
    with pytest.raises(ValueError, match="lines cannot be unpacked"), unpacking(path):
        way.open(path).read()


def test_a_packed_file_that_cannot_be_opened_is_no_fault_of_its_packing(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    with pytest.raises(FileNotFoundError), unpacking(path), gzip.open(path):
        pytest.fail("it is not there")


def test_an_archive_that_is_none_is_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "unipen.tar").write_bytes(b"")
    with pytest.raises(ValueError, match=r"unipen\.tar cannot be unpacked: ") as told:
        read_lines(tmp_path, Tally())
    assert "\n" not in str(told.value)


def test_linked_folders_are_entered_and_loops_are_not_endless(tmp_path: Path) -> None:
    far = tmp_path / "far" / "deep"
    far.mkdir(parents=True)
    (far / "a.txt").write_text("a")
    near = tmp_path / "near"
    near.mkdir()
    (near / "b.txt").write_text("b")
    for folder in ("a/deep", "desk"):
        (near / folder).mkdir(parents=True)
    (near / "a" / "c.txt").write_text("c")  # is come to after b.txt
    (near / "link").symlink_to(tmp_path / "far")
    (far / "back").symlink_to(near)
    (near / "gone.txt").symlink_to(tmp_path / "nowhere")
    files = [near / name for name in ("a/c.txt", "b.txt", "link/deep/a.txt")]
    assert files_below(near, "*.txt") == files
    assert folders_below(near, "de*") == [near / n for n in ("a/deep", "desk", "link/deep")]


def test_no_folder_is_left_out_in_silence_because_it_may_not_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "a.txt").write_text("a")
    scan = os.scandir

    def scandir(path: str) -> object:  # root may read anything
        if Path(path).name == "closed":
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    for below in (files_below, folders_below):
        with pytest.raises(PermissionError, match="closed"):
            below(tmp_path, "*.txt")
    assert files_below(tmp_path, readable=True) == [tmp_path / "open" / "a.txt"]
    assert files_below(tmp_path / "gone") == []


def test_a_text_behind_a_link_is_read(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    write_corpus(tmp_path / "elsewhere")
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "link").symlink_to(tmp_path / "elsewhere")
    whole = read_corpus(str(tmp_path / "elsewhere"))
    assert read_corpus(str(tmp_path / "corpus")).content == whole.content


@pytest.mark.parametrize(
    ("source", "inner"), [("unipen", "data"), ("iam", "lineStrokes-all"), ("iam", "ascii-all")]
)
def test_pens_behind_a_link_are_the_same_lines(tmp_path: Path, source: str, inner: str) -> None:
    shutil.copytree(_FIXTURES / source, tmp_path / "pens")
    (tmp_path / "pens" / inner).rename(tmp_path / "elsewhere")
    (tmp_path / "pens" / inner).symlink_to(tmp_path / "elsewhere")
    linked, plain = (read_lines(p, Tally()) for p in (tmp_path / "pens", _FIXTURES / source))
    assert [line.text for line in linked] == [line.text for line in plain] != []


def test_a_line_of_iam_with_a_word_crossed_out_is_left_out(tmp_path: Path) -> None:
    shutil.copytree(_FIXTURES / "iam", tmp_path / "iam")
    before = read_lines(tmp_path / "iam", Tally())
    (text,) = (tmp_path / "iam").rglob("z01-000a.txt")
    content = text.read_text()
    first = before[0].text
    assert content.count(first) >= 1
    head, mark, rest = content.partition("CSR:")
    text.write_text(head + mark + rest.replace(first, f"{first} # gone", 1))
    tally = Tally()
    after = read_lines(tmp_path / "iam", tally)
    assert [line.text for line in after] == [line.text for line in before[1:]]
    assert tally.skipped["a word crossed out"] == 1


@pytest.mark.usefixtures("_undrawn")
def test_a_training_that_its_time_limit_ended_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = write_corpus(tmp_path, SHORT)
    carry_out(tiny_recipe(corpus, time_limit_s=0.05), tmp_path / "short", "cpu", Path())
    said = capsys.readouterr().err
    assert "training.time_limit_s (0 s) ended the run after" in said
    carry_out(tiny_recipe(corpus, epochs=0.2), tmp_path / "whole", "cpu", Path())
    assert "time_limit_s" not in capsys.readouterr().err
