"""The reader judged: what is counted, of whom, and that a worse reader comes out worse."""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from contract.manifest import WEIGHTS, sha256
from contract.pieces import RESTS, cut, line_of
from contract.reader import best_path
from lab.legibility import held_out
from lab.legibility.reading import Errors
from lab.reading import report
from lab.reading.readers import Reader, parameters_of, read, reader_of
from models.reader import ReaderConfig, make_reader
from tests.artifacts import SQUINT
from tests.service.altered import edit_manifest
from training import checkpoint
from training.ink.line import Tally
from training.ink.prepare import Ink, prepare
from training.ink.synthetic import synthetic_lines
from training.loop import CHECKPOINT
from training.reader.rows import strokes_of


@pytest.fixture(scope="module")
def inks() -> list[Ink]:
    return prepare(synthetic_lines(12, 5), Tally())[:6]


@pytest.fixture(scope="module")
def squint(made_once: Callable[[str], Path]) -> Path:
    return made_once("squint")


@pytest.fixture
def twin(tmp_path: Path) -> Path:
    """A run of random weights."""
    torch.manual_seed(1)
    config = ReaderConfig(units=4, both_ways=True)
    weights = checkpoint.prefixed(make_reader(config).state_dict(), "best")
    checkpoint.save(
        tmp_path / CHECKPOINT, weights, {"kind": "reader", "model": asdict(config), "data": {}}
    )
    return tmp_path


def test_a_pen_is_no_reader() -> None:
    pen = Path(__file__).parents[2] / "artifacts" / "handwriting"
    with pytest.raises(ValueError, match="is of kind handwriting; only a reader reads ink"):
        reader_of(pen)


def test_a_run_of_a_text_model_is_no_reader(tmp_path: Path) -> None:
    checkpoint.save(tmp_path / CHECKPOINT, {}, {"kind": "language"})
    with pytest.raises(ValueError, match="is no run of a reader; only a reader reads ink"):
        reader_of(tmp_path)


def test_an_artifact_reads_what_its_network_reads(squint: Path, inks: list[Ink]) -> None:
    run_of_it = reader_of(squint)
    model = make_reader(SQUINT)
    model.load_state_dict(_weights(squint))
    for ink in inks:
        line = line_of(strokes_of(ink))
        assert line is not None
        pieces = cut(line)
        rests = torch.zeros(RESTS, 1, pieces.shape[1])
        given = torch.cat([rests[:1], torch.from_numpy(pieces)[:, None], rests])
        logits, _ = model(given, torch.tensor([len(given)]), model.initial_state(1))
        assert np.abs(run_of_it.logits(pieces) - logits[:, 0].detach().numpy()).max() < 1e-4
    (text, *_) = read(run_of_it, inks[:1])
    assert text == "".join(r.character for r in best_path(logits_of(run_of_it, inks[0])))


def test_an_artifact_rests_as_often_as_it_says(
    squint: Path, inks: list[Ink], tmp_path: Path
) -> None:
    patient = shutil.copytree(squint, tmp_path / "squint")
    edit_manifest(patient, lambda manifest: manifest["pieces"].update({"rests": 9}))
    pieces = cut([np.array([[0.0, 0.0], [3.0, 1.0]])])
    assert len(reader_of(patient).logits(pieces)) == 1 + len(pieces) + 9


def _weights(artifact: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return load_file(artifact / "model.safetensors")


def logits_of(reader: Reader, ink: Ink) -> np.ndarray:
    line = line_of(strokes_of(ink))
    assert line is not None
    return reader.logits(cut(line))


def test_a_run_is_read_with_its_best_weights(twin: Path, inks: list[Ink]) -> None:
    assert parameters_of(twin) == sum(p.numel() for p in make_reader(
        ReaderConfig(units=4, both_ways=True)).parameters())  # fmt: skip
    assert len(read(reader_of(twin), inks)) == len(inks)
    with pytest.raises(ValueError, match="has neither"):
        reader_of(twin / "nowhere")


def test_everything_is_judged_on_the_same_lines(
    squint: Path, twin: Path, inks: list[Ink], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "intervals", lambda found: {n: len(e) for n, e in found.items()})
    said = iter([ink.text[1:] for ink in inks])
    content = report.measure(squint, twin, inks, inks[:2], lambda _: next(said))
    characters = {found["characters"] for found in content["lines"].values()}
    assert characters == {sum(len(ink.text) for ink in inks)}
    assert content["lines"]["tesseract"]["edits"] == len(inks)
    assert content["words"].keys() == {"reader", "twin"}
    assert {found["lines"] for found in content["words"].values()} == {2}
    assert [goal["name"] for goal in content["goals"]] == ["reader / Tesseract", "reader / twin"]
    assert not content["goals"][0]["met"]  # it squints
    assert content["intervals"] == dict.fromkeys(("tesseract", "reader", "twin"), len(inks))
    assert content["parameters"] == {"reader": parameters_of(squint), "twin": parameters_of(twin)}
    assert len(set(content["parameters"].values())) == 2
    weights = load_file(squint / WEIGHTS).values()
    assert content["parameters"]["reader"] == sum(tensor.numel() for tensor in weights)
    json.dumps(content)


def test_what_was_measured_is_told_by_hash(squint: Path, twin: Path, inks: list[Ink]) -> None:
    content = report.measure(squint, twin, inks[:1], inks[:1], lambda _: "")
    assert content["models"] == {
        "reader": {"name": "squint", WEIGHTS: sha256(squint / WEIGHTS)},
        "twin": {"name": twin.name, CHECKPOINT: sha256(twin / CHECKPOINT)},
    }


def test_without_a_twin_its_goal_is_not_judged(squint: Path, inks: list[Ink]) -> None:
    content = report.measure(squint, squint / "none", inks, inks[:1], lambda _: "")
    assert [goal["name"] for goal in content["goals"]] == ["reader / Tesseract"]


def test_a_reader_that_learned_them_reads_delayed_strokes_where_they_stand(
    squint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And as they were written beside that; one that has not, as they were written."""
    copy = Path(shutil.copytree(squint, tmp_path / "squint"))
    edit_manifest(copy, lambda manifest: manifest["pieces"].update(reordered=True))
    word = np.array([[0, 0, 0], *[[2, (-1) ** k, 0] for k in range(30)], [2, 0, 1]], np.float32)
    bar = np.array([[-50, 4, 0], [4, 0, 1]], np.float32)
    late = Ink("t", np.concatenate([word, bar]), 62.0, "w", "invented")
    line = line_of(strokes_of(late))
    assert line is not None
    for reader, reordered in ((reader_of(squint), False), (reader_of(copy), True)):
        given: list[np.ndarray] = []
        read(replace(reader, logits=partial(_noted, reader, given)), [late])
        assert given[0].tolist() == cut(line, reordered=reordered).tolist()
        assert given[0].tolist() != cut(line, reordered=not reordered).tolist()
    asked: list[bool] = []
    monkeypatch.setattr(report, "read", lambda reader, _: asked.append(reader.reordered) or ["l"])
    content = report.measure(copy, copy / "none", [late], [late], lambda _: "")
    assert content["words"].keys() == {"reader", "reader, as written"}
    assert asked == [True, True, False, False]  # lines and words of either


def _noted(reader: Reader, given: list[np.ndarray], pieces: np.ndarray) -> np.ndarray:
    given.append(pieces)
    return reader.logits(pieces)


def test_goals_are_ratios_of_rates() -> None:
    goals = report.goals_of({"reader": 0.15, "tesseract": 0.3, "twin": 0.1})
    assert [goal.met for goal in goals] == [True, False]
    assert [goal.value for goal in goals] == pytest.approx([0.5, 1.5])


def test_an_interval_holds_the_ratio_itself() -> None:
    mine = [Errors(i % 4, 10) for i in range(60)]
    theirs = [Errors(3, 10)] * 60
    low, high = report.intervals({"reader": mine, "tesseract": theirs})["reader / tesseract"]
    assert low < 0.5 < high
    # Of the mean of 60 draws out of 0 to 3, each a third of what the other misreads.
    deviation = (1.25 / 60) ** 0.5 / 3
    assert high - low == pytest.approx(2 * 1.96 * deviation, rel=0.06)


def test_words_that_are_judged_are_the_first_by_their_hashes(
    inks: list[Ink], monkeypatch: pytest.MonkeyPatch
) -> None:
    few = [replace(inks[0], text=text) for text in ("one", "two", "three", "four")]
    monkeypatch.setattr(report, "_WORDS", 2)
    assert report.words_of(few) == sorted(few, key=held_out.identity)[:2]


def test_words_are_of_letters_without_a_space(inks: list[Ink]) -> None:
    words = report.words_of([*inks, replace(inks[0], text="a")])
    assert words
    assert all(len(w.text) > 1 and " " not in w.text for w in words)
