"""What a pen wrote and a reader reads right, as a corpus to learn from."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from contract.alphabets import LONGEST_TEXT
from lab.__main__ import main
from lab.legibility.reading import in_units
from lab.legibility.write_ink import Hand, Pen, Written
from lab.reading import own
from training.ink.corpus import PenCorpus, read_pens
from training.ink.line import Tally
from training.ink.prepare import LONGEST_INK, OWN, Ink, is_own

_SHIPPED = Path(__file__).parents[2] / "artifacts" / "handwriting"


@pytest.fixture(scope="module")
def people(made_once: Callable[[str], Path]) -> list[Ink]:
    return read_pens(made_once("pens") / "invented.npz", Tally()).inks


@pytest.fixture(scope="module")
def shipped() -> Pen:
    return Pen(_SHIPPED)


@pytest.fixture
def _no_hands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's hand is read, which takes longer than all else here."""
    monkeypatch.setattr(own, "hands_of", lambda *_: [])


class _Drawn:
    """A pen that hands out what it is told to have drawn, and notes what it was asked for."""

    def __init__(self, *rounds: list[Written]) -> None:
        self.rounds, self.asked = list(rounds), list[tuple[list[str], int]]()

    def write(
        self, texts: Sequence[str], bias: float, seed: int, hands: Sequence[Hand]
    ) -> list[Written]:
        assert len(hands) == len(texts)
        assert bias == 0.5  # less neat than a pen is usually asked for
        self.asked.append((list(texts), seed))
        return self.rounds.pop(0)


def _written(points: int = 5, *, ended: bool = True) -> Written:
    offsets = np.tile(np.array([[1.0, 0.5, 0]], np.float32), (points, 1))
    offsets[-1, 2] = 1
    none = np.zeros(points, np.bool_)
    return Written(offsets, ended, offsets, none, none.astype(np.int64))


def _legible(pen: _Drawn, readings: list[list[str]], texts: list[str], tries: int) -> list[Ink]:
    asked = [(text, None) for text in texts]
    rounds = iter(readings)
    return own.legible(pen, lambda _: next(rounds), asked, tries, np.random.default_rng(0))  # type: ignore[arg-type]


def test_what_is_misread_is_drawn_again_and_nothing_else() -> None:
    pen = _Drawn([_written()] * 3, [_written()] * 2)
    found = _legible(pen, [["an", "be", "cu"], ["by", "co"]], ["an", "by", "cat"], 2)
    assert [ink.text for ink in found] == ["an", "by"]
    (first, seed), (second, other) = pen.asked
    assert (first, second) == (["an", "by", "cat"], ["by", "cat"])
    assert seed != other
    assert all(is_own(ink) and ink.writer == OWN and not ink.isolated for ink in found)


def test_what_is_written_alike_is_read_right() -> None:
    assert _legible(_Drawn([_written()]), [["0lX"]], ["OIx"], 1)[0].text == "OIx"


@pytest.mark.parametrize(
    "written", [_written(ended=False), _written(LONGEST_INK + 1)], ids=["cut off", "too long"]
)
def test_what_is_not_whole_is_not_kept(written: Written) -> None:
    assert not _legible(_Drawn([written]), [["an"]], ["an"], 1)


def test_a_line_may_be_as_long_as_ink_may() -> None:
    assert _legible(_Drawn([_written(LONGEST_INK)]), [["an"]], ["an"], 1)


class _Telling:
    """A pen whose hand after a line is its text."""

    def fresh(self) -> None: ...

    def hand_after(self, hand: None, text: str, ink: np.ndarray) -> str:
        return text


def test_hands_are_of_some_lines_of_a_writer_by_chance(
    people: list[Ink], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [replace(people[0], text=f"line {n}") for n in range(9)]
    monkeypatch.setattr(own, "fitting_lines", lambda *_: lines)
    found = [own.hands_of(cast(Pen, _Telling()), lines, np.random.default_rng(seed))
             for seed in (1, 1, 2)]  # fmt: skip
    assert found[0] == found[1] != found[2]
    assert [len(set(map(str, some))) for some in found] == [3] * 3


def test_hands_come_in_the_order_of_their_writers_names(
    people: list[Ink], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A set has another one in every process, and the seed would not say what is drawn."""
    writers = [f"writer {n}" for n in range(9, 0, -1)]
    inks = [replace(people[0], writer=writer) for writer in writers]
    monkeypatch.setattr(
        own, "fitting_lines", lambda _, writer: [replace(people[0], text=writer)] * 2
    )
    found = own.hands_of(cast(Pen, _Telling()), inks, np.random.default_rng(0))
    assert found == sorted(writers * 2)


def test_texts_are_asked_for_in_every_hand_and_by_the_seed_of_those_who_are_learned_from(
    people: list[Ink], shipped: Pen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "hands_of", lambda *_: ["a", "b", "c"])
    monkeypatch.setattr(own, "_text", lambda *_: "a row")
    asked = own.texts_asked(shipped, people[:9], 60, np.random.default_rng(0))
    hands = [hand for _, hand in asked if isinstance(hand, str)]
    assert set(hands) == {"a", "b", "c"}
    assert len(hands) < 60
    corpus = PenCorpus("few", [replace(ink, writer=f"w{n}") for n, ink in enumerate(people)])
    learned, _ = corpus.split(0.04)
    monkeypatch.setattr(own.held_out, "corpus", lambda *_, **__: corpus)
    monkeypatch.setattr(own, "Pen", lambda _: shipped)
    monkeypatch.setattr(own, "readers_of", lambda _: {"reader": None})
    monkeypatch.setattr(own, "legible", lambda *_: [])
    given: list[object] = []
    monkeypatch.setattr(own, "texts_asked", lambda _, *rest: given.extend(rest) or [])
    parser = argparse.ArgumentParser()
    own.add_options(parser)
    assert own.run(parser.parse_args([str(tmp_path / "own.npz"), "--seed", "7"])) == 0
    inks, count, generator, _ = given
    assert {ink.writer for ink in cast(list[Ink], inks)} == {ink.writer for ink in learned}
    assert count == 16000
    assert cast(np.random.Generator, generator).random() == np.random.default_rng(7).random()


def test_lines_are_kept_as_they_stand_on_paper() -> None:
    written = _written(400)
    written.offsets[:, 1] += 3 * np.sin(np.arange(400))  # arcs that climb
    written.offsets[19::20, 2] = 1
    written.offsets[-1, 0] = -5.0  # to a dot over the last letter
    (ink,) = _legible(_Drawn([written]), [["an"]], ["an"], 1)
    shown = in_units(written.offsets)
    assert shown[-1, 1] < written.offsets[:, 1].sum() - 5
    np.testing.assert_allclose(ink.offsets[:, :2].cumsum(0), shown[:, :2], atol=1e-2)
    np.testing.assert_array_equal(ink.offsets[:, 2], shown[:, 2])
    assert ink.advance == pytest.approx(shown[:, 0].max())
    assert ink.advance > shown[-1, 0] + 3


def test_texts_are_those_of_rows_in_hands_of_those_who_may_be_learned_from(
    people: list[Ink], shipped: Pen
) -> None:
    asked = own.texts_asked(shipped, people[:40], 30, np.random.default_rng(1))
    words = {word for ink in people[:40] for word in ink.text.split()}
    assert all(set(text.split()) <= words for text, _ in asked)
    in_no_hand = sum(not hand.edge.known for _, hand in asked)
    assert 4 < in_no_hand < 20
    short = [ink for ink in people if len(ink.text) < 12][:5]
    assert not any(
        h.edge.known for _, h in own.texts_asked(shipped, short, 5, np.random.default_rng(1))
    )


@pytest.mark.usefixtures("_no_hands")
def test_a_third_of_the_texts_has_what_there_is_to_be_more_of(
    people: list[Ink], shipped: Pen
) -> None:
    def marked(more: str) -> int:
        asked = own.texts_asked(shipped, people[:40], 90, np.random.default_rng(1), more)
        return sum("#" in text for text, _ in asked)

    plain, more = marked(""), marked("#")
    assert plain < 12
    assert 15 < more < 45


@pytest.mark.usefixtures("_no_hands")
def test_some_texts_are_of_short_words(
    people: list[Ink], shipped: Pen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "_text", lambda *_: "a row")
    few = [replace(people[0], text=text) for text in ("Cat", "owl", "it's", "long")]
    asked = own.texts_asked(shipped, few, 60, np.random.default_rng(2))
    brief = [text.split() for text, _ in asked if text != "a row"]
    assert 2 <= len(brief) <= 15
    assert all(set(words) <= {"Cat", "owl"} and 2 <= len(words) <= 3 for words in brief)


class _Lines:
    """Rows that are drawn in this order, the last again and again."""

    def __init__(self, ink: Ink, *texts: str) -> None:
        self._inks = [replace(ink, text=text) for text in texts]

    def draw(self, characters: int, generator: np.random.Generator) -> Ink:
        return self._inks.pop(0) if len(self._inks) > 1 else self._inks[0]


@pytest.mark.parametrize(
    ("drawn", "wanted", "text"),
    [
        (["x" * (LONGEST_TEXT + 1), "x" * LONGEST_TEXT], "", "x" * LONGEST_TEXT),
        (["an", "b#", "c#"], "#", "b#"),
        (["an", "#" * (LONGEST_TEXT + 1), "be"], "#", "be"),
    ],
    ids=["too long", "wanted", "never had"],
)
def test_a_text_is_one_that_a_line_has_room_for(
    people: list[Ink], drawn: list[str], wanted: str, text: str
) -> None:
    rows = _Lines(people[0], *drawn)
    assert own._text(rows, 9, wanted, np.random.default_rng(0)) == text  # type: ignore[arg-type]


def test_a_corpus_is_written_to_a_file_that_can_be_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["own", str(tmp_path / "mine"), "--pens", "nowhere.npz"]) == 1
    assert "mine'; a corpus is a file that ends with .npz" in capsys.readouterr().err


def test_a_seed_that_is_none_is_told_before_the_corpus_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["own", str(tmp_path / "o.npz"), "--pens", "nowhere.npz", "--seed", "-1"]
    assert main(asked) == 1
    assert "error: --seed is -1; it is 0 or more" in capsys.readouterr().err


@pytest.mark.usefixtures("_no_hands")
def test_the_corpus_has_what_people_wrote_and_what_the_pen_wrote(
    people: list[Ink],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before, after = tmp_path / "pens.npz", tmp_path / "own.npz"
    earlier = replace(people[0], text="earlier", writer=OWN, source=OWN)
    PenCorpus("few", [*people[:40], earlier]).save(before)
    texts: list[str] = []

    def half(
        pen: Pen, read: object, asked: Sequence[own.Asked], tries: int, generator: object
    ) -> list[Ink]:
        assert tries == 3
        texts.extend(text for text, _ in asked)
        return [replace(earlier, text=text) for text in texts[::2]]

    monkeypatch.setattr(own, "readers_of", lambda _: {"reader": None})
    monkeypatch.setattr(own, "legible", half)
    parser = argparse.ArgumentParser()
    own.add_options(parser)
    arguments = [str(after), str(_SHIPPED), "--pens", str(before), "--count", "6", "--tries", "3"]
    arguments += ["--more", "#"]
    assert own.run(parser.parse_args(arguments)) == 0
    assert "earlier" not in texts
    corpus = read_pens(after, Tally())
    assert corpus.name == "few"
    assert [ink.text for ink in corpus.inks] == [i.text for i in people[:40]] + texts[::2]
    assert list(map(is_own, corpus.inks)) == [False] * 40 + [True] * 3
    assert "3 of 6 texts are read as they were meant" in capsys.readouterr().out
