"""What the legibility benchmark tells: of which lines each figure is, and by whose ink they are
judged."""

import json
import string
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contract.manifest import WEIGHTS
from contract.manifests import read_manifest
from lab.legibility import held_out
from lab.legibility import report as legibility
from lab.legibility.reading import Errors, Offsets, figures, in_units
from lab.legibility.scribbles import bounds
from lab.legibility.sheet import Shown
from lab.legibility.write_ink import Written
from training.ink.corpus import PenCorpus
from training.ink.prepare import Ink

_TEXTS = ["the first line", "one more line", "the third of them"]


def _ink(text: str, wide: float = 2.0, writer: str = "w") -> Ink:
    """A dash for each character."""
    offsets = np.tile(np.array([wide / 2, 0.0, 0.0], np.float32), (2 * len(text), 1))
    offsets[1::2, 2] = 1
    return Ink(text, offsets, wide * len(text), writer, "invented")


def test_a_rate_of_many_lines_is_of_all_their_characters() -> None:
    found = figures([Errors(10, 10), Errors(0, 90)])
    assert found == {"lines": 2, "edits": 10, "characters": 100, "cer": 0.1}


def test_points_in_units_are_as_far_apart_as_their_offsets_and_y_is_up() -> None:
    points = in_units(np.array([[1, 3, 0], [2, -3, 1]], np.float32))
    np.testing.assert_allclose(points[1, :2] - points[0, :2], (2, -3), atol=0.5)
    assert points[:, 2].tolist() == [0, 1]


def test_ink_is_held_against_nearly_the_widest_line_of_people() -> None:
    lines = [_ink("some people")] * 9 + [_ink("who wrote", wide=4.0)]
    assert bounds(lines).width_per_character > 3.7


@pytest.mark.parametrize(("length", "fit"), [(11, False), (12, True), (40, True), (41, False)])
def test_lines_of_two_words_and_of_12_to_40_characters_may_be_chosen(
    length: int, fit: bool
) -> None:
    ink = _ink("a " + (string.ascii_letters * 2)[: length - 2])
    assert held_out.candidates([ink]) == ([ink] if fit else [])


def test_marks_are_read_where_they_are_wanted_and_figures_where_those_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[bool, bool]] = []

    def read_pens(path: Path, tally: object, marks: bool, figures: bool) -> PenCorpus:
        asked.append((marks, figures))
        return PenCorpus("few", [])

    monkeypatch.setattr(held_out, "read_pens", read_pens)
    held_out.corpus(Path("any"), marks=True)
    held_out.corpus(Path("any"), figures=True)
    held_out.corpus_if_any(Path("any"), True)
    assert asked == [(True, False), (False, True), (True, False)]


def test_each_figure_is_of_the_ink_it_is_called_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invented sentences are read as they are, people's ink as nothing, the same texts of the pen
    but for a letter."""
    texts: dict[int, str] = {}
    sheet: list[Shown] = []

    how: list[tuple[object, ...]] = []

    def write(_: Path, asked: list[str], *given: object) -> list[Written]:
        written = []
        how.append(given)
        for text in asked:
            offsets = _ink(text).offsets
            texts[id(offsets)] = text
            none = np.zeros(len(offsets), int)
            written.append(Written(offsets, True, offsets, none > 0, none))
        kept.extend(written)  # or another might have its place
        return written

    def read(inks: list[Offsets], _: object) -> list[str]:
        said = [texts.get(id(ink), "") for ink in inks]
        return [text[1:] if text in _TEXTS else text for text in said]

    kept: list[Written] = []
    monkeypatch.setattr(legibility, "_SENTENCES", 9)
    monkeypatch.setattr(legibility, "write", write)
    monkeypatch.setattr(legibility, "read", read)
    monkeypatch.setattr(legibility, "plot_legibility", lambda shown, _: sheet.extend(shown))
    monkeypatch.setattr(legibility, "_model", lambda _: {})
    training = [_ink(text, wide=3.0, writer="other") for text in ("of others", _TEXTS[0])]
    places: Any = tmp_path / "legibility.json", tmp_path / "sheet.png"
    legibility.measure(Path("any"), [_ink(text) for text in _TEXTS], training, {}, *places)
    found, shipped = (json.loads(file.read_text()) for file in (places[0], legibility.RESULTS))
    assert ["command", "machine", "reader", *found] == [*shipped]
    assert (found["bias"], found["seed"]) == (shipped["bias"], shipped["seed"])
    assert how == [(found["bias"], found["seed"])] * 2
    letters = sum(map(len, _TEXTS))
    assert {n: found[n]["edits"] for n in ("real", "generated")} == {
        "real": letters, "generated": 3,
    }  # fmt: skip
    first = [written for written in kept if texts[id(written.offsets)] not in _TEXTS][:3]
    characters = sum(len(texts[id(written.offsets)]) for written in first)
    assert found["invented"] == {"lines": 3, "edits": 0, "characters": characters, "cer": 0.0}
    assert found["texts_in_training"] == 1
    assert found["sentences"]["people"] == asdict(bounds(training))
    assert [(one.real_reading, one.generated_reading) for one in sheet] == [
        ("", text[1:]) for text in _TEXTS
    ]


def test_a_model_is_told_by_the_hash_of_its_weights() -> None:
    pen = Path(__file__).parents[2] / "artifacts" / "handwriting"
    manifest = read_manifest(pen)
    told = legibility._model(pen)
    assert told["weights_sha256"] == manifest.files[WEIGHTS]
    assert (told["name"], told["updates"]) == ("handwriting", manifest.provenance["updates"])
