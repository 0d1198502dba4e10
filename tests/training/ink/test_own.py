"""Lines a pen wrote: rows to learn from as they are, never to validate or to take words from."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.training.pens import Make, pen_recipe, pen_task, reader_task
from training.config import DataConfig, Place
from training.ink.compose import Rows
from training.ink.corpus import PenCorpus, read_pens
from training.ink.line import Tally
from training.ink.prepare import OWN, Ink, is_own
from training.kinds import KINDS

_TEXTS = ("abc", "many words of a pen", "some words in one of its own lines")


@pytest.fixture(scope="module")
def lines(pens: PenCorpus) -> list[Ink]:
    return [replace(pens.inks[0], text=text, writer=OWN, source=OWN) for text in _TEXTS]


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_so_many_rows_are_lines_of_a_pen(pens: PenCorpus, lines: list[Ink], share: float) -> None:
    rows, generator = Rows([*pens.inks, *lines], own=share), np.random.default_rng(0)
    drawn = [rows.draw(15, generator) for _ in range(400)]
    assert sum(map(is_own, drawn)) / 400 == pytest.approx(share, abs=0.06)
    assert all(row.text in _TEXTS for row in drawn if is_own(row))
    assert not any(text in row.text for row in drawn if not is_own(row) for text in _TEXTS)


def test_the_line_is_about_as_long_as_was_wanted(lines: list[Ink], pens: PenCorpus) -> None:
    rows, generator = Rows([*pens.inks, *lines], own=1.0), np.random.default_rng(0)
    for text in _TEXTS:
        for wanted in (len(text) - 4, len(text) + 4):
            drawn = [rows.draw(wanted, generator).text for _ in range(20)]
            assert drawn.count(text) >= 19
    assert {rows.draw(100, generator).text for _ in range(60)} == set(_TEXTS)


def test_rows_without_lines_of_a_pen_are_drawn_as_before(pens: PenCorpus) -> None:
    plain, own = ((Rows(pens.inks, own=share), np.random.default_rng(3)) for share in (0.0, 0.5))
    for wanted in (3, 12, 30):
        a, b = (rows.draw(wanted, generator) for rows, generator in (plain, own))
        assert a.text == b.text
        assert np.array_equal(a.offsets, b.offsets)


def test_nobody_is_validated_on_what_a_pen_wrote(pens: PenCorpus, lines: list[Ink]) -> None:
    corpus = PenCorpus("own", [*pens.inks, *lines])
    for fraction in (0.1, 0.5, 0.9):
        train, validation = corpus.split(fraction)
        assert not any(map(is_own, validation))
        assert sum(map(is_own, train)) == len(lines)
        assert [ink for ink in train if not is_own(ink)] == pens.split(fraction)[0]


def test_of_one_person_beside_a_pen_there_are_lines_on_either_side(
    pens: PenCorpus, lines: list[Ink]
) -> None:
    """Wherever the hash of the name would have all of them."""
    for writer in "abcdefgh":
        corpus = PenCorpus("one", [*(replace(ink, writer=writer) for ink in pens.inks), *lines])
        assert all(not all(map(is_own, part)) for part in corpus.split(0.5))


@pytest.mark.parametrize("make", [pen_task, reader_task])
def test_pens_and_readers_learn_from_it(pens: PenCorpus, lines: list[Ink], make: Make) -> None:
    task = replace(make(PenCorpus("own", [*pens.inks, *lines])), own=1.0)
    longest = max(len(text) for text in _TEXTS)
    drawn = [task._rows.draw(40, np.random.default_rng(n)) for n in range(20)]
    assert all(is_own(row) and len(row.text) <= longest for row in drawn)
    again = replace(task, own=0.0)
    assert not any(is_own(again._rows.draw(40, np.random.default_rng(n))) for n in range(20))


def test_the_facts_tell_of_lines_of_a_pen_where_there_are_some(
    pens: PenCorpus, lines: list[Ink], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for inks, told in (([], None), (lines, 0.5)):
        path = tmp_path / "few.npz"
        PenCorpus("few", [*pens.inks[:60], *inks]).save(path)
        recipe = pen_recipe(path)
        recipe = replace(recipe, data=replace(recipe.data, own=0.5))
        task, facts = KINDS[recipe.kind].task(recipe, str(path), Place())
        assert facts.get("own") == told
        assert task.own == (told or 0.0)
        missed = f"{path} has no lines of a pen; data.own has nothing to set"
        assert (missed in capsys.readouterr().out) == (told is None)


def test_a_share_is_a_share() -> None:
    with pytest.raises(ValueError, match=r"own is 1\.1; it must be from 0 to 1"):
        DataConfig(source="pens", own=1.1)
    with pytest.raises(ValueError, match=r"own is -0\.1"):
        DataConfig(source="pens", own=-0.1)


def test_lines_of_a_saved_corpus_are_counted(pens: PenCorpus, tmp_path: Path) -> None:
    pens.save(tmp_path / "pens.npz")
    tally = Tally()
    read_pens(tmp_path / "pens.npz", tally)
    assert tally.kept == len(pens.inks)
