"""What the commands that have ink read make of it: whose ink is judged, which figure a goal is of,
and what the exit code says. Pens and readers answer as they are told."""

import argparse
import json
import string
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from export.results import machine
from lab.glyphs import report as glyphs
from lab.legibility import held_out, pages
from lab.legibility import report as legibility
from lab.legibility.reading import Errors, NoReader, Offsets, interval
from lab.legibility.steadiness import Strays
from lab.legibility.write_ink import Written
from lab.reading import hands
from lab.reading import report as reading
from training.ink.corpus import PenCorpus
from training.ink.prepare import Ink

_STROKE = np.array([[1, 0, 0], [1, 2, 0], [1, -1, 1]], np.float32)


def _options(module: ModuleType, *arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.set_defaults(told="as it was typed")
    module.add_options(parser)
    return parser.parse_args(arguments)


def _people() -> list[Ink]:
    """A line and a word of each of many writers, of whom some are held out."""
    texts = ("a line of ink", "word")
    return [Ink(t, _STROKE, 3.0, f"w{n}", "source") for n in range(120) for t in texts]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    PenCorpus("people", _people()).save(tmp_path / "pens.npz")
    return tmp_path / "pens.npz"


def _writers(inks: Sequence[Ink]) -> set[str]:
    return {ink.writer for ink in inks}


_HELD_OUT = _writers(PenCorpus("", _people()).split(0.04)[1])


def test_some_writers_are_held_out_and_more_are_not() -> None:
    assert 0 < len(_HELD_OUT) < 15


def test_a_file_is_read_and_no_ink_is_looked_for_where_there_is_no_data(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EVENKEEL_DATA", raising=False)
    found = held_out.corpus_if_any(saved)
    assert found is not None
    assert len(found.inks) == len(_people())
    assert held_out.corpus_if_any(None) is None


def test_glyphs_of_people_are_those_of_held_out_writers(saved: Path) -> None:
    assert _writers([ink for ink, _ in glyphs.real_ink(saved)]) == _HELD_OUT


def test_lines_that_are_read_are_of_held_out_writers_and_bounds_of_the_others(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, validation = PenCorpus("", _people()).split(0.04)
    names = [held_out.identity(ink) for ink in validation if ink.text != "word"]
    for module in (legibility, reading):
        monkeypatch.setattr(module, "tesseract_version", lambda: "5")
    monkeypatch.setattr(held_out, "read_list", lambda: names[:3])
    seen: list[Any] = []
    monkeypatch.setattr(legibility, "measure", lambda *given: seen.append(given) or 0)
    assert legibility.run(_options(legibility, "--pens", str(saved))) == 0
    _, lines, training, *_ = seen.pop()
    assert [held_out.identity(ink) for ink in lines] == names[:3]
    assert _writers(training) == _writers(_people()) - _HELD_OUT

    def measure(reader: Path, twin: Path, *given: Any) -> dict[str, Any]:
        seen.append(given)
        return {"goals": [{"met": True}, {"met": False}]}

    monkeypatch.setattr(reading, "measure", measure)
    out = saved.with_name("reading.json")
    assert reading.run(_options(reading, "--pens", str(saved), "--out", str(out))) == 1
    lines, words, _ = seen.pop()
    assert [held_out.identity(ink) for ink in lines] == names[:3]
    assert _writers(words) == _HELD_OUT
    assert {ink.text for ink in words} == {"word"}


class _Pen:
    """Writes ink of which a reader is told the text, and notes at which bias it was asked."""

    manifest = None

    def __init__(self) -> None:
        self.texts: dict[int, str] = {}
        self.hands: dict[int, Any] = {}
        self.biases: list[float] = []

    def fresh(self) -> str:
        return "made up"

    def write(self, texts: list[str], bias: float, seed: int, hands: list[Any]) -> list[Written]:
        self.biases.append(bias)
        written = []
        for text, hand in zip(texts, hands, strict=True):
            offsets = _STROKE.copy()
            self.texts[id(offsets)], self.hands[id(offsets)] = text, hand
            nowhere = np.zeros(len(offsets), np.int64)
            written.append(Written(offsets, True, offsets, nowhere > 0, nowhere))
        return written

    def reader(
        self, misread: Callable[[str, Any], str]
    ) -> Callable[[Sequence[Offsets]], list[str]]:
        return lambda inks: [misread(self.texts[id(i)], self.hands[id(i)]) for i in inks]


def _require_as_shipped(found: dict[str, Any], shipped: Path, *alike: str) -> None:
    """What is written tells what the result does that is shipped, and `alike` what was asked."""
    before = json.loads(shipped.read_text("utf-8"))
    assert list(found) == list(before)
    assert {name: found[name] for name in alike} == {name: before[name] for name in alike}
    assert found["command"] == "as it was typed"
    assert found["machine"] == machine()


def _stand_in(module: ModuleType, pen: _Pen, readers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Pen", lambda _: pen)
    monkeypatch.setattr(module, "readers_of", lambda _: dict(readers))
    monkeypatch.setattr(module, "named", lambda path: {"name": path.name})


@pytest.mark.parametrize(("misread", "code"), [("", 0), ("A", 1), ("%", 1)])
@pytest.mark.parametrize("installed", [False, True])
def test_a_character_that_is_misread_misses_a_goal_of_glyphs(
    misread: str, code: int, installed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the reader, whatever Tesseract reads; where that is not there, it is left out."""

    def version() -> str:
        if not installed:
            raise NoReader("tesseract is not installed")
        return "5"

    pen = _Pen()
    mine = pen.reader(lambda text, _: text.replace(misread, "") if misread else text)
    _stand_in(
        glyphs, pen, {"reader": mine, "tesseract": lambda inks: [""] * len(inks)}, monkeypatch
    )
    person = Ink("a b", _STROKE.copy(), 3.0, "w", "source")
    pen.texts[id(person.offsets)], pen.hands[id(person.offsets)] = person.text, "a person's"
    monkeypatch.setattr(glyphs, "tesseract_version", version)
    monkeypatch.setattr(glyphs, "load_artifact", lambda _: None)
    monkeypatch.setattr(glyphs, "stored_hands", lambda *_: {"ada": "ada", "ben": "ben"})
    monkeypatch.setattr(glyphs, "real_ink", lambda _: [(person, [0, 2])])
    monkeypatch.setattr(glyphs, "plot_glyphs", lambda *_: None)
    out = tmp_path / "glyphs.json"
    options = _options(glyphs, "--contexts", "2", "--out", str(out))
    assert glyphs.run(options) == code
    found = json.loads(out.read_text("utf-8"))
    _require_as_shipped(found, glyphs.RESULTS, "bias", "seed", "alike")
    letters, marks = found["goals"]
    assert (letters["value"], letters["bound"]) == (62 - (misread == "A"), 62)
    assert (marks["value"], marks["bound"]) == (32 - (misread == "%"), 32)
    names = ["reader", "tesseract"] if installed else ["reader"]
    assert list(found["pen"]) == list(found["people"]) == names
    assert found["pen"]["reader"]["lines"] == 2 * 94
    people = found["people"]["reader"]
    assert (people["lines"], sorted(people["characters"])) == (1, ["a", "b"])
    assert (found["hands"], found["contexts"]) == (3, 2)
    assert {kind: model["name"] for kind, model in found["models"].items()} == {
        "pen": "handwriting", "reader": "reader",
    }  # fmt: skip
    assert set(found["tools"]) == {"jiwer", "tesseract"} if installed else {"jiwer"}
    assert {*pen.hands.values()} == {
        "ada",
        "ben",
        "a person's",
    }  # the third has its turn with more texts


@pytest.mark.parametrize(("share", "code"), [(0.2, 0), (0.5, 1)])
def test_a_hand_that_tesseract_misreads_most_is_judged_at_the_usual_bias(
    share: float, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pen = _Pen()

    def outside(text: str, hand: str) -> str:
        part = share if hand == "cleo" else 0.9 if hand == "made up" else 0.15
        if pen.biases[-1] != 1.0:  # where all are alike
            part = 0.9
        return text[round(part * len(text)) :]

    readers = {
        "reader": pen.reader(lambda text, hand: "" if hand == "ben" else text),
        "tesseract": pen.reader(outside),
    }
    _stand_in(hands, pen, readers, monkeypatch)
    stored = {name: name for name in ("ada", "ben", "cleo")}
    monkeypatch.setattr(hands, "tesseract_version", lambda: "5")
    monkeypatch.setattr(hands, "stored_in", lambda *_: stored)
    monkeypatch.setattr(hands, "plot_hands", lambda *_: None)
    out = tmp_path / "hands.json"
    assert hands.run(_options(hands, "--lines", "5", "--out", str(out))) == code
    found = json.loads(out.read_text("utf-8"))
    _require_as_shipped(found, hands.RESULTS, "seed")
    assert list(found["by_bias"]) == ["0.5", "1.0", "2.0"]
    assert sorted(set(pen.biases)) == [0.5, 1.0, 2.0]
    assert list(found["by_bias"]["2.0"]) == ["ada", "ben", "cleo", "made up"]
    assert found["by_bias"]["1.0"]["ben"]["plain"]["reader"]["cer"] == 1.0
    (goal,) = found["goals"]
    assert goal["value"] == pytest.approx(share / 0.15, rel=0.1)


def test_a_place_of_the_pages_is_read_with_the_text_of_each_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second line of the first page is misread; looks are means over pages."""

    def ink(page: int, line: int) -> Written:
        offsets = np.full((3, 3), 10.0 * page + line, np.float32)
        return Written(offsets, True, offsets, offsets[:, 0] < 0, np.zeros(3, np.int64))

    def read(inks: Sequence[Offsets], reader: object) -> list[str]:
        places = [divmod(int(offsets[0, 0]), 10) for offsets in inks]
        return [pages.text_of(*place)[4 * (place == (0, 1)) :] for place in places]

    def look(offsets: Offsets, characters: int) -> SimpleNamespace:
        page, line = divmod(int(offsets[0, 0]), 10)
        assert characters == len(pages.text_of(page, line))
        return SimpleNamespace(slant_degrees=4.0 * page + line, size_units=1.0 + page)

    monkeypatch.setattr(pages, "read", read)
    monkeypatch.setattr(pages, "measure", look)
    found = pages.judge([[ink(page, line) for line in range(2)] for page in range(2)])
    assert [line.errors.edits for line in found] == [0, 4]
    both = len(pages.text_of(0, 1)) + len(pages.text_of(1, 1))
    assert found[1].errors.characters == both
    assert [line.slant_degrees for line in found] == [2.0, 3.0]
    assert [line.size_units for line in found] == [1.5, 1.5]


_GOOD = {"late": 11, "cut": 2, "pages": (4.0, 0.1), "people": (8.0, 0.2)}


@pytest.mark.parametrize(
    ("changed", "missed"),
    [
        ({}, []),
        ({"late": 12}, ["decay"]),
        ({"cut": 3}, ["cut"]),
        ({"pages": (8.1, 0.1)}, ["slant_degrees"]),
        ({"pages": (4.0, 0.21)}, ["size"]),
        ({"people": None}, []),
    ],
)
def test_goals_of_pages_are_of_lines_that_begin_from_their_hand(
    changed: dict[str, Any], missed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However fast lines decay that go on from one another."""
    told = _GOOD | changed
    late = told["late"]

    def judge(written: Any) -> list[pages.Lines]:
        lines = len(written[0])
        chained = lines == pages.CHAINED_LINES
        edits = [10] * (lines // 2) + [90 if chained else late] * (lines - lines // 2)
        return [pages.Lines(Errors(n, 100), 0.0, 0.0) for n in edits]

    def corpus(_: Path | None) -> SimpleNamespace | None:
        return None if told["people"] is None else SimpleNamespace(inks=[])

    asked: list[tuple[int, int, bool]] = []

    def write_pages(_: object, begin: list[str], lines: int, *, chained: bool) -> Any:
        asked.append((len(begin), lines, chained))
        return [[Written(_STROKE, True, _STROKE, _STROKE[:, 0] < 0, np.zeros(3, np.int64))] * lines]

    manifest = SimpleNamespace(
        name="pen", files={"model.safetensors": "w", "styles.safetensors": "s"}
    )
    monkeypatch.setattr(pages, "tesseract_version", lambda: "5")
    monkeypatch.setattr(pages, "Pen", lambda _: SimpleNamespace(manifest=manifest))
    monkeypatch.setattr(pages, "stored_in", lambda *_: {"ada": "ada", "ben": "ben"})
    monkeypatch.setattr(held_out, "corpus_if_any", corpus)
    monkeypatch.setattr(pages, "write_pages", write_pages)
    monkeypatch.setattr(pages, "judge", judge)
    monkeypatch.setattr(pages, "endings", lambda *_: pages.Endings(240, 200, told["cut"], 0))
    monkeypatch.setattr(pages, "_with_texts", lambda _: [])
    monkeypatch.setattr(pages, "of_pages", lambda _: Strays(40, 40, *told["pages"]))
    monkeypatch.setattr(pages, "of_people", lambda _: Strays(9, 90, *told["people"]))
    drawn: list[int] = []
    monkeypatch.setattr(pages, "plot_pages", lambda two, _: drawn.extend(map(len, two)))
    out = tmp_path / "pages.json"
    assert pages.run(_options(pages, "--out", str(out))) == bool(missed)
    found = json.loads(out.read_text("utf-8"))
    _require_as_shipped(found, pages.RESULTS, "bias", "seed", "pages")
    assert [name for name, goal in found["goals"].items() if not goal["met"]] == missed
    assert asked == [(40, 8, True), (40, 20, False)]
    assert drawn == [8, 20]  # those that go on from one another on the left
    assert found["last_quarter_over_first"] == {"chained": 9.0, "anchored": late / 10}
    assert len(found["goals"]) == (2 if told["people"] is None else 4)


def test_an_interval_holds_what_95_of_100_draws_of_lines_give() -> None:
    """Of as many edits in every line there is one ratio; of two kinds of lines, some lie wider."""
    ten, five = [Errors(10, 100)] * 8, [Errors(5, 100)] * 8
    assert interval(ten, five) == [2.0, 2.0]
    assert interval(five, ten) == [0.5, 0.5]
    uneven = [Errors(0, 100), Errors(10, 100)] * 200
    low, high = interval(uneven, [Errors(10, 100)] * 400)
    # 400 throws of a coin: a standard deviation of 0.025, of which there are 1.96.
    assert interval(uneven, list(uneven)) == [1.0, 1.0]  # the same lines are drawn of both
    assert low == pytest.approx(0.451, abs=0.006)
    assert high == pytest.approx(0.549, abs=0.006)


def test_every_letter_digit_and_mark_counts_once() -> None:
    shares = {c: {"folded": 1.0} for c in string.printable[:94]}
    assert [goal.bound for goal in glyphs.goals_of(shares)] == [62, 32]
