"""Isolated characters: what is taken of a collection, in which size, and where a row has them."""

import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from contract.alphabets import encode
from tests.training.pens import pen_recipe, pen_task
from training.config import DataConfig, Place
from training.ink.compose import Rows
from training.ink.corpus import PenBatch, PenCorpus
from training.ink.isolated import is_figure, is_mark, read_isolated
from training.ink.line import Tally
from training.ink.prepare import Ink
from training.ink.sources import read_inks
from training.ink.unipen import UnipenFolder
from training.kinds import KINDS

_UNPLACED = 1.5  # units; more than the unevenness of a height


def _box(label: str, *strokes: list[tuple[int, int]]) -> tuple[str, list[list[tuple[int, int]]]]:
    return label, list(strokes)


def _bar(height: int, x: int = 0) -> list[tuple[int, int]]:
    return [(x + i, 100 + height * i // 10) for i in range(11)]


def _write(folder: Path, category: str, source: str, writer: str, boxes: list) -> None:
    """A file of the format with a segment for every box; no stroke at all is a pen in the air."""
    lines, number, blocks = [], 0, []
    for label, strokes in boxes:
        lines.append(f'.SEGMENT CHARACTER {number}-{number + len(strokes) - 1} ? "{label}"')
        for stroke in strokes:
            down, points = (".PEN_DOWN", stroke) if stroke else (".PEN_UP", [(0, 100)])
            blocks += [down, *(f"{x} {y}" for x, y in points)]
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
def folder(tmp_path_factory: pytest.TempPathFactory) -> UnipenFolder:
    folder = tmp_path_factory.mktemp("unipen")
    figures = [_box(str(n), _bar(40)) for n in range(3)]
    marks = [
        _box("!", _bar(48), _bar(1, 3)),
        _box("!", _bar(40)),
        _box("!", _bar(44)),
        _box("!", _bar(400)),
        _box("!", _bar(16)),
        _box("\\\\", _bar(40)),
        _box("_", [(4 * i, 100) for i in range(11)]),
        _box("(", _bar(50)[::-1], _bar(30, 5)[::-1]),
        _box("'", _bar(12)),
        _box(")", _bar(45)),
        _box(")", _bar(50), _bar(30, 20)),
        _box("|", _bar(50)),
        _box("|", _bar(20), _bar(20, 1)),
        _box(".", _bar(1)),
        _box("", _bar(40)),
    ]
    for source, writer in (("syn", "ann"), ("ibm", "bob-syn")):
        _write(folder, "1a", source, writer, figures)
        _write(folder, "1d", source, writer, marks)
        _write(folder, "1b", source, writer, [_box("E", _bar(36), _bar(36, 8)), _box("W", _bar(4))])
        _write(folder, "1c", source, writer, [_box("z", _bar(20)), _box("a", _bar(20))])
    _write(folder, "1d", "tos", "cat", marks)
    return UnipenFolder(folder)


@pytest.fixture(scope="module")
def found(folder: UnipenFolder) -> tuple[list[Ink], Tally]:
    tally = Tally()
    return read_isolated(folder, tally), tally


def _places(ink: Ink) -> np.ndarray:
    return ink.offsets[:, :2].cumsum(0, dtype=np.float64)


def test_marks_are_taken_from_sources_whose_ink_is_whole_and_new(
    found: tuple[list[Ink], Tally],
) -> None:
    inks, tally = found
    assert {ink.writer for ink in inks} == {"syn/ann"}
    assert sorted(ink.text for ink in inks) == ["!", "!", "!", "'", "(", ")", "\\", "_", "|"]
    assert tally.skipped == {
        "a character too large or too small for what it is": 2,
        "a bracket and what is not of it": 1,
        "a bar that is broken": 1,
        "a character that lines have enough of": 4,  # a dot and nothing, of both writers
        "a mark of a writer without figures": 13,
    }


def test_a_mark_is_as_large_beside_capitals_as_its_writer_makes_it(
    found: tuple[list[Ink], Tally],
) -> None:
    heights = [np.ptp(_places(ink)[:, 1]) for ink in found[0] if ink.text == "!"]
    assert heights == pytest.approx([5.2 * 48 / 40, 5.2, 5.2 * 44 / 40], rel=0.02)


def test_a_mark_is_as_large_as_others_of_its_kind_whatever_the_tablet(tmp_path: Path) -> None:
    for writer, fine in (("ann", 1), ("bob", 30)):
        _write(tmp_path, "1a", "syn", writer, [_box("1", _bar(40 * fine))])
        _write(
            tmp_path, "1d", "syn", writer, [_box("!", _bar(44 * fine)), _box("#", _bar(30 * fine))]
        )
    inks = read_isolated(UnipenFolder(tmp_path), tally := Tally())
    assert (len(inks), tally.kept, tally.skipped) == (4, 4, {})
    one, other = ([np.ptp(_places(ink)[:, 1]) for ink in inks if ink.text == c] for c in "!#")
    assert one + other == pytest.approx([5.2 * 44 / 40] * 2 + [5.2 * 30 / 40] * 2, rel=0.02)


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
        assert _places(ink)[:, 0].max() == pytest.approx(ink.advance, abs=1e-5)
        assert ink.offsets[-1, 2] == 1


def test_figures_and_rare_letters_stand_on_the_line_where_they_are_wanted(
    folder: UnipenFolder, found: tuple[list[Ink], Tally]
) -> None:
    inks = read_isolated(folder, Tally(), figures=True)
    marks, figures = inks[: len(found[0])], inks[len(found[0]) :]
    assert [i.offsets.tobytes() for i in marks] == [i.offsets.tobytes() for i in found[0]]
    assert [ink.text for ink in figures] == ["0", "1", "2", "E", "W", "z"]  # words have enough of a
    assert all(map(is_figure, figures))
    assert not any(map(is_mark, figures))
    heights = {ink.text: np.ptp(_places(ink)[:, 1]) for ink in figures}
    assert [heights[c] / heights["0"] for c in "Ez"] == pytest.approx([0.9, 0.5], rel=0.02)
    for ink in figures:
        assert _places(ink)[:, 1].min() == pytest.approx(0, abs=0.8)
        assert ink.writer == "syn/ann"


def test_labels_without_ink_are_passed_over(tmp_path: Path) -> None:
    figures = [_box("0", []), _box("1", _bar(40)), _box("2", _bar(40))]
    _write(tmp_path, "1a", "syn", "ann", figures)
    _write(tmp_path, "1d", "syn", "ann", [_box("!", []), _box("!", _bar(40))])
    tally = Tally()
    assert [ink.text for ink in read_isolated(UnipenFolder(tmp_path), tally)] == ["!"]
    assert tally.skipped == {"no ink": 1}


_DOT = [(5, 100)]
_SPECK = [(5.0, 1e-8 * i) for i in range(11)]
_JUMP = [(5.0, 1e39), (5.0, 1.0)]


@pytest.mark.parametrize(
    ("marks", "figures", "texts"),
    [(False, False, ""), (True, False, "%"), (False, True, "%012"), (True, True, "%012")],
)
def test_isolated_characters_are_read_where_any_of_them_are_wanted(
    tmp_path: Path, marks: bool, figures: bool, texts: str
) -> None:
    _write(tmp_path, "1a", "syn", "ann", [_box(str(n), _bar(40)) for n in range(3)])
    _write(tmp_path, "1d", "syn", "ann", [_box("%", _bar(30))])
    inks = read_inks(tmp_path, tally := Tally(), marks, figures)
    assert "".join(ink.text for ink in inks) == texts
    assert tally.kept == len(texts)


def test_data_without_isolated_characters_is_read_as_if_none_were_wanted() -> None:
    tallies = [Tally() for _ in range(3)]
    for tally, wanted in zip(tallies, ((False, False), (True, False), (False, True)), strict=True):
        read_inks(Path(__file__).parent / "fixtures" / "iam", tally, *wanted)
    assert tallies == tallies[:1] * 3
    assert "no strokes" in tallies[0].skipped


@pytest.mark.parametrize(
    ("marked", "figured", "lines"), [(0.0, 0.0, 3), (0.1, 0.0, 4), (0.0, 0.1, 7)]
)
def test_what_is_read_is_what_a_recipe_sets_and_the_first_process_tells_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], marked: float, figured: float, lines: int
) -> None:
    shutil.copytree(Path(__file__).parent / "fixtures" / "unipen", tmp_path, dirs_exist_ok=True)
    _write(tmp_path, "1a", "syn", "ann", [_box(str(n), _bar(40)) for n in range(3)])
    _write(tmp_path, "1d", "syn", "ann", [_box("%", _bar(30))])
    recipe = pen_recipe(tmp_path)
    recipe = replace(recipe, data=replace(recipe.data, marked=marked, figured=figured))
    for rank in range(2):
        place = Place(rank=rank, world=2)
        _, facts = KINDS[recipe.kind].task(recipe, str(tmp_path), place)
        assert facts["lines"] == lines
        told = capsys.readouterr().out
        assert (f"{lines} lines kept\n" in told, "marked BAD by" in told) == (rank == 0,) * 2


def test_capitals_say_how_large_a_writer_is_where_there_are_no_figures(tmp_path: Path) -> None:
    _write(tmp_path, "1b", "syn", "ann", [_box("E", _bar(40))])
    _write(tmp_path, "1d", "syn", "ann", [_box("!", _bar(40))])
    assert [ink.text for ink in read_isolated(UnipenFolder(tmp_path), Tally())] == ["!"]


@pytest.mark.parametrize(
    ("figures", "marks", "kept"),
    [
        ([_DOT], [_bar(40)], 0),
        ([_SPECK], [_bar(40)], 0),
        ([_JUMP], [_bar(40)], 0),
        ([_bar(40), _DOT, _DOT], [_bar(40)], 0),
        ([_bar(40)], [_bar(40), _SPECK], 1),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_a_writer_of_dots_for_figures_and_a_speck_for_a_mark_are_left_out(
    tmp_path: Path, figures: list, marks: list, kept: int
) -> None:
    _write(tmp_path, "1a", "syn", "ann", [_box("1", stroke) for stroke in figures])
    _write(tmp_path, "1d", "syn", "ann", [_box("!", stroke) for stroke in marks])
    inks = read_isolated(UnipenFolder(tmp_path), Tally())
    assert [ink.text for ink in inks] == ["!"] * kept


def _mark(text: str, writer: str = "anybody") -> Ink:
    return Ink(
        text, np.array([[0.5, 2, 0], [0, 1, 1]], np.float32), 0.5, writer, "boxes", isolated=True
    )


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


def test_a_row_has_figures_before_words_and_beside_each_other_never_at_a_words_end(
    pens: PenCorpus,
) -> None:
    words = [ink for ink in pens.inks if ink.text.isalpha()]
    figures = [_mark("7")] + [_mark("4") for _ in range(50)]
    rows = Rows([*words, *figures, _mark("%")], 0.2, 0.3)
    generator = np.random.default_rng(0)
    texts = [rows.draw(20, generator).text for _ in range(400)]
    assert 0.8 < sum(t.count("7") for t in texts) / sum(t.count("4") for t in texts) < 1.25
    figured, marked = (sum(t.count(c) for t in texts for c in cs) for cs in ("47", "%"))
    assert 1.2 < figured / marked < 1.8
    joined = list(pairwise("  ".join(texts)))
    for a, b in ("74", "%7", "7%", " 7", "7 "):
        assert (a, b) in joined
    assert any(a in "47" and b.isalpha() for a, b in joined)
    assert not any(a.isalpha() and b in "47" for a, b in joined)


def test_without_marks_figures_have_their_share(pens: PenCorpus) -> None:
    rows, generator = Rows([*pens.inks, _mark("7")], 0.0, 0.3), np.random.default_rng(0)
    texts = [rows.draw(20, generator).text for _ in range(50)]
    assert sum(text.count("7") for text in texts) > 25


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


def test_what_is_validated_has_its_marks_too(pens: PenCorpus) -> None:
    plain = pen_task(PenCorpus("marked", [*pens.inks, _mark("%")]))
    inks = [*pens.inks[:40], _mark("%")]
    marked = replace(plain, validation_inks=inks, marked=0.4)
    symbol = encode("%")[0]
    counts = [
        sum((PenBatch(*batch).symbols == symbol).sum().item() for batch in task._validation)
        for task in (replace(marked, marked=0.0), marked)
    ]
    assert counts[1] > counts[0] + 100


def test_lines_are_no_marks(pens: PenCorpus) -> None:
    assert not any(map(is_mark, pens.inks))
    assert not any(map(is_figure, [*pens.inks, replace(_mark("I"), isolated=False)]))
    assert is_mark(_mark("~"))


@pytest.mark.parametrize(
    ("inks", "told"),
    [
        ([], {}),
        ([_mark("%")], {"marked": 0.3}),
        ([_mark("%"), _mark("7")], {"marked": 0.3, "figured": 0.2}),
    ],
)
def test_the_facts_tell_of_isolated_characters_where_there_are_some(
    pens: PenCorpus, tmp_path: Path, inks: list[Ink], told: dict[str, float]
) -> None:
    path = tmp_path / "few.npz"
    PenCorpus("few", [*pens.inks[:60], *inks]).save(path)
    recipe = pen_recipe(path)
    recipe = replace(recipe, data=replace(recipe.data, marked=0.3, figured=0.2))
    task, facts = KINDS[recipe.kind].task(recipe, str(path), Place())
    assert {name: facts[name] for name in ("marked", "figured") if name in facts} == told
    assert task.growing
    recipe = replace(recipe, batch=replace(recipe.batch, growing=False))
    assert not KINDS[recipe.kind].task(recipe, str(path), Place())[0].growing
    assert (task.marked, task.figured) == (told.get("marked", 0), told.get("figured", 0))


def test_the_facts_tell_how_much_rows_are_varied(pens: PenCorpus, tmp_path: Path) -> None:
    path = tmp_path / "few.npz"
    PenCorpus("few", pens.inks[:60]).save(path)
    recipe = pen_recipe(path)
    recipe = replace(recipe, data=replace(recipe.data, varied=0.1))
    task, facts = KINDS[recipe.kind].task(recipe, str(path), Place())
    assert facts["varied"] == task.varied == 0.1


def test_shares_together_leave_room_for_words() -> None:
    with pytest.raises(ValueError, match=r"marked is 0\.6 and figured 0\.4"):
        DataConfig(source="pens", marked=0.6, figured=0.4)
    with pytest.raises(ValueError, match=r"figured -0\.1"):
        DataConfig(source="pens", figured=-0.1)
    with pytest.raises(ValueError, match=r"reordered is 1\.1; it must be from 0 to 1"):
        DataConfig(source="pens", reordered=1.1)
    with pytest.raises(ValueError, match=r"varied is 0\.5"):
        DataConfig(source="pens", varied=0.5)
