"""The table of planted defects is true: each can be planted, and the tests it names are there."""

from itertools import groupby
from types import CodeType
from typing import Any

import pytest

from tests.mutations.table import ROOT, Defect, Edit, StaleDefect, read_table

_TABLE = read_table()
_FILES = groupby(sorted(_TABLE, key=lambda d: d.file), key=lambda d: d.file)
_EACH_FILE = pytest.mark.parametrize(
    "defects", [pytest.param(list(defects), id=file) for file, defects in _FILES]
)


def _code(constant: Any) -> Any:
    """A constant of compiled code, which is code itself for each function: of that all but where
    it stands."""
    if not isinstance(constant, CodeType):
        return constant
    inner = tuple(map(_code, constant.co_consts))
    return constant.replace(co_consts=inner, co_firstlineno=1, co_linetable=b"")


def _meaning(file: str, source: str) -> Any:
    """What a file says: of Python that is not how it is laid out."""
    return _code(compile(source, file, "exec")) if file.endswith(".py") else source


@_EACH_FILE
def test_a_defect_can_be_planted_once_and_changes_what_its_file_says(defects: list[Defect]) -> None:
    file = defects[0].file
    source = (ROOT / file).read_text()
    as_it_is = _meaning(file, source)
    for defect in defects:
        assert _meaning(file, defect.planted(source)) != as_it_is, defect.id


@_EACH_FILE
def test_its_tests_exist_and_it_says_what_it_is(defects: list[Defect]) -> None:
    for defect in defects:
        assert defect.tests, defect.id
        for test in defect.tests:
            path, _, name = test.partition("::")
            assert not name or f"def {name}(" in (ROOT / path).read_text(), (defect.id, test)
            assert (ROOT / path).is_file(), (defect.id, test)
        assert defect.what, defect.id
        assert not defect.what.endswith("."), defect.id


def test_no_two_defects_have_one_name_or_one_text() -> None:
    assert len({defect.id for defect in _TABLE}) == len(_TABLE)
    assert len({(defect.file, defect.edits) for defect in _TABLE}) == len(_TABLE)


@pytest.mark.parametrize("source", ["x = 2\n", "x = 1\nx = 1\n"])
def test_a_defect_whose_place_has_moved_is_refused(source: str) -> None:
    stale = Defect(
        id="it", what="one", file="a.py", edits=(Edit("x = 1\n", "x = 3\n"),), tests=("t",)
    )
    with pytest.raises(StaleDefect, match=r"it: a\.py has"):
        stale.planted(source)


def test_layout_and_comments_are_no_defects() -> None:
    source = "def one(x):\n    return {1: x}[1]\n"
    laid_out = f"# One.\n\n{source}".replace(": x", ":  x")
    assert _meaning("a.py", source) == _meaning("a.py", laid_out)
    for other in (source.replace("1:", "1.0:"), source.replace("x)", "x=1)"), f"{source}y = one"):
        assert _meaning("a.py", source) != _meaning("a.py", other)
