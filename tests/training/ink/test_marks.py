"""Isolated marks: what is taken of a collection, in which size, and where a row has them."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.training.pens import pen_recipe
from training.config import Place
from training.ink.compose import Rows
from training.ink.corpus import PenCorpus
from training.ink.line import Tally
from training.ink.marks import is_mark, read_marks
from training.ink.prepare import Ink
from training.ink.unipen import UnipenFolder
from training.kinds import KINDS

_UNPLACED = 1.5  # units; more than the unevenness of a height


def _box(label: str, *strokes: list[tuple[int, int]]) -> tuple[str, list[list[tuple[int, int]]]]:
    return label, list(strokes)


def _bar(height: int, x: int = 0) -> list[tuple[int, int]]:
    return [(x + i, 100 + height * i // 10) for i in range(11)]


def _write(folder: Path, category: str, source: str, writer: str, boxes: list) -> None:
    """A file of the format with a segment for every box."""
    lines, number, blocks = [], 0, []
    for label, strokes in boxes:
        lines.append(f'.SEGMENT CHARACTER {number}-{number + len(strokes) - 1} ? "{label}"')
        for stroke in strokes:
            blocks += [".PEN_DOWN", *(f"{x} {y}" for x, y in stroke)]
        number += len(strokes)
    included = f"{source}/{writer}{category}.dat"
    for part, text in {
        f"data/{category}/{source}/{writer}.dat": [f".INCLUDE {included}", *lines],
        f"include/{included}": [f".WRITER_ID {writer}", *blocks],
    }.items():
        path = folder / part
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join([".COORD X Y", *text, ""]))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Ink], Tally]:
    folder = tmp_path_factory.mktemp("unipen")
    figures = [_box(str(n), _bar(40)) for n in range(3)]
    marks = [
        _box("!", _bar(48), _bar(1, 3)),
        _box("!", _bar(40)),
        _box("!", _bar(44)),
        _box("!", _bar(400)),
        _box("\\\\", _bar(40)),
        _box("_", [(4 * i, 100) for i in range(11)]),
        _box("(", _bar(50)),
        _box("'", _bar(12)),
        _box(")", _bar(50), _bar(30, 20)),
        _box(".", _bar(1)),
    ]
    for source, writer in (("syn", "ann"), ("ibm", "bob")):
        _write(folder, "1a", source, writer, figures)
        _write(folder, "1d", source, writer, marks)
    _write(folder, "1d", "tos", "cat", marks)
    tally = Tally()
    return read_marks(UnipenFolder(folder), tally), tally


def _places(ink: Ink) -> np.ndarray:
    return ink.offsets[:, :2].cumsum(0, dtype=np.float64)


def test_marks_are_taken_from_sources_whose_ink_is_whole_and_new(
    found: tuple[list[Ink], Tally],
) -> None:
    inks, tally = found
    assert {ink.writer for ink in inks} == {"syn/ann"}
    assert sorted(ink.text for ink in inks) == ["!", "!", "!", "'", "(", "\\", "_"]
    assert tally.skipped == {
        "a mark too large or too small for what it is": 1,
        "a bracket and what is not of it": 1,
        "a mark that lines have enough of": 2,  # the dots of both writers
        "a mark of a writer without figures": 9,
    }


def test_a_mark_is_as_large_beside_capitals_as_its_writer_makes_it(
    found: tuple[list[Ink], Tally],
) -> None:
    heights = [np.ptp(_places(ink)[:, 1]) for ink in found[0] if ink.text == "!"]
    assert heights == pytest.approx([5.2 * 48 / 40, 5.2, 5.2 * 44 / 40], rel=0.02)


def test_a_mark_stands_where_its_kind_stands(found: tuple[list[Ink], Tally]) -> None:
    middles = {
        ink.text: (_places(ink)[:, 1].max() + _places(ink)[:, 1].min()) / 2 for ink in found[0]
    }
    assert middles["!"] == pytest.approx(2.3, abs=_UNPLACED)
    assert middles["'"] == pytest.approx(4.4, abs=_UNPLACED)
    assert middles["_"] == pytest.approx(-1.2, abs=_UNPLACED)
    assert len(set(middles.values())) == len(middles)  # no two equally high
    for ink in found[0]:
        assert _places(ink)[:, 0].min() == pytest.approx(0, abs=1e-5)
        assert ink.offsets[-1, 2] == 1


def _mark(text: str, writer: str = "anybody") -> Ink:
    return Ink(text, np.array([[0.5, 2, 0], [0, 1, 1]], np.float32), 0.5, writer, "boxes")


def test_a_row_has_marks_of_each_kind_beside_and_between_its_words(pens: PenCorpus) -> None:
    words = [ink for ink in pens.inks if not {"%", "@"} & set(ink.text)]
    marks = [_mark("%")] + [_mark("@") for _ in range(50)]
    rows, generator = Rows(words + marks, 0.3), np.random.default_rng(0)
    texts = [rows.draw(20, generator).text for _ in range(400)]
    often, once = (sum(text.count(mark) for text in texts) for mark in "@%")
    # One that the corpus has once is set as often as one that it has fifty times.
    assert once > 100
    assert 0.8 < once / often < 1.25
    joined = " ".join(texts)
    assert any(text.startswith(("%", "@")) for text in texts)
    assert " % " in joined
    assert "%@" in joined
    assert any(a.isalpha() and b == "%" for a, b in pairwise(joined))
    assert any(a == "%" and b.isalpha() for a, b in pairwise(joined))


def test_ink_of_a_marked_row_says_its_text(pens: PenCorpus) -> None:
    rows, generator = Rows([*pens.inks, _mark("%")], 0.4), np.random.default_rng(1)
    row = next(r for r in iter(lambda: rows.draw(12, generator), None) if r.text[-1] == "%")
    assert _places(row)[-1] == pytest.approx([row.advance, 3], abs=1e-4)
    assert row.writer in {ink.writer for ink in pens.inks}


def test_without_a_share_rows_are_as_if_there_were_no_marks(pens: PenCorpus) -> None:
    marked = Rows([*pens.inks, _mark("%")]), np.random.default_rng(5)
    plain = Rows(pens.inks), np.random.default_rng(5)
    for _ in range(20):
        a, b = (rows.draw(15, generator) for rows, generator in (marked, plain))
        assert (a.text, a.offsets.tobytes()) == (b.text, b.offsets.tobytes())


def test_lines_are_no_marks(pens: PenCorpus) -> None:
    assert not any(map(is_mark, pens.inks))
    assert is_mark(_mark("~"))


@pytest.mark.parametrize(("inks", "told"), [([], None), ([_mark("%")], 0.3)])
def test_the_facts_tell_of_marks_where_there_are_some(
    pens: PenCorpus, tmp_path: Path, inks: list[Ink], told: float | None
) -> None:
    path = tmp_path / "few.npz"
    PenCorpus("few", [*pens.inks[:60], *inks]).save(path)
    recipe = pen_recipe(path)
    recipe = replace(recipe, data=replace(recipe.data, marked=0.3))
    _, facts = KINDS[recipe.kind].task(recipe, str(path), Place())
    assert facts.get("marked") == told
