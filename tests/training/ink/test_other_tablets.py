"""Pen data as it comes: other encodings, other orders, files that are damaged or gone."""

import io
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from training.ink.iam import IamFolder
from training.ink.line import Line, Tally
from training.ink.sources import read_lines

_TABLET = ".COORD Y X\n.WRITER_ID jo \xe9 {}\nand more of jo\n.X_POINTS_PER_MM 1\n"
_POINTS = ".PEN_DOWN 7\n1 2\n3 4\n"
_XML = "<a><Stroke><Point x='1' y='2'/><Point x='3' y='4'/></Stroke></a>"


def _unipen(
    folder: Path, files: dict[str, str], packed: bool, skipped: Sequence[str] = ()
) -> list[Line]:
    """The lines of a distribution but for the files that are skipped, each for a reason of its own;
    all are in an archive in the order that they have here."""
    contents = {name: text.encode("latin-1") for name, text in files.items()}
    if packed:
        with tarfile.open(folder / "unipen_a.tar", "w") as tar:
            for name, content in contents.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    for name, content in contents.items() if not packed else ():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    lines = read_lines(folder, tally := Tally())
    assert list(tally.examples.values()) == [[name] for name in skipped]
    return lines


@pytest.mark.parametrize("packed", [False, True])
def test_what_one_included_file_says_of_the_tablet_holds_for_the_next(
    tmp_path: Path, packed: bool
) -> None:
    segment = '.INCLUDE inv/{0}.dat\n.INCLUDE inv/ink.dat\n.SEGMENT WORD 0 OK "{0}"\n'
    files = {f"data/7/inv/{name}.dat": segment.format(name) for name in ("b", "a")}
    files |= {f"include/inv/{name}.dat": _TABLET.format(name) for name in ("b", "a")}
    lines = _unipen(tmp_path, files | {"include/inv/ink.dat": _POINTS}, packed)
    # In the order of their names, and each of a writer of its own.
    assert [(line.text, line.writer) for line in lines] == [
        ("a", "inv/jo \xe9 a"),
        ("b", "inv/jo \xe9 b"),
    ]
    assert [line.strokes[0].tolist() for line in lines] == [[[2, 1], [4, 3]]] * 2


def test_what_is_escaped_in_a_label_is_what_was_written(tmp_path: Path) -> None:
    files = {
        "data/7/inv/a.dat": '.INCLUDE a.dat\n.SEGMENT WORD 0 OK "a\\"b\\\\c\\@d\\e"\n',
        "include/a.dat": _POINTS,
    }
    (line,) = _unipen(tmp_path, files, False)
    assert line.text == 'a"b\\cd\\e'


def test_a_line_is_of_the_writer_and_the_tablet_of_its_own_ink(tmp_path: Path) -> None:
    """One file may have several; who is not named is who the file is named after."""
    segments = '.SEGMENT WORD 0 OK "a"\n.SEGMENT WORD 1 OK "b"\n'
    files = {
        "data/7/inv/box/two.dat": f".INCLUDE inch.dat\n.INCLUDE mm.dat\n{segments}",
        "include/inch.dat": f".X_POINTS_PER_INCH 2\n.Y_POINTS_PER_INCH 4\n{_POINTS}",
        "include/mm.dat": f".WRITER_ID di\n.X_POINTS_PER_MM 3\n.Y_POINTS_PER_MM 3\n{_POINTS}",
    }
    lines = _unipen(tmp_path, files, False)
    assert [(line.writer, line.source) for line in lines] == [("inv/two", "inv"), ("inv/di", "inv")]
    assert [line.strokes[0].tolist() for line in lines] == [[[2, 2], [6, 4]], [[1, 2], [3, 4]]]


def test_includes_nest_to_eight_below_the_first(tmp_path: Path) -> None:
    files = {"data/7/inv/a.dat": '.INCLUDE 0.dat\n.SEGMENT WORD 0 OK "a"\n'}
    files |= {f"include/{n}.dat": f".INCLUDE {n + 1}.dat\n" for n in range(8)}
    assert len(_unipen(tmp_path, files | {"include/8.dat": _POINTS}, False)) == 1


@pytest.mark.parametrize(
    ("name", "tablet"), [("a", ".COORD\n"), ("a", ".X_POINTS_PER_MM 0\n"), ("a" * 300, "")]
)
def test_a_tablet_without_a_point_or_a_name_that_no_file_has_is_counted_and_the_rest_loads(
    tmp_path: Path, name: str, tablet: str
) -> None:
    segment = '.SEGMENT WORD 0 OK "b"\n'
    files = {
        "data/7/inv/a.dat": f".INCLUDE {name}.dat\n{segment}",
        "data/7/inv/b.dat": f".INCLUDE b.dat\n{segment}",
        "include/a.dat": tablet + _POINTS,
        "include/b.dat": _POINTS,
    }
    (line,) = _unipen(tmp_path, files, False, ["data/7/inv/a.dat"])
    assert line.writer == "inv/b"


def _iam(folder: Path, text: bytes, lines: dict[str, str], original: bytes = b"") -> None:
    for name, xml in lines.items():
        file = folder / "lineStrokes" / "z01" / f"z01-000a-{name}.xml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(xml)
    (folder / "ascii").mkdir()
    (folder / "ascii" / "z01-000a.txt").write_bytes(text)
    (folder / "original" / "z01-000").mkdir(parents=True)
    (folder / "original" / "z01-000" / "strokesa.xml").write_bytes(original)


def test_each_line_has_its_own_text_or_none(tmp_path: Path) -> None:
    _iam(
        tmp_path,
        b"OCR:\nread\nCSR:\nna\xefve\n\na word ### out\nthird\n",
        dict.fromkeys(("00", "01", "02", "03", "04", "x", "\xb2"), _XML),
    )
    lines = read_lines(tmp_path, tally := Tally())
    assert [line.text for line in lines] == ["na\ufffdve", "third"]
    assert tally.examples == {
        "a word crossed out": ["z01-000a-02.xml"],
        "no text for the line": [f"z01-000a-{n}.xml" for n in ("00", "04", "x", "\xb2")],
    }


@pytest.mark.parametrize("encoding", ["nonsense", "shift_jis", "utf-16"])
def test_a_line_in_an_encoding_that_cannot_be_read_is_counted(
    tmp_path: Path, encoding: str
) -> None:
    _iam(tmp_path, b"CSR:\na\n", {"01": f"<?xml version='1.0' encoding='{encoding}'?>{_XML}"})
    assert read_lines(tmp_path, tally := Tally()) == []
    assert tally.examples == {"malformed XML": ["z01-000a-01.xml"]}


@pytest.mark.parametrize("point", ["x='a' y='2'", "y='2'"])
def test_a_point_that_is_nowhere_leaves_its_line_out(tmp_path: Path, point: str) -> None:
    xml = _XML.replace("x='3' y='4'", point)
    _iam(tmp_path, b"CSR:\na\nb\n", {"01": xml, "02": _XML})
    lines = read_lines(tmp_path, tally := Tally())
    assert [line.text for line in lines] == ["b"]
    assert tally.examples == {"malformed points": ["z01-000a-01.xml"]}


@pytest.mark.parametrize(
    ("original", "writer"),
    [
        (b"<a><b writerID='7'/>", "7"),  # which is cut after its head
        (b"<a><b/>", "z01-000a"),
        (b"<?xml version='1.0' encoding='nonsense'?><a><b writerID='7'/></a>", "z01-000a"),
        (b"<?xml version='1.0' encoding='shift_jis'?><a><b writerID='7'/></a>", "z01-000a"),
        (b"<a><b/></a>", "z01-000a"),
    ],
)
def test_where_the_writer_is_not_named_a_form_is_its_own(
    tmp_path: Path, original: bytes, writer: str
) -> None:
    _iam(tmp_path, b"CSR:\na\n", {"01": _XML}, original)
    (line,) = read_lines(tmp_path, Tally())
    assert line.writer == f"iam/{writer}"


def test_a_file_that_is_gone_when_it_is_read_is_counted(tmp_path: Path) -> None:
    _iam(tmp_path, b"CSR:\na\nb\n", {"01": _XML, "02": _XML})
    folder, tally = IamFolder(tmp_path), Tally()
    (tmp_path / "lineStrokes" / "z01" / "z01-000a-01.xml").unlink()
    assert [line.text for line in folder.lines(tally)] == ["b"]
    assert tally.examples == {"unreadable file": ["z01-000a-01.xml"]}
