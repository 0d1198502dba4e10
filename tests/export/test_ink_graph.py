"""The exported graphs of handwriting networks, their golden vectors, and the parity report."""

import copy
import shutil
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest
import torch
from onnx import numpy_helper
from safetensors.numpy import load_file
from safetensors.torch import save_file

from export.convert import load_model, read_manifest, sha256, write_json
from export.graph import ROW_INDEPENDENT, ConversionError, export_graph, tensor_offsets
from export.ink_golden import InkSample, draw_ink, drawn_from, sample_texts, training_mixtures
from export.parity.served import ServedGraph
from export.verify import Extent, verify
from models.generation import HandwritingStep
from models.handwriting import HandwritingConfig, HandwritingModel

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
        sample.points, type(sample.text)(sample.text.symbols, torch.tensor([2, 4, 9])), sample.noise
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


@pytest.mark.parametrize("scan", [True, False])
def test_the_prediction_network_is_exported_without_a_text(tmp_path: Path, scan: bool) -> None:
    torch.manual_seed(0)
    model = HandwritingModel(HandwritingConfig(units=12, mixtures=2, window=0, layers=2))
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    graph = export_graph(HandwritingStep(model), tmp_path / "model.safetensors", scan=scan)
    assert sum(n.op_type == "LayerNormalization" for n in graph.graph.all_nodes()) == 6
    assert not {"text", "length"} & {i.name for i in graph.graph.inputs}
    ir.save(graph, tmp_path / "model.onnx")
    session = ort.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    point = np.array([[0.5, -1, 0]], np.float32)
    time = (slice(None),) if not scan else (None,)
    feeds = {
        "point": point, "h0": np.zeros((1, 12), np.float32), "c0": np.zeros((1, 12), np.float32),
        "h1": np.zeros((1, 12), np.float32), "c1": np.zeros((1, 12), np.float32),
        "forced": point[time], "force": np.ones(1, bool)[time],
        "uniform": np.full(1, 0.5, np.float32)[time],
        "normal": np.zeros((1, 2), np.float32)[time], "bias": np.zeros(1, np.float32),
    }  # fmt: skip
    (mixture,) = session.run(["mixture"], feeds)
    expected, _, _ = model.step(torch.from_numpy(point), None, model.initial_state(1))
    assert np.abs(mixture.reshape(1, -1) - expected.detach().numpy()).max() < 1e-5


def test_an_operator_outside_the_allow_list_is_refused(
    model: HandwritingModel, scrawl: Path
) -> None:
    other = copy.deepcopy(model)
    readout = other.readout.forward
    other.readout.forward = lambda y: torch.sin(readout(y))
    with pytest.raises(ConversionError, match="outside the allow-list: Sin"):
        export_graph(HandwritingStep(other), scrawl / "model.safetensors", scan=False)


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
    scrawl: Path, tmp_path: Path, weight: str
) -> None:
    changed = with_served_weight_changed(scrawl, tmp_path / "scrawl", weight, 1e-3)
    broken = {f.name for f in verify(changed, None, _SMALL).findings if not f.holds}
    assert {"rounding", "log-density"} <= broken
