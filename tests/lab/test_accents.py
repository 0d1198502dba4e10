"""How accents are read: what is counted of readings, and that the sentences can be written."""

from typing import Any, cast

import numpy as np
import pytest

from contract.ink import InkManifest
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
