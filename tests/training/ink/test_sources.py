"""Pen data: every loader against invented files, and the synthetic pen."""

import os
import re
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from contract.alphabets import ALPHABET, LONGEST_TEXT
from export.__main__ import main
from training.files import MissingData
from training.ink.corpus import read_pens
from training.ink.iam import _evenly
from training.ink.line import Line, Tally
from training.ink.sources import FORMATS, SYNTHETIC, read_lines
from training.ink.synthetic import random_style, random_text, synthetic_lines, write
from training.ink.unipen import UnipenFolder

_FIXTURES = Path(__file__).parent / "fixtures"
_UNIPEN = _FIXTURES / "unipen"
_IAM = _FIXTURES / "iam"
_REAL = Path(os.environ.get("EVENKEEL_DATA", "no-such-folder"), "unipen_r01_v07")
_REAL_ARCHIVE = _REAL / "unipen_r01v07_cat7_words_cat8_text.tar.xz"


def _points(line: Line) -> list[list[list[float]]]:
    return [stroke.tolist() for stroke in line.strokes]


def _by_text(lines: list[Line]) -> dict[str, Line]:
    assert len({line.text for line in lines}) == len(lines)
    return {line.text: line for line in lines}


@pytest.fixture(scope="module")
def unipen() -> tuple[dict[str, Line], Tally]:
    tally = Tally()
    return _by_text(read_lines(_UNIPEN, tally)), tally


def test_a_segment_has_the_strokes_of_its_components(
    unipen: tuple[dict[str, Line], Tally],
) -> None:
    # Columns are Y X T in an included file, and x is twice as fine as y.
    assert _points(unipen[0]["whole"]) == [[[5, 1], [10, 2], [15, 3]]]


def test_offsets_count_points_and_include_the_last(unipen: tuple[dict[str, Line], Tally]) -> None:
    assert _points(unipen[0]["part"]) == [[[10, 2], [15, 3]], [[20, 4]]]


def test_an_empty_component_has_no_number_and_includes_nest(
    unipen: tuple[dict[str, Line], Tally],
) -> None:
    # 0 down, an empty up that is not counted, 1 down, 2 up; 3 from a nested file; 4 down.
    assert _points(unipen[0]["joined"]) == [[[15, 3]], [[35, 7], [40, 8]], [[45, 9]]]


def test_escaped_quotes_are_part_of_the_label(unipen: tuple[dict[str, Line], Tally]) -> None:
    line = unipen[0]['say "no" twice']
    assert _points(line) == [[[20, 4], [25, 5]], [[35, 7], [40, 8]]]
    assert (line.writer, line.source, line.points_per_second) == ("inv/ada", "inv", 80.0)


def test_what_cannot_be_read_is_counted_and_named_and_the_rest_loads(
    unipen: tuple[dict[str, Line], Tally],
) -> None:
    lines, tally = unipen
    assert set(lines) == {"whole", "part", "joined", 'say "no" twice'}
    assert tally.examples == {
        "marked BAD by its collector": ["data/7/inv/words.dat#4"],
        "malformed segment (range outside the file)": [
            "data/7/inv/words.dat#5",
            "data/7/inv/words.dat#7",
        ],
        "malformed segment (no range or label)": ["data/7/inv/words.dat#6"],
        "unreadable file (include file missing)": ["data/8/inv/nowhere.dat"],
        "unreadable file (coordinates do not fill their columns)": ["data/8/inv/ragged.dat"],
        "unreadable file (IndexError)": ["data/8/inv/rateless.dat"],
        "unreadable file (coordinates are not numbers)": ["data/8/inv/words.dat"],
    }
    assert sum(tally.skipped.values()) == 8


def test_a_number_that_no_component_has_costs_its_segment_alone(tmp_path: Path) -> None:
    """Python reads none of more than 4,300 digits."""
    folder, tally = Path(shutil.copytree(_UNIPEN, tmp_path / "unipen")), Tally()
    words = folder / "data" / "7" / "inv" / "words.dat"
    odd = "".join(f'.SEGMENT WORD {n} OK "odd"\n' for n in (f"0-{'1' * 5000}", f"0:{'1' * 5000}"))
    words.write_text(words.read_text().replace(".SEGMENT", odd + ".SEGMENT", 1))
    assert "whole" in _by_text(read_lines(folder, tally))
    assert tally.skipped["malformed segment (no range or label)"] == 3


@pytest.mark.parametrize("packed", ["", "gz", "bz2", "xz"])
def test_archives_read_as_the_folders_they_hold(
    unipen: tuple[dict[str, Line], Tally], tmp_path: Path, packed: Literal["", "gz", "bz2", "xz"]
) -> None:
    name = f"unipen_invented.tar.{packed}".rstrip(".")
    with tarfile.open(tmp_path / name, f"w:{packed}") as tar:
        for part in ("data", "include"):
            tar.add(_UNIPEN / part, part)
    lines = _by_text(read_lines(tmp_path, tally := Tally()))
    assert {t: _points(line) for t, line in lines.items()} == {
        t: _points(line) for t, line in unipen[0].items()
    }
    assert tally.skipped == unipen[1].skipped


def test_files_are_read_in_one_order_packed_or_not(tmp_path: Path) -> None:
    """That of their whole names, in which `a-b/` comes before `a/`: lines are learned in it."""
    files = ["data/7/a-b/it.dat", "data/7/a/it.dat", "data/7/b.dat"]
    unpacked, packed = tmp_path / "unpacked", tmp_path / "packed"
    for path in (unpacked / name for name in files[::-1]):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    packed.mkdir()
    with tarfile.open(packed / "unipen.tar", "w") as tar:
        tar.add(unpacked / "data", "data")
    assert [UnipenFolder(folder).data_files("7") for folder in (unpacked, packed)] == [files] * 2


def test_archives_may_have_a_folder_above_and_files_beside_them(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "unipen_invented.tar.xz", "w:xz") as tar:
        tar.add(_UNIPEN, "release/cdrom")
    (tmp_path / "unipen_invented.tar.xz.sha256").write_text("abc")
    (tmp_path / "unipen_more.tar.xz.part").write_bytes(b"half")
    assert len(read_lines(tmp_path, Tally())) == 4


def test_archives_without_data_are_told(tmp_path: Path) -> None:
    (tmp_path / "unipen_a.tar.part").write_bytes(b"half")
    with pytest.raises(ValueError, match="holds no pen data"):
        read_lines(tmp_path, Tally())
    with tarfile.open(tmp_path / "unipen_a.tar", "w") as tar:
        tar.add(_UNIPEN / "include", "include")
    with pytest.raises(ValueError, match="archives have no folder data"):
        read_lines(tmp_path, Tally())


@pytest.fixture(scope="module")
def iam() -> tuple[dict[str, Line], Tally]:
    tally = Tally()
    return _by_text(read_lines(_IAM, tally)), tally


def test_a_whiteboard_stroke_is_even_in_time_and_y_is_up(
    iam: tuple[dict[str, Line], Tally],
) -> None:
    line = iam[0]["the first kite"]
    slanted, dot = line.strokes
    expected = [[100, -50], [110, -40], [120, -30], [130, -20], [140, -10]]
    np.testing.assert_allclose(slanted, expected, rtol=0, atol=1e-3)
    assert dot.tolist() == [[150, -20]]
    assert (line.writer, line.source, line.points_per_second) == ("iam/70001", "iam", 100.0)


def test_a_stroke_without_a_clock_keeps_its_points(iam: tuple[dict[str, Line], Tally]) -> None:
    backwards, timeless = [[1, -2], [3, -4], [5, -6]], [[7, -8], [9, -10]]
    assert _points(iam[0]["rose & fell"]) == [backwards, timeless]


@pytest.mark.parametrize(
    ("seconds", "points"), [((0, 0, 0.04), 5), ((0, 0.02, 30), 3001), ((0, 0.02, 30.01), 3)]
)
def test_a_clock_may_stand_for_a_while_and_a_stroke_last_half_a_minute(
    seconds: tuple[float, ...], points: int
) -> None:
    rows = np.array([(place, place, at) for place, at in enumerate(seconds)])
    assert len(_evenly(rows)) == points


def test_whiteboard_lines_that_cannot_be_read_are_counted_and_named(
    iam: tuple[dict[str, Line], Tally],
) -> None:
    assert set(iam[0]) == {"the first kite", "rose & fell"}
    assert iam[1].examples == {
        "malformed XML": ["z01-000a-03.xml"],
        "no strokes": ["z01-000a-04.xml"],
        "malformed points": ["z01-000a-05.xml"],
        "no text for the line": ["z01-000a-06.xml", "z01-000b-01.xml"],
    }


def test_the_inner_folders_of_an_archive_may_be_missing(tmp_path: Path) -> None:
    for name in ("lineStrokes", "ascii"):
        shutil.copytree(_IAM / f"{name}-all" / name, tmp_path / f"{name}-all")
    lines = read_lines(tmp_path, Tally())
    assert [line.text for line in lines] == ["the first kite", "rose & fell"]
    # Without the original recordings a form stands for its writer.
    assert {line.writer for line in lines} == {"iam/z01-000a"}


def test_lines_of_iam_are_found_in_their_own_folder_and_in_none_called_alike(
    tmp_path: Path,
) -> None:
    strokes = _IAM / "lineStrokes-all/lineStrokes"
    assert read_lines(strokes, Tally()) == []  # without its texts
    (tmp_path / "lineStrokes-v2").mkdir()
    with pytest.raises(ValueError, match="holds no pen data"):
        read_lines(tmp_path, Tally())


def test_a_folder_of_no_known_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "no-unipen.tar").touch()
    with pytest.raises(ValueError, match="holds no pen data"):
        read_lines(tmp_path, Tally())
    with pytest.raises(ValueError, match="is no folder"):
        read_lines(tmp_path / "nothing", Tally())


def test_every_format_is_told_and_so_is_what_a_folder_of_it_has(tmp_path: Path) -> None:
    readme = (Path(__file__).parents[3] / "README.md").read_text()
    (told,) = re.findall(r"^\S+ -m export train handwriting --data path/\S+ +# (.*)$", readme, re.M)
    assert [name for name in FORMATS if name not in told] == []
    with pytest.raises(ValueError, match="holds no pen data: ") as refused:
        read_lines(tmp_path, Tally())
    for name, each in FORMATS.items():
        assert f"{name} has {each.has}" in str(refused.value)


def test_the_synthetic_pen_is_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    first, again = list(synthetic_lines(5, 3)), list(synthetic_lines(5, 3))
    assert [line.text for line in first] == [line.text for line in again]
    assert list(map(_points, first)) == list(map(_points, again))
    assert _points(next(synthetic_lines(1, 3))) == _points(first[0])
    assert _points(next(synthetic_lines(1, 4))) != _points(first[0])
    monkeypatch.setattr("training.ink.sources._SYNTHETIC_LINES", 2)
    assert [line.source for line in read_lines(SYNTHETIC, Tally())] == ["synthetic"] * 2


def test_the_synthetic_pen_writes_all_printable_ascii() -> None:
    generator = np.random.default_rng(0)
    texts = [random_text(generator) for _ in range(400)]
    assert set("".join(texts)) == set(ALPHABET)
    assert {len(text.split(" ")) for text in texts} == set(range(1, 9))
    assert max(map(len, texts)) == LONGEST_TEXT


@pytest.mark.parametrize("font", ["futural", "rowmans", "scripts", "cursive"])
def test_every_character_but_space_leaves_ink(font: str) -> None:
    generator = np.random.default_rng(0)
    style = replace(random_style(generator), font=font)
    for character in ALPHABET.strip():
        line = write(character, style, generator)
        assert line.strokes
        assert all(np.isfinite(s).all() and len(s) >= 3 for s in line.strokes)
    assert write(" ", style, generator).strokes == ()


def test_synthetic_writing_runs_to_the_right_at_a_human_pace() -> None:
    lines = list(synthetic_lines(60, 1))
    characters = [len(line.text.replace(" ", "")) for line in lines]
    points = [sum(map(len, line.strokes)) for line in lines]
    assert 24 < np.median(np.divide(points, characters)) < 31
    for line, count in zip(lines, characters, strict=True):
        if count >= 8:
            middles = [stroke[:, 0].mean() for stroke in line.strokes]
            assert np.corrcoef(middles, range(len(middles)))[0, 1] > 0.95


def test_the_synthetic_pen_is_slow_at_its_ends_and_in_curves() -> None:
    generator = np.random.default_rng(0)
    style = replace(random_style(generator), font="futural", tremor=0.0, speed=0.5)
    (bar,) = write("|", style, generator).strokes
    speeds = np.hypot(*np.diff(bar, axis=0).T)
    assert max(speeds[0], speeds[-1]) < 0.5 * speeds.max()
    (letter,) = write("c", style, generator).strokes
    curved = np.hypot(*np.diff(letter, axis=0).T)
    assert curved.max() < 0.8 * speeds.max()


def test_show_prints_what_was_read_and_draws_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet = tmp_path / "sheet.png"
    assert main(["pens", str(_UNIPEN), "--plot", str(sheet)]) == 0
    printed = capsys.readouterr().out
    assert "4 lines kept" in printed
    assert "1 marked BAD by its collector: data/7/inv/words.dat#4" in printed
    (row,) = (row.split() for row in printed.splitlines() if row.startswith("inv "))
    assert row == ["inv", "4", "1", "27", "0.6"]
    assert sheet.read_bytes().startswith(b"\x89PNG")


def test_of_data_without_a_line_to_learn_from_is_told_why_and_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("training.ink.prepare.prepare", lambda lines, tally: [])
    assert main(["pens", str(_UNIPEN), "--out", str(tmp_path / "kept.npz")]) == 1
    assert "kept" in capsys.readouterr().out
    assert main(["pens", str(_UNIPEN), "--out", str(tmp_path / "kept")]) == 1
    assert "ends with .npz" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_place_for_lines_is_looked_at_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which takes minutes."""
    monkeypatch.setattr("training.ink.command.show", lambda *_: [])
    assert main(["pens", "synthetic", "--out", str(tmp_path / "no" / "kept.npz")]) == 1
    assert "there is no folder" in capsys.readouterr().err


def test_a_corpus_that_is_one_array_is_refused_in_words(tmp_path: Path) -> None:
    with (tmp_path / "one.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(ValueError, match="no corpus that was saved whole"):
        read_pens(tmp_path / "one.npz", Tally())


def test_a_file_of_another_kind_is_not_said_to_be_missing(tmp_path: Path) -> None:
    """Nor is anybody told to load what may be anything (`allow_pickle`)."""
    for name, told in (
        ("mine.inkml", "is a file; pen data is a folder"),
        ("mine.npz", "no corpus"),
    ):
        (tmp_path / name).write_text("<ink/>")
        with pytest.raises(ValueError, match=told) as refused:
            read_pens(tmp_path / name, Tally())
        assert not isinstance(refused.value, MissingData)
        assert "pickle" not in str(refused.value)


def test_data_is_kept_and_drawn_by_one_command(tmp_path: Path) -> None:
    kept, sheet = tmp_path / "kept.npz", tmp_path / "sheet.png"
    assert main(["pens", str(_UNIPEN), "--out", str(kept), "--plot", str(sheet)]) == 0
    assert len(read_pens(kept, Tally()).inks) == 3  # one is too wide for its text
    assert sheet.read_bytes().startswith(b"\x89PNG")


def test_what_was_read_is_kept_before_it_is_drawn_under_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd, kept = tmp_path / os.fsdecode(b"pens-\xff"), tmp_path / "kept.npz"
    shutil.copytree(_UNIPEN, odd)
    words = ["pens", str(odd), "--out", str(kept), "--plot", str(tmp_path / "sheet.png")]
    assert main(words) == 0
    kept.unlink()

    def fails(*_: object, **__: object) -> None:
        raise ValueError("nothing can be drawn")

    monkeypatch.setattr("training.ink.sheet.plot_sheet", fails)
    assert main(words) == 1
    assert kept.exists()


@pytest.mark.parametrize("path", [".", "data/.."])
def test_pens_have_the_name_of_their_folder_however_it_is_written(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(_UNIPEN)
    assert read_pens(Path(path), tally := Tally()).name == "unipen"
    assert tally.skipped["marked BAD by its collector"] == 1
    assert main(["pens", path, "--out", str(tmp_path / "kept.npz")]) == 0
    assert read_pens(tmp_path / "kept.npz", Tally()).name == "unipen"


@pytest.mark.skipif(
    not _REAL_ARCHIVE.is_file(),
    reason="reads real data: set EVENKEEL_DATA to a folder that has unipen_r01_v07",
)
def test_real_unipen_loads_whole(tmp_path: Path) -> None:
    # One small contributor: all the others take a minute.
    with tarfile.open(_REAL_ARCHIVE) as tar:
        for member in tar:
            name = member.name.removeprefix("./")
            if name.startswith(("data/8/ceb/", "include/ceb/")) and (
                file := tar.extractfile(member)
            ):
                (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / name).write_bytes(file.read())
    tally = Tally()
    lines = list(UnipenFolder(tmp_path).lines("8", tally))
    assert len(lines) == 22
    assert not tally.skipped
    assert len({line.writer for line in lines}) == 4
    for line in lines:
        points = sum(map(len, line.strokes))
        assert 10 < points / len(line.text) < 150


def test_a_file_that_includes_itself_is_counted(tmp_path: Path) -> None:
    for name in ("data/7/aga/a.dat", "include/loop.dat"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(".INCLUDE loop.dat\n")
    tally = Tally()
    assert read_lines(tmp_path, tally) == []
    assert tally.skipped == {"unreadable file (includes include themselves)": 1}
