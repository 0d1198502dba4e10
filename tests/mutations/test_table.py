"""The table of planted defects is true: each can be planted, and the tests it names are there."""

import ast

import pytest

from tests.mutations.table import ROOT, Defect, Edit, StaleDefect, read_table

_TABLE = read_table()
_EACH = pytest.mark.parametrize("defect", _TABLE, ids=lambda defect: defect.id)


@_EACH
def test_a_defect_can_be_planted_once_and_is_python(defect: Defect) -> None:
    source = (ROOT / defect.file).read_text()
    planted = defect.planted(source)
    assert ast.dump(ast.parse(planted)) != ast.dump(ast.parse(source))


@_EACH
def test_its_tests_exist_and_it_says_what_it_is(defect: Defect) -> None:
    assert defect.tests
    for test in defect.tests:
        path, _, name = test.partition("::")
        assert not name or f"def {name}(" in (ROOT / path).read_text()
        assert (ROOT / path).is_file()
    assert defect.what
    assert not defect.what.endswith(".")


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
