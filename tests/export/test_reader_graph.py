"""The exported graphs of a reader, its golden vectors, and the parity report."""

import copy
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from contract.golden import Golden
from contract.manifest import WEIGHTS
from contract.pieces import RESTS
from contract.reader import ReaderManifest
from export.artifact import load_model, read_artifact
from export.convert import convert, read_source, write_artifact
from export.golden import Sample
from export.kinds import KINDS
from export.parity.report import Extent, Served
from export.parity.served import follow
from export.reader import golden
from export.reader.golden import training_logits
from export.reader.parity import compare, make_work, reading
from export.variant import GraphWriter
from export.verify import verify
from models.generation import Step
from models.reader import ReaderConfig, ReaderModel, make_reader
from tests.export.changed import with_served_weight_changed
from tests.export.graphs import (
    check_nodes,
    check_weights,
    graph_file,
    served_graph,
    shipped_lines,
)
from training import checkpoint
from training.loop import CHECKPOINT

_SHIPPED = Path(__file__).parents[2] / "artifacts" / "reader"
_SMALL = Extent(sampled_steps=240, structure_steps=40, bit_steps=4, timed=False)
_STEPS, _ROWS = 60, 3
_FORMS = pytest.mark.parametrize("form", ["scan", "step"])


@pytest.fixture(scope="module")
def squint(made_once: Callable[[str], Path]) -> Path:
    return made_once("squint")


@pytest.fixture(scope="module")
def model(squint: Path) -> ReaderModel:
    made = load_model(squint, read_artifact(squint))
    assert isinstance(made, ReaderModel)
    return made


@pytest.fixture(scope="module")
def sample(model: ReaderModel) -> Sample:
    return golden.sample(model, _STEPS, _ROWS, seed=1)


@_FORMS
def test_its_nodes_are_native_and_keep_the_bits_of_a_row(squint: Path, form: str) -> None:
    check_nodes(squint, form, norms=6)


@_FORMS
def test_all_weights_are_those_of_the_file(squint: Path, form: str) -> None:
    assert "readout.parts.0" in check_weights(graph_file(squint, form))


@_FORMS
def test_served_steps_are_torchs(
    squint: Path, model: ReaderModel, sample: Sample, form: str
) -> None:
    graph = served_graph(squint, form)
    _, outputs = graph.run(graph.initial_state(_ROWS), sample.read(), {})
    assert np.abs(outputs["logits"] - training_logits(model, sample).numpy()).max() < 1e-4
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.stack.cells[1].weight_h[200, 7] += 0.01
    assert np.abs(outputs["logits"] - training_logits(other, sample).numpy()).max() > 1e-3


@_FORMS
def test_a_step_that_nothing_is_forced_on_rests(squint: Path, form: str) -> None:
    """What it is then given instead is not read."""
    graph = served_graph(squint, form)
    steps = golden.sample(ReaderModel(ReaderConfig(units=2)), 9, 1, seed=2).read()
    rests = steps | {"force": np.arange(9)[:, None] < 4}
    zeros = steps | {"forced": np.where(rests["force"][..., None], steps["forced"], 0)}
    outputs = [graph.run(graph.initial_state(1), s, {})[1]["logits"] for s in (rests, zeros, steps)]
    assert outputs[0].tobytes() == outputs[1].tobytes()
    assert outputs[0][:5].tobytes() == outputs[2][:5].tobytes()
    assert not np.array_equal(outputs[0][5:], outputs[2][5:])


def test_the_manifest_says_how_ink_is_cut(squint: Path) -> None:
    manifest = read_artifact(squint)
    assert isinstance(manifest, ReaderManifest)
    assert manifest.pieces.rests == RESTS
    assert not manifest.pieces.reordered
    assert manifest.ports.row == ()


@pytest.mark.parametrize(("rows", "computed"), [(2, 4), (6, 6)])
def test_golden_vectors_are_bounded_by_a_batch_as_large_as_trainings(
    monkeypatch: pytest.MonkeyPatch, rows: int, computed: int
) -> None:
    batches = []

    def noted(model: nn.Module, of: Sample) -> torch.Tensor:
        batches.append(of.symbols.shape[1])
        return training_logits(model, of)

    monkeypatch.setattr(golden, "training_logits", noted)
    monkeypatch.setattr(golden, "_STEPS", 8)
    golden.golden(ReaderModel(ReaderConfig(units=2)), {"batch": {"rows": rows}})
    assert batches == [computed] * 2


def test_a_bound_is_of_the_largest_error_of_all_rows_and_its_own_are_told(
    model: ReaderModel,
) -> None:
    found = golden.golden(model, {"batch": {"rows": 6}})
    read = golden.sample(model, golden._STEPS, 6, golden._SEED)
    truth = training_logits(copy.deepcopy(model).double(), read)
    error = (training_logits(model, read).double() - truth).abs()
    assert found.bounds["logits"] == pytest.approx(4 * error.max().item())
    assert found.training_error == pytest.approx(error[:, : golden._ROWS].max().item())


def test_it_says_whether_the_reader_has_learned_reordered_strokes(
    squint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def written(writer: GraphWriter, path: Path, **_: object) -> Step:
        """The same graphs, without tracing them again."""
        for name in (path.name, WEIGHTS):
            shutil.copy(squint / name, path.parent)
        return writer.step(filtered=False)

    monkeypatch.setattr(GraphWriter, "write", written)
    model, facts = read_source(squint)
    shares = {share: facts | {"data": facts["data"] | {"reordered": share}} for share in (0.0, 0.5)}
    write_artifact(tmp_path, "reads", model, shares[0.5])
    for path, learned in ((squint, False), (tmp_path, True)):
        manifest = read_artifact(path)
        assert isinstance(manifest, ReaderManifest)
        assert manifest.pieces.reordered is learned
    assert not KINDS["reader"].contract(shares[0.0])["pieces"].reordered


def test_a_sample_is_lines_with_rests_between(model: ReaderModel) -> None:
    rests = (golden.sample(model, 600, 1, seed=1).symbols == 0).all(-1)
    assert rests.any()
    assert not rests.all()
    longest = max(len(run) for run in "".join("r" if r else " " for r in rests[:, 0]).split())
    assert longest == RESTS


def test_golden_vectors_are_what_training_computes(squint: Path, model: ReaderModel) -> None:
    stored = Golden.load(squint / "golden.safetensors")
    assert stored.steps["force"].all()
    assert len(stored.steps["force"]) >= 160
    read = Sample(torch.from_numpy(stored.steps["forced"]), {}, {})
    wide = training_logits(copy.deepcopy(model).double(), read).numpy()
    assert np.abs(wide - stored.truth["logits"]).max() < 1e-12
    assert len({row.tobytes() for row in stored.steps["forced"].swapaxes(0, 1)}) > 1


def test_what_was_converted_keeps_every_bound(squint: Path) -> None:
    report = verify(squint, None, _SMALL)
    assert [f.name for f in report.findings] == shipped_lines("reader")
    assert [f.line() for f in report.findings if not f.holds] == []
    (structure,) = (f for f in report.findings if f.name == "structure")
    assert structure.detail.endswith(f" {_SMALL.structure_steps} steps")


@pytest.mark.parametrize("weight", ["readout.parts.0", "stack.cells.0.weight_h"])
def test_one_changed_element_of_what_is_served_breaks_the_report(
    squint: Path, model: ReaderModel, sample: Sample, tmp_path: Path, weight: str
) -> None:
    changed = with_served_weight_changed(squint, tmp_path / "squint", weight, 1e-2)
    for artifact, expected in ((squint, True), (changed, False)):
        outputs, _ = follow(served_graph(artifact, "scan"), sample)
        findings, _ = compare(model, sample, outputs["logits"])
        held = {f.name: f.holds for f in findings}
        assert held["rounding"] is held["log-probability"] is expected, findings
        assert held["reading"] or not expected, findings


def test_another_likeliest_symbol_turns_the_reading_red(model: ReaderModel, sample: Sample) -> None:
    logits = training_logits(model, sample).numpy()
    other = logits.copy()
    other[5, 1] = np.roll(other[5, 1], 1)
    findings = [compare(model, sample, given)[0] for given in (logits, other)]
    held = [{f.name: f.holds for f in found}["reading"] for found in findings]
    assert held == [True, False]


@pytest.mark.parametrize("by", [0.0, 2e-3, -2e-3])
def test_one_logit_off_breaks_the_bounds_either_way(
    model: ReaderModel, sample: Sample, by: float
) -> None:
    logits = training_logits(model, sample).numpy()
    other = logits.copy()
    other[5, 1, other[5, 1].argmax()] += by
    held = {f.name: f.holds for f in compare(model, sample, other)[0]}
    assert held["log-probability"] is held["score, invented ink"] is (by == 0)
    assert held["reading"]


@pytest.mark.parametrize("by", [8e-6, -8e-6])
def test_a_reader_that_is_a_little_surer_of_every_step_breaks_its_score_alone(
    model: ReaderModel, sample: Sample, by: float
) -> None:
    logits = training_logits(model, sample).numpy().astype(np.float64)
    logits[logits == logits.max(-1, keepdims=True)] += by
    held = {f.name: f.holds for f in compare(model, sample, logits)[0]}
    assert not held["score, invented ink"]
    assert held["log-probability"]


def test_in_mixed_work_each_row_rests_at_places_of_its_own(model: ReaderModel) -> None:
    force = make_work(golden.sample(model, 24, 5, seed=1), seed=1).steps["force"]
    assert not force.all(0).any()
    assert (force.mean(0) > 0.5).all()
    assert len({row.tobytes() for row in force.T}) == 5


@pytest.mark.parametrize(
    ("likeliest", "differ", "ties"), [(3, 0, 0), (4, 1, 0), (5, 0, 1), (7, 1, 0)]
)
def test_a_tie_is_between_the_symbols_of_both_sides(likeliest: int, differ: int, ties: int) -> None:
    """Two others that are tied with each other excuse no third."""
    trained, served = np.zeros((2, 4, 2, 9), np.float32)
    trained[..., likeliest] = 2
    served[..., 3] = 2
    served[..., 4], served[..., 5] = 2 - 1e-3, 2 - 2e-6
    trained[1:], trained[0, 1] = served[1:], served[0, 1]
    found = reading(trained, served)
    assert found.value == differ
    assert f"({ties} more are ties)" in found.detail


def test_a_reader_has_no_table_and_no_matrices_of_eight_bits(squint: Path, tmp_path: Path) -> None:
    for asked, reason in (("fold", "cannot be folded"), ("quantize", "has no matrices of eight")):
        with pytest.raises(ValueError, match=f"a reader model {reason}"):
            convert(squint, tmp_path / "never", **{asked: True})
    assert not list(tmp_path.iterdir())


def test_a_twin_is_not_served(tmp_path: Path) -> None:
    config = ReaderConfig(units=4, both_ways=True)
    weights = checkpoint.prefixed(make_reader(config).state_dict(), "best")
    checkpoint.save(tmp_path / CHECKPOINT, weights, {"kind": "reader", "model": asdict(config)})
    with pytest.raises(ValueError, match="reads both ways"):
        convert(tmp_path, tmp_path / "artifact")
    assert not (tmp_path / "artifact").exists()


def test_the_shipped_reader_rounds_no_worse_than_training_on_this_cpu() -> None:
    manifest = read_artifact(_SHIPPED)
    model, graph = load_model(_SHIPPED, manifest), Served(_SHIPPED, manifest).step
    lines = golden.sample(model, 40, manifest.provenance["batch"]["rows"], seed=1)
    findings, _ = compare(model, lines, follow(graph, lines)[0]["logits"])
    assert [f.line() for f in findings if not f.holds] == []
