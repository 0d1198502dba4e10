"""The exported graphs of handwriting networks, their golden vectors, and the parity report."""

import copy
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from contract.golden import Arrays, Golden
from contract.mixture import outputs_of
from contract.noise import InkNoise
from export.artifact import load_model, read_artifact
from export.convert import convert
from export.golden import Sample
from export.ink import golden
from export.ink.golden import drawn_from, training_mixtures
from export.ink.parity import compare, make_work, padding, sampling
from export.ink.styles import StyleChoice, add_styles
from export.parity.report import Extent
from export.parity.served import ServedGraph, follow
from export.verify import verify
from models.generation import HandwritingStep
from models.handwriting import HandwritingConfig, HandwritingModel
from service.artifact import load_artifact
from tests.artifacts import HANDS, SCRAWL, invented_ink
from tests.export.changed import with_served_weight_changed
from tests.export.graphs import (
    check_nodes,
    check_weights,
    graph_file,
    served_graph,
    shipped_lines,
)
from training import checkpoint
from training.ink.corpus import PenCorpus
from training.loop import CHECKPOINT

_SMALL = Extent(sampled_steps=160, structure_steps=40, bit_steps=4, timed=False)
_STEPS, _ROWS = 40, 3
_FORMS = pytest.mark.parametrize("form", ["scan", "step"])


@pytest.fixture(scope="module")
def scrawl(made_once: Callable[[str], Path]) -> Path:
    return made_once("scrawl")


@pytest.fixture(scope="module")
def model(scrawl: Path) -> HandwritingModel:
    made = load_model(scrawl, read_artifact(scrawl))
    assert isinstance(made, HandwritingModel)
    return made


@pytest.fixture(scope="module")
def sample(model: HandwritingModel) -> Sample:
    return golden.sample(model, _STEPS, _ROWS, seed=1)


@_FORMS
def test_its_nodes_are_native_and_keep_the_bits_of_a_row(scrawl: Path, form: str) -> None:
    check_nodes(scrawl, form, norms=6)


@_FORMS
def test_all_weights_are_those_of_the_file(scrawl: Path, form: str) -> None:
    assert "window.positions" in check_weights(graph_file(scrawl, form))


def served(artifact: Path, form: str, sample: Sample, *, force: bool) -> Arrays:
    """Outputs `(T, B, ...)` of the graph for a sample, its points forced or its noise drawn."""
    graph = served_graph(artifact, form)
    steps = sample.read() if force else sample.drawn()
    return graph.run(graph.initial_state(_ROWS), steps, sample.rows())[1]


@_FORMS
def test_served_steps_are_torchs(
    scrawl: Path, model: HandwritingModel, sample: Sample, form: str
) -> None:
    outputs = served(scrawl, form, sample, force=True)
    assert np.abs(outputs["mixture"] - training_mixtures(model, sample).numpy()).max() < 1e-4
    assert np.abs(outputs["drawn"] - sample.symbols.numpy()).max() < 1e-4
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.window.parameters_of.weight[4, 7] += 0.01
    assert np.abs(outputs["mixture"] - training_mixtures(other, sample).numpy()).max() > 1e-3


@_FORMS
def test_served_ink_is_what_torch_draws_with_the_same_noise(
    scrawl: Path, sample: Sample, form: str
) -> None:
    # Fed back for all the steps, rounding grows a little.
    outputs = served(scrawl, form, sample, force=False)
    assert np.abs(outputs["drawn"] - sample.symbols.numpy()).max() < 2e-3


@torch.no_grad()
def test_character_and_end_are_torchs(
    scrawl: Path, model: HandwritingModel, sample: Sample
) -> None:
    short = replace(sample, row=sample.row | {"length": torch.tensor([2, 4, 5])})
    outputs = served(scrawl, "scan", short, force=True)
    step = HandwritingStep(model)
    state = step.initial_state(_ROWS)
    force = torch.ones(_ROWS, dtype=torch.bool)
    row = [short.row[p.name] for p in step.row_ports]
    for t in range(_STEPS):
        noise = (short.noise["uniform"][t], short.noise["normal"][t])
        results = step(*state, short.symbols[t], force, *noise, *row)
        state = results[: len(state)]
        assert outputs["character"][t].tolist() == results[-2].tolist()
        assert outputs["ended"][t].tolist() == results[-1].tolist()
    assert outputs["ended"].any(0).all()


def test_the_prediction_network_is_not_served(tmp_path: Path) -> None:
    model = HandwritingModel(HandwritingConfig(units=12, mixtures=2, window=0))
    weights = {f"best.{name}": tensor for name, tensor in model.state_dict().items()}
    facts = {"kind": "handwriting", "model": asdict(model.config)}
    checkpoint.save(tmp_path / CHECKPOINT, weights, facts)
    with pytest.raises(ValueError, match="is a prediction network"):
        convert(tmp_path, tmp_path / "artifact")
    assert not (tmp_path / "artifact").exists()


def test_golden_vectors_are_what_the_model_draws(scrawl: Path, model: HandwritingModel) -> None:
    stored = Golden.load(scrawl / "golden.safetensors")
    biases = stored.rows["bias"]
    assert biases.tolist() == sorted({*biases.tolist()})
    assert len({row.tobytes() for row in stored.rows["text"]}) == len(biases) > 1
    assert not stored.filtered.any()
    uniforms = stored.steps["uniform"]
    assert len(uniforms) >= 160  # a line's worth
    for row in stored.all_rows:  # each of a choice of its own, save near a border
        own, normals = InkNoise(golden._SEED, row).take(0, len(uniforms))
        assert (uniforms[:, row] == own).mean() > 0.8
        assert (stored.steps["normal"][:, row] == normals).all()
    assert stored.steps["force"].all()
    drawn = Sample(
        torch.from_numpy(stored.steps["forced"]),
        {name: torch.from_numpy(stored.steps[name]) for name in ("uniform", "normal")},
        {name: torch.from_numpy(array) for name, array in stored.rows.items()},
    )
    wide = training_mixtures(copy.deepcopy(model).double(), drawn)
    assert wide.shape[-1] == outputs_of(SCRAWL.mixtures)
    assert np.abs(wide.numpy() - stored.truth["mixture"]).max() < 1e-12
    points = drawn_from(wide, drawn)
    assert np.abs(points.numpy() - stored.truth["drawn"]).max() < 1e-12
    assert np.abs(stored.truth["drawn"] - stored.steps["forced"]).max() < 1e-4
    for nudge in (-0.9e-3, 0.9e-3):  # no draw lies near the border to another pen or Gaussian
        assert (drawn_from(wide, drawn, nudge) - points).abs().max() < 1e-12


def test_what_was_converted_keeps_every_bound(scrawl: Path, tmp_path: Path) -> None:
    # Of the 4 rows of its batch the ratio of rounding is luck, as one of them may go astray: 0.95
    # to 2.0 over 16 samples of 40 steps, and of 16 rows 1.02 to 1.29.
    artifact = shutil.copytree(scrawl, tmp_path / "scrawl")
    manifest = json.loads((artifact / "manifest.json").read_text())
    manifest["provenance"]["batch"]["rows"] = 16
    (artifact / "manifest.json").write_text(json.dumps(manifest))
    report = verify(artifact, None, replace(_SMALL, sampled_steps=16 * 40))
    assert [f.name for f in report.findings] == shipped_lines("handwriting")
    assert [f for f in report.findings if not f.holds] == []


@pytest.mark.parametrize("weight", ["window.parameters_of.weight", "above.cells.0.weight_h"])
def test_one_changed_element_of_what_is_served_breaks_the_report(
    scrawl: Path, model: HandwritingModel, sample: Sample, tmp_path: Path, weight: str
) -> None:
    changed = with_served_weight_changed(scrawl, tmp_path / "scrawl", weight, 1e-3)
    for artifact, expected in ((scrawl, True), (changed, False)):
        outputs, points = follow(served_graph(artifact, "scan"), sample)
        findings, _ = compare(model, sample, outputs["mixture"], points)
        held = {f.name: f.holds for f in findings}
        assert held.keys() == {"rounding", "log-density", "sampling", "score, sampled ink"}
        assert held["rounding"] is held["log-density"] is expected, findings
        assert held["sampling"] or not expected, findings


@pytest.mark.parametrize("by", [0.0, 5e-3, -5e-3])
def test_one_raw_output_off_breaks_the_bounds_either_way(
    model: HandwritingModel, sample: Sample, by: float
) -> None:
    raw = training_mixtures(model, sample).numpy().copy()
    raw[5, 1, 0] += by  # of lifting the pen
    held = {f.name: f.holds for f in compare(model, sample, raw, sample.symbols.numpy())[0]}
    assert held["log-density"] is held["score, sampled ink"] is (by == 0)


@pytest.mark.parametrize("by", [1e-5, -1e-5])
def test_a_pen_that_is_a_little_surer_of_every_point_breaks_its_score_alone(
    model: HandwritingModel, sample: Sample, by: float
) -> None:
    raw = training_mixtures(model, sample).numpy().copy()
    raw[..., 0] += by * (2 * sample.symbols.numpy()[..., 2] - 1)  # of lifting it where it was
    held = {f.name: f.holds for f in compare(model, sample, raw, sample.symbols.numpy())[0]}
    assert not held["score, sampled ink"]
    assert held["log-density"]


def test_a_density_may_be_off_by_a_ten_thousandth(model: HandwritingModel, sample: Sample) -> None:
    raw = training_mixtures(model, sample).numpy()
    for by, holds in ((5e-5, True), (9e-4, False)):
        other = raw.copy()
        other[5, 1, 0] += by
        held = {f.name: f.holds for f in compare(model, sample, other, sample.symbols.numpy())[0]}
        assert held["log-density"] is holds


def test_no_wrong_draw_passes_for_a_tie(model: HandwritingModel, sample: Sample) -> None:
    raw = training_mixtures(model, sample).numpy()
    points = sample.symbols.numpy()
    assert sampling(sample, raw, points).value == 0
    for wrong in (points + 1, points + np.float32(0.002), points * np.float32(np.nan)):
        assert sampling(sample, raw, wrong).value == points[..., 0].size
    louder = replace(sample, noise=sample.noise | {"normal": 2 * sample.noise["normal"]})
    wrong = drawn_from(torch.from_numpy(raw), louder).numpy()
    assert sampling(sample, raw, wrong).value > points[..., 0].size / 2


def test_a_draw_from_the_other_side_of_a_border_is_a_tie(
    model: HandwritingModel, sample: Sample
) -> None:
    raw = training_mixtures(model, sample).numpy()
    # Each uniform just below a border: that of its own point, found by halving.
    other = drawn_from(torch.from_numpy(raw), sample, 0.3)
    low, high = torch.zeros_like(sample.noise["uniform"]), torch.full((1,), 0.3)
    high = high.expand_as(low).clone()
    for _ in range(22):
        middle = (low + high) / 2
        moved = replace(sample, noise=sample.noise | {"uniform": sample.noise["uniform"] + middle})
        same = (drawn_from(torch.from_numpy(raw), moved) - sample.symbols).abs().amax(-1) < 1e-3
        low, high = torch.where(same, middle, low), torch.where(same, high, middle)
    below = replace(sample, noise=sample.noise | {"uniform": sample.noise["uniform"] + low})
    across = drawn_from(torch.from_numpy(raw), below, 2e-6).numpy()
    moved_at_all = (other - sample.symbols).abs().amax(-1).numpy() > 1e-3
    crossed = np.abs(across - sample.symbols.numpy()).max(-1) > 1e-3
    assert (crossed & moved_at_all).sum() > 5
    found = sampling(below, raw, across)
    assert found.value == 0, found
    assert "(0 more are ties)" not in found.detail
    # And from above a border, which the others' point lies below.
    noise = below.noise | {"uniform": below.noise["uniform"] + 2e-6}
    above = replace(below, symbols=torch.from_numpy(across), noise=noise)
    found = sampling(above, raw, drawn_from(torch.from_numpy(raw), above, -2e-6).numpy())
    assert found.value == 0, found
    assert "(0 more are ties)" not in found.detail


def test_points_are_bounded_by_how_far_rounding_moved_those_of_training(
    scrawl: Path, model: HandwritingModel
) -> None:
    found = Golden.load(scrawl / "golden.safetensors")
    steps, rows = (
        {n: torch.from_numpy(a) for n, a in of.items()} for of in (found.steps, found.rows)
    )
    mine = Sample(steps["forced"], {n: steps[n] for n in ("uniform", "normal")}, rows)
    moved = drawn_from(training_mixtures(model, mine), mine).numpy() - found.truth["drawn"]
    assert found.bounds["drawn"] == pytest.approx(4 * np.abs(moved).max(), rel=1e-3)
    assert found.exact.keys() == {"character", "ended"}


def test_in_mixed_work_rows_read_for_a_while_of_their_own_and_texts_end_anywhere(
    model: HandwritingModel,
) -> None:
    drawn = golden.sample(model, 24, 33, seed=1)
    work, rows = make_work(drawn, seed=1), drawn.rows()
    read, length = work.steps["force"].sum(0), work.options["length"]
    assert np.array_equal(work.steps["force"], np.arange(24)[:, None] < read)
    assert len(set(read.tolist())) > 10
    assert (read < 24).all()  # and then draws
    assert len(set(length.tolist())) > 3
    assert (length <= rows["length"]).all()
    places = np.arange(rows["text"].shape[1])
    within = np.where(places < length[:, None], rows["text"], 0)
    assert np.array_equal(work.options["text"], within)
    assert len(set(work.options["bias"].tolist())) == 33


class SeesPadding:
    """A graph whose mixture depends on the last symbol of the row's text, used or not."""

    def __init__(self, graph: ServedGraph) -> None:
        self._graph = graph
        self.initial_state = graph.initial_state

    def run(self, state: Arrays, steps: Arrays, row: Arrays) -> tuple[Arrays, Arrays]:
        after, outputs = self._graph.run(state, steps, row)
        seen = np.where(row["text"][:, -1:] > 0, np.float32(1e-6), np.float32(0))
        return after, outputs | {"mixture": outputs["mixture"] + seen}


def test_a_graph_that_sees_the_padding_turns_its_finding_red(scrawl: Path, sample: Sample) -> None:
    graph = served_graph(scrawl, "scan")
    assert padding(graph, sample).holds
    assert not padding(SeesPadding(graph), sample).holds


def test_an_artifact_converted_again_keeps_its_stored_hands(
    scrawl: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, old = "styles.safetensors", read_artifact(scrawl)

    def without_hands(folder: Path, *_: object) -> None:
        """What a conversion writes, without waiting for it: that is tested elsewhere."""
        shutil.copytree(scrawl, folder, dirs_exist_ok=True)
        (folder / file).unlink()
        files = {name: sha for name, sha in old.files.items() if name != file}
        old.model_copy(update={"styles": (), "files": files}).write(folder)

    monkeypatch.setattr("export.convert.write_artifact", without_hands)
    convert(scrawl, tmp_path / "again")
    new = read_artifact(tmp_path / "again")
    assert [hand.id for hand in old.styles] == list(HANDS)
    assert new.styles == old.styles
    assert new.files == old.files
    assert (tmp_path / "again" / file).read_bytes() == (scrawl / file).read_bytes()
    load_artifact(tmp_path / "again")


def test_a_pen_has_no_table(scrawl: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be folded"):
        convert(scrawl, tmp_path / "never", fold=True)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("line", [1, -1])
def test_a_hand_of_a_line_that_nobody_wrote_is_refused(
    inks: Path, tmp_path: Path, line: int
) -> None:
    scrawl = shutil.copytree(inks / "scrawl", tmp_path / "scrawl")
    corpus = PenCorpus("invented", [invented_ink("upright", 0)])
    choice = StyleChoice(id="late", description="invented", writer="upright", line=line)
    with pytest.raises(ValueError, match="upright wrote 1 fitting lines"):
        add_styles(scrawl, corpus, [choice])
