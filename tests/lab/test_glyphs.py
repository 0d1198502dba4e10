"""Legibility by glyph: what stands where, what counts as read right, and that it can fail."""

import json
import string
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from PIL import Image

from contract.alphabets import ALPHABET, LONGEST_LINE
from lab.glyphs import report
from lab.glyphs.contexts import ALIKE, CHARACTERS, contexts, fold
from lab.glyphs.judge import CLASSES, Tally, classes, read_at, tally, worst
from lab.glyphs.people import MOST_EACH, marks_among_words, real_lines
from lab.glyphs.sheet import SAMPLES, Sample, Shown, plot_glyphs
from lab.legibility import held_out
from lab.legibility.write_ink import Hand, Pen, Written
from lab.reading.shown import READER, Readers
from tests.training.legible import SHOWN_PX
from training.ink.prepare import Ink

_COUNT = 40
_STROKE = np.array([[1, 0, 0], [1, 1, 0], [1, -1, 1]], np.float32)


@pytest.mark.parametrize("character", CHARACTERS)
def test_a_character_stands_alone_of_its_kind_in_texts_that_fit_a_line(character: str) -> None:
    found = contexts(character, _COUNT, seed=1)
    assert len({c.text for c in found}) > 0.9 * _COUNT
    for context in found:
        assert context.character == character
        assert len(context.text) <= LONGEST_LINE
        assert set(context.text) <= set(ALPHABET)
        others = fold(context.text).count(fold(character))
        assert others == (2 if character == '"' else 1), context.text


def test_every_printable_character_is_judged() -> None:
    assert len(CHARACTERS) == 94
    assert sorted(CHARACTERS) == sorted("".join(CLASSES.values()))


def test_the_seed_gives_the_texts_and_fewer_are_the_first_of_them() -> None:
    assert contexts("k", 40, 1) == contexts("k", 40, 1) != contexts("k", 40, 2)
    assert contexts("k", 40, 1)[:5] == contexts("k", 5, 1)


@pytest.mark.parametrize("character", "enr")
def test_a_letter_stands_at_the_beginning_the_end_and_within_words(character: str) -> None:
    """As often: of its own accord one of these begins few words."""
    words = [word for c in contexts(character, 150, 1) for word in c.text.split()]
    places = [(word.index(character), len(word) - 1) for word in words if character in word]
    begins, ends = sum(at == 0 for at, _ in places), sum(at == last for at, last in places)
    assert min(begins, ends, sum(0 < at < last for at, last in places)) >= 0.25 * len(places)


def test_capitals_begin_words_and_one_in_five_is_among_others() -> None:
    found = [c.text for c in contexts("B", _COUNT, 1)]
    assert sum(text.isupper() for text in found) == _COUNT / 5


@pytest.mark.parametrize("mark", '"')
def test_of_a_pair_either_is_judged(mark: str) -> None:
    firsts = [c.place == c.text.index(mark) for c in contexts(mark, _COUNT, 1)]
    assert sum(firsts) == _COUNT / 2
    assert firsts[:4] == [not first for first in firsts[4:8]]  # of each form


def test_what_is_folded_is_in_one_group_of_the_table() -> None:
    every = "".join(ALIKE)
    assert len(set(every)) == len(every)
    assert fold("Oo0 lI1|") == "ooo llll"
    assert fold("abdefghijmnqrtyABDEFGHJLMNQRTY") == "abdefghijmnqrtyABDEFGHJLMNQRTY"


@pytest.mark.parametrize(
    ("text", "reading", "found"),
    [
        ("box 5%", "box 5%", "box 5%"),
        ("box 5%", "bax 59", "bax 59"),
        ("box 5%", "bx 5%", ["b", "", "x", " ", "5", "%"]),
        ("box 5%", "boxx 5%", "box 5%"),
        ("ab", "", ["", ""]),
    ],
)
def test_a_place_is_read_as_what_the_fewest_edits_put_there(
    text: str, reading: str, found: Sequence[str]
) -> None:
    assert read_at(text, reading) == list(found)


def test_only_judged_places_count_and_alike_ones_count_when_folded() -> None:
    texts, readings = ["Oak", "Oak", "Oak", "no"], ["0xx", "Oak", "8ak", "Oo"]
    found = tally(texts, [[0], [0], [0], [1]], readings)
    assert found.keys() == {"O", "o"}
    assert found["O"].described("O") == {
        "right": 0.3333, "folded": 0.6667, "of": 3, "misread": {"0": 1, "8": 1},
    }  # fmt: skip
    assert found["o"].described("o")["right"] == 1.0
    most = Tally(Counter({"x": 1, "c": 5, "k": 4, "o": 3, "e": 2})).described("c")["misread"]
    assert most == {"k": 4, "o": 3, "e": 2}


def _shares(folded: float, characters: str = CHARACTERS) -> dict[str, dict[str, Any]]:
    return {c: {"right": folded / 2, "folded": folded, "of": 40, "misread": {}} for c in characters}


def test_a_class_is_the_mean_of_its_characters_and_how_many_reach() -> None:
    shares = _shares(0.85) | {"a": _shares(0.95)["a"], "b": _shares(0.1)["b"] | {"of": 4}}
    found = classes(shares)
    mean = (24 * 0.85 + 0.95 + 0.1) / 26  # however few its samples, each character counts once
    assert found["lower case"]["folded"] == round(mean, 4)
    assert found["lower case"]["right"] == round(mean / 2, 4)
    assert found["digits"] == {
        "characters": 10, "right": 0.425, "folded": 0.85, "reach_0.9": 0, "reach_0.8": 10,
    }  # fmt: skip
    assert (found["lower case"]["reach_0.9"], found["lower case"]["reach_0.8"]) == (1, 25)
    (alone,) = classes(_shares(1.0, "a")).items()
    assert (alone[0], alone[1]["characters"]) == ("lower case", 1)
    for share, reach in ((0.9, (10, 10)), (0.8, (0, 10)), (0.79, (0, 0))):  # a bound is reached
        digits = classes(_shares(share))["digits"]
        assert (digits["reach_0.9"], digits["reach_0.8"]) == reach
    assert worst(shares, 1) == ["b"]
    # By what is read right of those that are written alike, not by what is taken for its twin.
    twins = _shares(0.9, "ab") | {"o": _shares(0.9, "o")["o"] | {"right": 0.1}}
    assert worst(twins | _shares(0.8, "q"), 2) == ["q", "o"]


def test_letters_need_nine_in_ten_and_marks_eight() -> None:
    good = _shares(0.9, string.ascii_letters + string.digits) | _shares(0.8, string.punctuation)
    assert [goal.met for goal in report.goals_of(good)] == [True, True]
    assert [goal.met for goal in report.goals_of(good | _shares(0.89, "q"))] == [False, True]
    assert [goal.met for goal in report.goals_of(good | _shares(0.79, "%"))] == [True, False]


class TellingPen:
    """Writes the same stroke for every character, and keeps what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], int, list[str]]] = []

    def write(self, texts: list[str], bias: float, seed: int, hands: list[str]) -> list[Written]:
        self.asked.append((texts, seed, hands))
        return [_written(text) for text in texts]


def _written(text: str) -> Written:
    drawn = np.tile(_STROKE, (len(text), 1))
    characters = np.repeat(np.arange(len(text)), len(_STROKE))
    return Written(drawn, True, drawn, characters < 0, characters)


def _written_contexts(count: int) -> tuple[TellingPen, list[report.Line]]:
    pen = TellingPen()
    lines = report.write_contexts(cast(Pen, pen), cast(list[Hand], ["a", "b", "new"]), count)
    return pen, lines


def test_hands_take_turns_and_the_noise_of_a_character_is_its_own() -> None:
    few, lines = _written_contexts(4)
    assert len(lines) == 4 * len(CHARACTERS)
    assert all(hands == ["a", "b", "new", "a"] for _, _, hands in few.asked)
    assert len({seed for _, seed, _ in few.asked}) == len(CHARACTERS)
    more, _ = _written_contexts(6)
    for (texts, seed, _), (others, same, _) in zip(few.asked, more.asked, strict=True):
        assert (texts, seed) == (others[:4], same)


def test_what_is_written_alike_is_aligned_alike() -> None:
    """Of `SO` read as `sos` both stand there, the text and the reading folded."""
    found = tally(["SO"], [[0, 1]], ["sos"])
    assert {character: one.folded for character, one in found.items()} == {"S": 1, "O": 1}
    assert found["S"].read_as["S"] == 0


def test_each_reader_is_judged_by_character() -> None:
    texts, places = ["5% box", "ink 7%"], [[1], [5]]
    readers: Readers = {
        "well": lambda inks: texts,
        "ill": lambda inks: ["59 box", "ink 7%"],
    }
    found = report.judge(texts, places, [_STROKE] * 2, readers)
    shares = {name: f["characters"]["%"] for name, f in found.items()}
    assert shares["well"]["right"] == 1.0
    assert (shares["ill"]["right"], shares["ill"]["misread"]) == (0.5, {"9": 1})
    assert found["ill"]["classes"]["marks"]["right"] == 0.5
    json.dumps(found)
    told = report.judge(["ba"], [[0, 1]], [_STROKE], {"well": lambda inks: ["ba"]})
    assert list(told["well"]["characters"]) == ["a", "b"]


def test_goals_are_of_what_the_reader_reads_of_the_pen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each character at its place; and neither of what Tesseract reads nor of people's ink."""
    lines = [
        report.Line(context, _written(context.text))
        for character in CHARACTERS
        for context in contexts(character, 2, seed=1)
    ]
    people: list[Any] = [(_real("ab", 1), [0, 1])]
    texts = [line.context.text for line in lines]

    def well(inks: Sequence[Any]) -> list[str]:
        return texts if len(inks) == len(texts) else ["--"]

    readers: Readers = {READER: well, "tesseract": lambda inks: [""] * len(inks)}
    monkeypatch.setattr(report, "readers_of", lambda _: dict(readers))
    monkeypatch.setattr(report, "Pen", lambda _: SimpleNamespace(manifest=None, fresh=lambda: None))
    monkeypatch.setattr(report, "real_ink", lambda _: people)
    monkeypatch.setattr(report, "load_artifact", lambda _: None)
    monkeypatch.setattr(report, "stored_hands", lambda *_: {})
    monkeypatch.setattr(report, "tesseract_version", lambda: "5")
    monkeypatch.setattr(report, "write_contexts", lambda *_: lines)
    monkeypatch.setattr(report, "plot_glyphs", lambda *_: None)
    monkeypatch.setattr(report, "named", lambda _: {})
    out = tmp_path / "glyphs.json"
    asked = SimpleNamespace(
        reader=None, artifact=None, pens=None, contexts=2, told="it", out=out, sheet=None
    )
    assert report.run(asked) == 0  # type: ignore[arg-type]
    found = json.loads(out.read_text())
    assert [goal["value"] for goal in found["goals"]] == [62, 32]
    assert found["people"][READER]["characters"]["a"]["right"] == 0
    assert found["pen"]["tesseract"]["characters"]["a"]["right"] == 0


def test_of_a_class_it_is_told_how_many_reach_nine_and_eight_in_ten(
    capsys: pytest.CaptureFixture[str],
) -> None:
    digits = {"characters": 10, "right": 0.5, "folded": 0.6, "reach_0.9": 3, "reach_0.8": 7}
    found = {READER: {"classes": {"digits": digits}, "characters": {}}}
    report.print_found({"pen": found})
    (row,) = (row for row in capsys.readouterr().out.splitlines() if "digits" in row)
    assert row.split()[-6:] == ["0.500", "0.600", "3", "7", "of", "10"]


def test_people_have_their_lines_and_their_isolated_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    inks = [_real("ab", 1), _real("cd", 2), _real("%", 3, True)]
    corpus = SimpleNamespace(split=lambda _: ([], inks))
    monkeypatch.setattr(held_out, "corpus_if_any", lambda _, marks=False: corpus if marks else None)
    *lines, (marked, _) = report.real_ink(None)
    assert {ink.text for ink, _ in lines} == {"ab", "cd"}
    assert "%" in marked.text


def _real(text: str, number: int, isolated: bool = False) -> Ink:
    return Ink(text, np.tile(_STROKE, (number + 1, 1)), 1.0, f"w{number}", "invented", isolated)


def test_real_lines_are_as_few_as_give_every_character_its_samples() -> None:
    usual, rare = [_real("ee", number) for number in range(MOST_EACH)], _real("e ?", MOST_EACH)
    too_long, alone = _real("?" * 41, MOST_EACH + 1), _real("?", MOST_EACH + 2, True)
    full = _real("k" * 40, MOST_EACH + 3)
    inks = [*usual, rare, too_long, alone, full]
    found = real_lines(inks)
    assert [ink.writer for ink, _ in found] == [ink.writer for ink, _ in real_lines(inks[::-1])]
    texts = [ink.text for ink, _ in found]
    assert texts.count("e ?") == 1
    assert set(texts) == {"ee", "e ?", full.text}
    assert MOST_EACH <= "".join(texts).count("e") <= MOST_EACH + 2
    assert {text: places for text, (_, places) in zip(texts, found, strict=True)} == {
        "ee": [0, 1],
        "e ?": [0, 2],
        full.text: [*range(40)],
    }


def test_isolated_marks_stand_between_words_and_are_judged_alone() -> None:
    words = [_real("ab", 1), _real("cdefgh", 2), _real("far too long", 3), _real("12", 4)]
    marks = [_real(mark, 5 + number, True) for number, mark in enumerate("%$" * 20)]
    found = marks_among_words([*words, *marks])
    assert len(found) == len(marks)
    used: set[str] = set()
    for mark, (row, (place,)) in zip(marks, found, strict=True):
        assert row.text[place] == mark.text
        left, right = row.text.split(mark.text)
        used |= {left.strip(), right.strip()}
        points = len(row.offsets)
        assert points == sum(
            len(ink.offsets) for ink in (mark, _of(words, left), _of(words, right))
        )
    assert used == {"ab", "cdefgh"}
    beside, between = ([row.advance for row, _ in found if (" " in row.text) is apart]
                       for apart in (False, True))  # fmt: skip
    assert min(len(beside), len(between)) > len(found) / 4
    assert max(beside) < min(between)


def _of(words: Sequence[Ink], text: str) -> Ink:
    return next(word for word in words if word.text == text.strip())


def test_the_sheet_has_its_own_points_black_and_neighbours_grey(tmp_path: Path) -> None:
    _, lines = _written_contexts(SAMPLES + 1)
    shown = report.shown(lines, _shares(0.5))
    assert [len(one.samples) for one in shown] == [SAMPLES] * len(CHARACTERS)
    points = [len(sample.points) for sample in shown[0].samples]
    assert points == [len(line.ink.offsets) for line in lines[:SAMPLES]]
    assert {one.right for one in shown} == {0.5}
    plot_glyphs(shown, tmp_path / "sheet.png")
    assert (tmp_path / "sheet.png").stat().st_size <= 150_000
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.width <= SHOWN_PX
    thick = np.stack([np.arange(-5.0, 6.0), np.tile([4.0, 4.3], 6)[:11], np.zeros(11)], axis=1)
    darkest = []
    for own in (np.arange(11) < 5, np.arange(11) == 0):
        plot_glyphs([Shown(" ", 1.0, [Sample(thick, own)])], tmp_path / "one.png")
        above_label = np.array(Image.open(tmp_path / "one.png").convert("L"))[:15]
        darkest.append(int(above_label.min()))
    assert darkest[0] < 100 < 170 < darkest[1] < 255
    lifted = thick + np.array([0, 0, 1])  # a stroke of a point, and nothing between two
    plot_glyphs([Shown(" ", 1.0, [Sample(lifted, np.arange(11) < 5)])], tmp_path / "one.png")
    with Image.open(tmp_path / "one.png") as image:
        cell = np.array(image.convert("L"))
    assert cell[:15].min() == 255 > 200 > cell[15:].min()  # the share is told below


def test_samples_of_a_character_stand_side_by_side_as_characters_do(tmp_path: Path) -> None:
    upright = np.array([[0.0, 0.0, 0.0], [0.0, 6.0, 0.0]])
    own = np.ones(2, bool)  # each from another place of its line
    samples = [Sample(upright + np.array([9.0 * n, 0, 0]), own) for n in range(SAMPLES)]
    plot_glyphs([Shown(" ", 1.0, samples)] * 6, tmp_path / "sheet.png")
    with Image.open(tmp_path / "sheet.png") as sheet:
        black = np.array(sheet.convert("L")) < 128
    for half in np.array_split(black, 2):
        inked = half[:20].any(axis=0)
        begins = np.flatnonzero(inked[1:] & ~inked[:-1])
        places = begins.reshape(3, SAMPLES)
        assert np.ptp(np.diff(places)) <= 1
        assert np.ptp(np.diff(places, axis=0)) <= 1


def test_what_is_cut_out_is_where_the_window_was() -> None:
    _, lines = _written_contexts(1)
    line = next(line for line in lines if line.context.character == "-")
    (sample,) = next(
        one for one in report.shown([line], _shares(1.0)) if one.character == "-"
    ).samples
    owned = np.flatnonzero(sample.own)
    assert len(owned) == len(_STROKE)
    # In a word the window is ahead of the pen by as much as a character of this pen's has points.
    assert owned[0] == (line.context.place + 1) * len(_STROKE)
