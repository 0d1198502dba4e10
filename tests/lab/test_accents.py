"""How accents are read: what is counted of readings, and that the sentences can be written."""

import numpy as np

from contract.ink import InkManifest
from lab.legibility.reading import PAGE, picture, picture_of
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


def test_marks_are_in_the_picture() -> None:
    ink = np.array([[0, 0, 0], [3, 2, 0], [3, -2, 1]], np.float32)
    letters = LinePen(PAGE, 0).move(ink)
    line = Line("é", letters, letters - (0, 10, 0))
    assert picture_of(line.letters) == picture(ink)
    assert picture_of(line.all) != picture(ink)
