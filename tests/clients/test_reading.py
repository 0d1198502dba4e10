"""`evenkeel read` against a real service: ink from files and pipes, and what it makes of others."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from clients.files import found, inks
from tests.clients.commands import evenkeel

_INK = [[[0, 0], [9, 30], [20, 2]], [[30, 0], [31, 30]]]
_OTHER = [[[0, 0], [40, 0], [40, 40], [0, 40]]]
_INKML = (
    '<?xml version="1.0"?>\n<ink><trace>0 0, 9 30, 20 2</trace><trace>30 0, 31 30</trace></ink>'
)


def _read(url: str, **asked: Any) -> str:
    """What the service itself makes of a line."""
    answer = httpx.post(f"{url}/v1/read", json={"model": "squint"} | asked)
    answer.raise_for_status()
    return str(answer.json()["text"])


@pytest.mark.parametrize(
    "ink",
    [_INKML, f"\ufeff{_INKML}", json.dumps(_INK), json.dumps({"text": "a", "strokes": _INK})],
    ids=["InkML", "a mark of order before it", "strokes", "strokes and their text"],
)
def test_a_line_is_read(url: str, ink: str, tmp_path: Path) -> None:
    (tmp_path / "ink").write_text(ink)
    from_a_file = evenkeel(url, "read", str(tmp_path / "ink"))
    assert from_a_file.stdout == f"{_read(url, strokes=_INK)}\n", from_a_file.output
    assert evenkeel(url, "read", given=ink).stdout == from_a_file.stdout
    assert evenkeel(url, "read", "-", given=ink).stdout == from_a_file.stdout


@pytest.mark.parametrize("encoding", ["UTF-16", "iso-8859-1", "shift_jis"])
def test_ink_is_read_in_the_encoding_that_it_has(url: str, encoding: str, tmp_path: Path) -> None:
    """Which XML tells in its first line, and UTF-16 by the mark of order before it."""
    said = _INKML.replace('1.0"', f"1.0\" encoding='{encoding}'").replace(
        "<ink>", "<ink><!-- ¶ -->"
    )
    (tmp_path / "ink").write_bytes(said.encode(encoding))
    from_a_file = evenkeel(url, "read", str(tmp_path / "ink"))
    assert from_a_file.stdout == f"{_read(url, strokes=_INK)}\n", from_a_file.output
    assert evenkeel(url, "read", given=said.encode(encoding)).stdout == from_a_file.stdout


@pytest.mark.parametrize("order", ["le", "be"])
def test_ink_in_utf_16_is_known_by_its_mark_alone(order: str, tmp_path: Path) -> None:
    (tmp_path / "ink").write_bytes(f"\ufeff{_INKML}".encode(f"utf-16-{order}"))
    assert found(tmp_path / "ink") == _INKML


@pytest.mark.parametrize("told", ["utf-16", "UTF-16LE", "utf-32", "cp037"])
def test_ink_that_says_what_it_cannot_be_in_is_read_as_utf_8(told: str, tmp_path: Path) -> None:
    """.NET says UTF-16 of all that it makes a string of, whatever the file is in."""
    said = _INKML.replace('1.0"', f'1.0" encoding="{told}"')
    for spaces in range(4):
        (tmp_path / "ink").write_text(said + " " * spaces)
        assert inks(found(tmp_path / "ink"), ruled=False) == [{"inkml": said + " " * spaces}]


def test_lines_of_a_page_are_read_each_by_itself(url: str) -> None:
    page = {"seed": 1, "lines": [{"text": t, "strokes": s} for t, s in
                                 (("a", _INK), ("", []), ("b", _OTHER))]}  # fmt: skip
    lines = evenkeel(url, "read", given=json.dumps(page)).stdout.splitlines()
    assert lines == [_read(url, strokes=_INK), "", _read(url, strokes=_OTHER)]
    assert lines[0] != lines[2]


def test_a_line_that_is_a_point_keeps_nobody_from_the_others(url: str) -> None:
    """As a full stop may be: it has no size to be read by, unless its ruled line is known."""
    page = json.dumps({"lines": [{"strokes": some} for some in ([[[3, 4]], [[3, 4]]], _INK)]})
    read = evenkeel(url, "read", given=page)
    assert read.stdout.splitlines() == ["", _read(url, strokes=_INK)], read.output
    ruled = evenkeel(url, "read", "--line-height", "20", "--json", given=page).stdout.splitlines()
    assert json.loads(ruled[0])["usage"]["pieces"] == 2


@pytest.mark.parametrize("end", [[3, 9], [9, 0]], ids=["a bar", "a dash"])
def test_a_line_that_runs_one_way_alone_is_no_point(end: list[int]) -> None:
    lines = [{"strokes": [[[3, 0], end]]}]
    assert inks(json.dumps({"lines": lines}), ruled=False) == lines


def test_the_page_that_was_written_is_read(url: str, tmp_path: Path) -> None:
    page = str(tmp_path / "page.json")
    assert evenkeel(url, "write", "one two three", "--width", "300", "-o", page).exit_code == 0
    written = json.loads(Path(page).read_text("utf-8"))["lines"]
    assert len(written) > 1
    read = evenkeel(url, "read", page, "--json").stdout.splitlines()
    texts = [json.loads(line)["text"] for line in read]
    assert texts == [_read(url, strokes=line["strokes"]) for line in written]


def test_the_ruled_line_and_the_model_are_as_they_were_asked_for(url: str) -> None:
    words = ("read", "--line-height", "20", "-m")
    result = evenkeel(url, *words, "squint", given=json.dumps(_INK))
    assert result.stdout == f"{_read(url, strokes=_INK, line_height=20)}\n"
    result = evenkeel(url, *words, "letters", given=json.dumps(_INK))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "letters" in result.stderr


@pytest.mark.parametrize(
    ("ink", "told"),
    [
        ("", "no JSON"), ("[[[0, NaN]]]", "NaN"), ("{}", "no strokes"), ("5", "no strokes"),
        ('{"lines": [[]]}', "no strokes"), ('{"lines": 5}', "no strokes"), (b"\xff", "no UTF-8"),
        (b"\xff\xfe<", "no UTF-8"), ("<?xml encoding='hex'?>\xb6".encode("latin-1"), "no UTF-8"),
    ],
)  # fmt: skip
def test_what_is_no_ink_is_told_before_anybody_is_asked(ink: str | bytes, told: str) -> None:
    result = evenkeel("http://127.0.0.1:9", "read", given=ink)
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in result.stderr


@pytest.mark.parametrize("name", ["gone", "."])
def test_a_file_that_cannot_be_read_is_named(name: str, tmp_path: Path) -> None:
    result = evenkeel("http://127.0.0.1:9", "read", str(tmp_path / name))
    assert result.exit_code == 2
    assert "[Errno" in result.stderr
