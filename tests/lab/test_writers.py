"""Hands of a corpus: one for each fitting line of a writer, in the order of how they are read."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from lab.legibility import pages
from lab.legibility.write_ink import Pen
from lab.reading import writers
from training.ink.corpus import PenCorpus, read_pens
from training.ink.line import Tally
from training.ink.prepare import Ink

_SHIPPED = Path(__file__).parents[2] / "artifacts" / "handwriting"


@pytest.fixture(scope="module")
def corpus(made_once: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One writer of three fitting lines, one of one, and one of none."""
    inks = read_pens(made_once("pens") / "invented.npz", Tally()).inks
    fit = [i for i in inks if len(i.text) in range(24, 45) and i.text.count(" ") > 1]
    fit = [i for i in fit if sum(c.islower() for c in i.text) > 0.7 * len(i.text)][:4]
    short = next(i for i in inks if len(i.text) < 12)
    owners = ["w/ann", "w/ann", "w/ann", "w/bob", "w/cat"]
    mine = [
        Ink(i.text, i.offsets, i.advance, writer, i.source)
        for i, writer in zip([*fit, short], owners, strict=True)
    ]
    path = tmp_path_factory.mktemp("pens") / "pens.npz"
    PenCorpus("few", mine).save(path)
    return path


class _Telling:
    """A pen whose hand is what was told of it."""

    def fresh(self) -> str:
        return "fresh"

    def hand_after(self, hand: str, text: str, ink: np.ndarray) -> tuple[str, str, int]:
        return hand, text, len(ink)


def test_a_hand_is_that_after_the_line_it_is_told_with(corpus: Path) -> None:
    people = read_pens(corpus, Tally())
    points = {ink.text: len(ink.offsets) for ink in people.inks}
    for one in writers.candidates(cast(Pen, _Telling()), people):
        assert one.hand == ("fresh", one.text, points[one.text])


def test_writers_come_in_the_order_of_their_names(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A set has another one in every process, and who is drawn with which noise hangs on it."""
    one = read_pens(corpus, Tally()).inks[0]
    names = [f"writer {n}" for n in range(9, 0, -1)]
    monkeypatch.setattr(writers, "fitting_lines", lambda *_: [one])
    many = PenCorpus("many", [replace(one, writer=name) for name in names])
    found = writers.candidates(cast(Pen, _Telling()), many)
    assert [candidate.writer for candidate in found] == sorted(names)


def test_the_writers_are_told_by_how_their_hands_are_read(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = pages.TEXTS[:5]

    def read(inks: Sequence[np.ndarray]) -> list[str]:
        # Nothing of the first hand, half of the second, all of the third.
        assert len(inks) == 3 * len(texts)
        assert all(len(ink) > 40 for ink in inks)
        parts = [0.0] * 5 + [0.5] * 5 + [1.0] * 5
        return [t[: round(p * len(t))] for t, p in zip([*texts] * 3, parts, strict=True)]

    monkeypatch.setattr(writers, "readers_of", lambda _: {"reader": read})
    parser = argparse.ArgumentParser()
    writers.add_options(parser)
    assert writers.run(parser.parse_args([str(_SHIPPED), "--pens", str(corpus)])) == 0
    rows = [line.split()[:3] for line in capsys.readouterr().out.splitlines()]
    assert [row[1:] for row in rows] == [["w/bob", "0"], ["w/ann", "1"], ["w/ann", "0"]]
    assert [float(row[0]) for row in rows] == pytest.approx([0.0, 0.5, 1.0], abs=0.03)
