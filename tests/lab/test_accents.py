"""How accents are read: what is counted of readings, and that the sentences can be written."""

import json
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from contract.ink import InkManifest
from export.results import machine
from lab.legibility.reading import PAGE, picture, picture_of
from lab.legibility.write_ink import Hand, Pen, Written
from lab.reading import accents as module
from lab.reading.accents import SENTENCES, Line, accents, together
from service.ink.letters import bases, written
from service.ink.pen import LinePen


def test_every_sentence_has_accents_and_can_be_written() -> None:
    for texts in SENTENCES.values():
        for text in texts:
            folded = written(text, InkManifest.model_construct())
            assert bases(folded) != folded


def test_letters_are_counted_by_their_base_and_their_marks() -> None:
    count = accents(["été là", "où", "né"], ["etè là", "0ù", "né"])
    assert count == {"letters": 5, "base_read": 5, "right": 3, "other_marks": 1}
    assert accents(["é"], ["x"]) == {"letters": 1, "base_read": 0, "right": 0, "other_marks": 0}
    assert accents(["é"], [""])["base_read"] == 0


def test_languages_together_are_weighed_by_their_characters() -> None:
    one = {
        "marked": {"lines": 1, "edits": 1, "characters": 10, "cer": 0.1},
        "accents": {"right": 1},
    }
    two = {
        "marked": {"lines": 2, "edits": 9, "characters": 30, "cer": 0.3},
        "accents": {"right": 4},
    }
    assert together([one, two]) == {
        "marked": {"lines": 3, "edits": 10, "characters": 40, "cer": 0.25},
        "accents": {"right": 5},
    }


def test_a_line_is_judged_in_its_language_with_its_marks_and_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    letters, marks = np.zeros((3, 3)), np.ones((2, 3))
    asked: list[str] = []

    def read(pngs: list[int], language: str) -> list[str]:
        asked.append(language)
        return ["été là" if points == 5 else "exe la" for points in pngs]

    monkeypatch.setattr(module, "picture_of", len)
    monkeypatch.setattr(module, "tesseract_all", read)
    found = module.judge("fra", [Line("étè là", letters, marks)])
    assert asked == ["fra", "fra"]
    edits = {name: one["edits"] for name, one in found.items() if "edits" in one}
    assert edits == {"marked": 1, "letters": 0, "letters_unmarked": 1}
    assert found["accents"] == {"letters": 3, "base_read": 3, "right": 2, "other_marks": 1}
    assert found["accents_unmarked"] == {
        "letters": 3, "base_read": 3, "right": 0, "other_marks": 0,
    }  # fmt: skip


def test_rates_are_printed_by_what_they_are_of(capsys: pytest.CaptureFixture[str]) -> None:
    rates = {"marked": 0.1, "letters": 0.2, "letters_unmarked": 0.3}
    found: dict[str, Any] = {
        name: {"lines": 1, "edits": round(1000 * cer), "characters": 1000, "cer": cer}
        for name, cer in rates.items()
    }
    found["accents"] = {"letters": 9, "base_read": 8, "right": 7, "other_marks": 1}
    found["accents_unmarked"] = {"letters": 9, "base_read": 6, "right": 1, "other_marks": 2}
    module.print_found({"fra": found, "deu": found})
    _, french, *_, every = capsys.readouterr().out.splitlines()
    assert " ".join(french.split()) == "fra 0.100 0.200 0.300 7 of 8 of 9 1 of 6 of 9"
    assert every.split()[:4] == ["all", "0.100", "0.200", "0.300"]


def test_the_sheet_has_the_first_sentence_of_every_language_in_each_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(module, "tesseract_version", lambda _: "5")
    monkeypatch.setattr(module, "Pen", lambda _: SimpleNamespace(manifest=None))
    monkeypatch.setattr(module, "stored_in", lambda *_: {"ada": "a", "ben": "b"})
    monkeypatch.setattr(
        module, "write", lambda _, hands, texts: [(t, h) for t in texts for h in hands]
    )
    monkeypatch.setattr(module, "judge", lambda language, lines: {"accents": {"right": len(lines)}})
    monkeypatch.setattr(module, "print_found", lambda _: None)
    monkeypatch.setattr(module, "named", lambda path: {"name": path.name})
    monkeypatch.setattr(module, "plot_accents", lambda *given: drawn.append(given))
    out, sheet = tmp_path / "out.json", tmp_path / "sheet.png"
    options = Namespace(artifact=Path("pen"), out=out, sheet=sheet, told="as typed")
    assert module.run(options) == 0
    ((shown, image),) = drawn
    assert shown == {language: [(texts[0], "a"), (texts[0], "b")] for language, texts in
                     SENTENCES.items()}  # fmt: skip
    assert image == sheet
    told, shipped = (json.loads(file.read_text("utf-8")) for file in (out, module.RESULTS))
    assert list(told) == list(shipped)
    told_of = ("bias", "seed")
    assert [told[name] for name in told_of] == [shipped[name] for name in told_of]
    assert (told["command"], told["machine"], told["hands"]) == ("as typed", machine(), 2)
    lines = {language: 2 * len(texts) for language, texts in SENTENCES.items()}
    assert {name: one["accents"]["right"] for name, one in told["languages"].items()} == lines
    assert told["all"]["accents"]["right"] == sum(lines.values())


def test_every_text_is_written_in_every_hand_by_its_letters_and_gets_its_marks() -> None:
    asked: list[tuple[list[str], list[str]]] = []

    class TellingPen:
        def write(self, texts: list[str], bias: float, seed: int, hands: list[str]) -> Any:
            assert (bias, seed) == (module.BIAS, module._SEED)
            asked.append((texts, hands))
            stroke = np.tile(np.array([[1, 4, 0], [1, -4, 1]], np.float32), (12, 1))
            place = np.repeat([0, 1], 12)
            return [Written(stroke, True, stroke, place < 0, place) for _ in texts]

    lines = module.write(cast(Pen, TellingPen()), cast(list[Hand], ["a", "b"]), ["né", "én"])
    assert asked == [(["ne", "ne", "en", "en"], ["a", "b", "a", "b"])]
    assert [line.text for line in lines] == ["né", "né", "én", "én"]
    assert all(len(line.marks) for line in lines)
    # Over its own letter.
    assert lines[0].marks[:, 0].mean() > lines[2].marks[:, 0].mean() + PAGE.px_per_unit


def test_marks_are_in_the_picture() -> None:
    ink = np.array([[0, 0, 0], [3, 2, 0], [3, -2, 1]], np.float32)
    letters = LinePen(PAGE, 0).move(ink)
    line = Line("é", letters, letters - (0, 10, 0))
    assert picture_of(line.letters) == picture(ink)
    assert picture_of(line.all) != picture(ink)
