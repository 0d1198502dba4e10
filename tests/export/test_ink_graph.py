"""The exported graphs of handwriting networks, their golden vectors, and the parity report."""

import copy
import shutil
from dataclasses import asdict
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
from onnx import numpy_helper
from safetensors.numpy import load_file

from export.convert import convert, load_model, read_manifest, sha256, write_json
from export.graph import ROW_INDEPENDENT, tensor_offsets
from export.ink import parity as ink
from export.ink.golden import InkSample, draw_ink, drawn_from, sample_texts, training_mixtures
from export.parity.served import ServedGraph
from export.verify import Extent, verify
from models.generation import HandwritingStep
from models.handwriting import HandwritingConfig, HandwritingModel
from training import checkpoint
from training.loop import CHECKPOINT

_SMALL = Extent(sampled_bytes=320, structure_steps=60, bit_steps=8, timed=False)
_STEPS, _ROWS = 40, 3
_FORMS = pytest.mark.parametrize("form", ["scan", "step"])


@pytest.fixture(scope="module")
def scrawl(inks: Path) -> Path:
    return inks / "scrawl"


@pytest.fixture(scope="module")
def model(scrawl: Path) -> HandwritingModel:
    made = load_model(scrawl, read_manifest(scrawl))
    assert isinstance(made, HandwritingModel)
    return made


@pytest.fixture(scope="module")
def sample(model: HandwritingModel) -> InkSample:
    return draw_ink(model, _STEPS, _ROWS, seed=1)


def graph_file(artifact: Path, form: str) -> Path:
    return artifact / read_manifest(artifact)["graphs"][form]["plain"]


def all_nodes(path: Path) -> list[ir.Node]:
    return list(ir.load(path).graph.all_nodes())


@_FORMS
def test_every_layer_norm_is_one_native_node(scrawl: Path, form: str) -> None:
    nodes = all_nodes(graph_file(scrawl, form))
    assert sum(n.op_type == "LayerNormalization" for n in nodes) == 6
    assert read_manifest(scrawl)["layer_normalizations"] == 6
    assert sum(n.op_type == "Scan" for n in nodes) == (form == "scan")


@_FORMS
def test_operators_are_those_whose_rows_keep_their_bits(scrawl: Path, form: str) -> None:
    assert {n.op_type for n in all_nodes(graph_file(scrawl, form))} <= ROW_INDEPENDENT


@_FORMS
def test_all_weights_are_those_of_the_file(scrawl: Path, form: str) -> None:
    offsets = tensor_offsets(scrawl / "model.safetensors")
    proto = onnx.load(graph_file(scrawl, form), load_external_data=False)
    external = {t.name: t for t in proto.graph.initializer if t.external_data}
    assert external.keys() == offsets.keys()
    assert "window.positions" in external
    for name, tensor in external.items():
        place = {e.key: e.value for e in tensor.external_data}
        assert place["location"] == "model.safetensors"
        assert int(place["offset"]) == offsets[name][0]


def served(artifact: Path, form: str, sample: InkSample, *, force: bool) -> dict[str, np.ndarray]:
    """Outputs `(T, B, ...)` of the graph for a sample, its points forced or its noise drawn."""
    graph = ServedGraph(graph_file(artifact, form), read_manifest(artifact), scan=form == "scan")
    steps = {
        "forced": sample.points.numpy(),
        "force": np.full((_STEPS, _ROWS), force),
        "uniform": sample.noise.uniforms.numpy(),
        "normal": sample.noise.normals.numpy(),
    }
    row = {
        "bias": sample.noise.bias.numpy(),
        "text": sample.text.symbols.numpy(),
        "length": sample.text.length.numpy(),
    }
    return graph.run(graph.initial_state(_ROWS), steps, row)[1]


@_FORMS
def test_served_steps_are_torchs(
    scrawl: Path, model: HandwritingModel, sample: InkSample, form: str
) -> None:
    outputs = served(scrawl, form, sample, force=True)
    assert np.abs(outputs["mixture"] - training_mixtures(model, sample).numpy()).max() < 1e-4
    assert np.abs(outputs["drawn"] - sample.points.numpy()).max() < 1e-4
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.window.parameters_of.weight[4, 7] += 0.01
    assert np.abs(outputs["mixture"] - training_mixtures(other, sample).numpy()).max() > 1e-3


@_FORMS
def test_served_ink_is_what_torch_draws_with_the_same_noise(
    scrawl: Path, sample: InkSample, form: str
) -> None:
    # Fed back for all the steps, rounding grows a little.
    outputs = served(scrawl, form, sample, force=False)
    assert np.abs(outputs["drawn"] - sample.points.numpy()).max() < 2e-3


@torch.no_grad()
def test_character_and_end_are_torchs(
    scrawl: Path, model: HandwritingModel, sample: InkSample
) -> None:
    short = InkSample(
        sample.points, type(sample.text)(sample.text.symbols, torch.tensor([2, 4, 5])), sample.noise
    )
    outputs = served(scrawl, "scan", short, force=True)
    step = HandwritingStep(model)
    state = [torch.zeros(_ROWS, *p.shape, dtype=p.dtype) for p in step.state_ports]
    force = torch.ones(_ROWS, dtype=torch.bool)
    for t in range(_STEPS):
        noise = short.noise
        inputs = (short.points[t], force, noise.uniforms[t], noise.normals[t], noise.bias)
        results = step(*state, *inputs, *short.text)
        state = list(results[: len(state)])
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
    golden = {n: torch.from_numpy(a) for n, a in load_file(scrawl / "golden.safetensors").items()}
    text = sample_texts(2)
    assert torch.equal(golden["text"], text.symbols)
    assert torch.equal(golden["length"], text.length)
    noise = type(draw_ink(model, 1, 1, 0).noise)(
        golden["uniforms"], golden["normals"], golden["bias"]
    )
    drawn = InkSample(golden["points"], text, noise)
    wide = training_mixtures(copy.deepcopy(model).double(), drawn)
    assert (wide - golden["mixture_float64"]).abs().max() < 1e-12
    assert (drawn_from(wide, noise) - golden["drawn_float64"]).abs().max() < 1e-12
    assert (golden["drawn_float64"] - golden["points"]).abs().max() < 1e-4
    for nudge in (-0.9e-3, 0.9e-3):  # no draw lies near the border to another pen or Gaussian
        near = type(noise)(golden["uniforms"] + nudge, golden["normals"], golden["bias"])
        assert (drawn_from(wide, near) - golden["drawn_float64"]).abs().max() < 1e-12


def with_served_weight_changed(artifact: Path, folder: Path, name: str, by: float) -> Path:
    """A copy whose graphs read one element of a weight `by` larger than PyTorch."""
    shutil.copytree(artifact, folder)
    changed = load_file(folder / "model.safetensors")[name].copy()
    changed.flat[np.abs(changed).argmax()] += by
    for path in folder.glob("*.onnx"):
        proto = onnx.load(path, load_external_data=False)
        (place,) = (i for i, t in enumerate(proto.graph.initializer) if t.name == name)
        proto.graph.initializer[place].CopyFrom(numpy_helper.from_array(changed, name))
        path.write_bytes(proto.SerializeToString())
    manifest = read_manifest(folder)
    manifest["files"] = {file: sha256(folder / file) for file in manifest["files"]}
    write_json(folder / "manifest.json", manifest)
    return folder


def test_what_was_converted_keeps_every_bound(scrawl: Path) -> None:
    report = verify(scrawl, None, _SMALL)
    names = [f.name for f in report.findings]
    assert names[:6] == [
        "structure", "rounding", "log-density", "sampling", "score, sampled ink", "padding",
    ]  # fmt: skip
    assert {"bits", "bits, control", "operators"} <= set(names)
    assert [f for f in report.findings if not f.holds] == []


@pytest.mark.parametrize("weight", ["window.parameters_of.weight", "above.cells.0.weight_h"])
def test_one_changed_element_of_what_is_served_breaks_the_report(
    scrawl: Path, model: HandwritingModel, sample: InkSample, tmp_path: Path, weight: str
) -> None:
    changed = with_served_weight_changed(scrawl, tmp_path / "scrawl", weight, 1e-3)
    for artifact, expected in ((scrawl, True), (changed, False)):
        graph = ServedGraph(graph_file(artifact, "scan"), read_manifest(artifact), scan=True)
        findings, _ = ink.rounding(model, sample, ink.serve_one_by_one(graph, sample))
        assert [f.name for f in findings] == ["rounding", "log-density"]
        assert all(f.holds is expected for f in findings), findings
