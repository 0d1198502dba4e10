"""The exported graph keeps its three promises, and `check_graph` sees when one is broken."""

import gc
import json
import logging
from contextlib import suppress
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest
import torch
from safetensors.torch import load_file, save_file

from contract.manifest import sha256
from export.artifact import load_model, read_artifact
from export.graph import (
    ConversionError,
    _quiet,
    _uncollected,
    check_graph,
    export_graph,
    graph_of,
    tensor_offsets,
    trace,
)
from models.cells import CELLS, CellKind
from models.generation import LanguageStep
from models.language import LanguageConfig, LanguageModel
from tests.export.graphs import check_weights
from tests.export.least import LeastStep, LogitsStep


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    torch.manual_seed(0)
    return LanguageModel(LanguageConfig(units=24, embedding=8))


@pytest.fixture(scope="module")
def weights(model: LanguageModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "model.safetensors"
    save_file(model.state_dict(), path)
    return path


@pytest.fixture(scope="module")
def step(model: LanguageModel) -> LanguageStep:
    return LanguageStep(model, filtered=False)


@pytest.fixture(scope="module")
def traced(step: LanguageStep) -> ir.Model:
    """What graphs of the step are made of, traced once; nobody may change it."""
    return trace(step)


@pytest.fixture(scope="module")
def graph(traced: ir.Model, step: LanguageStep, weights: Path) -> ir.Model:
    return graph_of(traced, step, weights, scan=True)


def nodes(graph: ir.Model, operator: str) -> list[ir.Node]:
    return [n for n in graph.graph.all_nodes() if n.op_type == operator]


_NORMS_OF_A_LAYER = {"rnn": 1, "lstm": 3, "gru": 4}


@pytest.mark.parametrize("norm", ["layer", pytest.param("none", marks=pytest.mark.long)])
@pytest.mark.parametrize("cell", list(CELLS))
def test_every_layer_norm_is_one_native_node(cell: CellKind, norm: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    layers = 2 if cell == "rnn" else 1  # more of the others takes longer and tells the same
    config = LanguageConfig(cell=cell, norm=norm, units=12, embedding=4, layers=layers)
    model = LanguageModel(config)
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    step = LogitsStep(model)
    graph = export_graph(step, tmp_path / "model.safetensors", scan=False)
    expected = layers * _NORMS_OF_A_LAYER[cell] if norm == "layer" else 0
    assert len(nodes(graph, "LayerNormalization")) == expected
    ir.save(graph, tmp_path / "step.onnx")
    token = np.array([65, 66])
    feeds = {p.name: np.zeros((2, *p.shape), np.float32) for p in step.state_ports}
    feeds["token"] = token
    session = ort.InferenceSession(tmp_path / "step.onnx", providers=["CPUExecutionProvider"])
    (served,) = session.run(["logits"], feeds)
    expected_logits, _ = model.step(torch.from_numpy(token), model.initial_state(2))
    assert np.abs(served - expected_logits.detach().numpy()).max() < 1e-5


def test_epsilon_is_the_same_in_float32_and_float64(graph: ir.Model) -> None:
    for node in nodes(graph, "LayerNormalization"):
        assert node.attributes["epsilon"].as_float() == 2**-17


def test_a_graph_tells_nothing_of_the_machine_it_was_made_on(graph: ir.Model) -> None:
    """The exporter keeps with each node where in which file it came from."""
    assert not any(node.metadata_props or node.doc_string for node in graph.graph.all_nodes())


def test_a_missing_layer_norm_is_refused(model: LanguageModel, graph: ir.Model) -> None:
    bigger = LanguageModel(LanguageConfig(units=24, embedding=8, layers=2))
    with pytest.raises(
        ConversionError, match=r"3 LayerNormalization nodes, the model 6 .* subclass"
    ):
        check_graph(graph, LanguageStep(bigger, filtered=False))


@pytest.fixture
def least(tmp_path: Path) -> tuple[LeastStep, Path]:
    """A step to be changed, and its weights."""
    step = LeastStep()
    save_file(step.model.state_dict(), tmp_path / "model.safetensors")
    return step, tmp_path / "model.safetensors"


def test_a_decomposed_layer_norm_is_refused(least: tuple[LeastStep, Path]) -> None:
    step, weights = least
    norm = step.model.norm

    def by_hand(a: torch.Tensor) -> torch.Tensor:
        centred = a - a.mean(-1, keepdim=True)
        scale = (centred**2).mean(-1, keepdim=True).add(2**-17).sqrt()
        return centred / scale * norm.weight + norm.bias

    norm.forward = by_hand
    with pytest.raises(ConversionError, match=r"outside the allow-list|LayerNormalization nodes"):
        export_graph(step, weights, scan=False)


def test_an_operator_outside_the_allow_list_is_refused(least: tuple[LeastStep, Path]) -> None:
    step, weights = least
    readout = step.model.readout.forward
    step.model.readout.forward = lambda y: torch.sin(readout(y))
    with pytest.raises(ConversionError, match=r"outside the allow-list: Sin; .*export/graph\.py"):
        export_graph(step, weights, scan=False)


@pytest.fixture
def exported(graph: ir.Model, step: LanguageStep) -> tuple[ir.Model, LanguageStep]:
    """The graph over time, to be changed, and its step."""
    return graph.clone(), step


@pytest.mark.parametrize(
    ("operator", "domain"), [("MatMulInteger", ""), ("Relu", ""), ("Tanh", "com.example")]
)
def test_what_only_other_graphs_may_hold_is_refused_within_the_loop_too(
    exported: tuple[ir.Model, LanguageStep], operator: str, domain: str
) -> None:
    graph, step = exported
    check_graph(graph, step)
    node = next(n for n in nodes(graph, "Tanh") if n.graph is not graph.graph)
    node.op_type, node.domain = operator, domain
    with pytest.raises(ConversionError, match=f"outside the allow-list: {operator}"):
        check_graph(graph, step)


def test_a_function_is_refused(exported: tuple[ir.Model, LanguageStep]) -> None:
    graph, step = exported
    hidden = ir.Function(
        "com.example", "It", graph=ir.Graph([], [], nodes=[], opset_imports={"": 18}), attributes=[]
    )
    graph.functions[hidden.identifier()] = hidden
    with pytest.raises(ConversionError, match="hides operators in functions"):
        check_graph(graph, step)


@pytest.mark.parametrize("where", ["graph", "loop", "node"])
@pytest.mark.parametrize(("size", "fits"), [(16, True), (17, False)])
def test_more_numbers_than_a_constant_has_are_a_weight_wherever_they_stand(
    exported: tuple[ir.Model, LanguageStep], where: str, size: int, fits: bool
) -> None:
    graph, step = exported
    content = ir.tensor(np.zeros(size, np.float32), name="more")
    if where == "node":
        value = {"value": ir.AttrTensor("value", content)}
        graph.graph.insert_before(graph.graph[0], ir.Node("", "Constant", [], value.values()))
    else:
        (loop,) = nodes(graph, "Scan")
        owner = graph.graph if where == "graph" else loop.attributes["body"].as_graph()
        shape, kind = ir.Shape((size,)), ir.TensorType(ir.DataType.FLOAT)
        owner.register_initializer(
            ir.Value(name="more", shape=shape, type=kind, const_value=content)
        )
    if fits:
        check_graph(graph, step)
        return
    with pytest.raises(ConversionError, match=r"is inline|stands in for a weight"):
        check_graph(graph, step)


def test_a_parameter_that_is_not_in_the_file_is_refused(
    model: LanguageModel, traced: ir.Model, step: LanguageStep, tmp_path: Path
) -> None:
    state = model.state_dict()
    del state["readout.bias"]
    save_file(state, tmp_path / "model.safetensors")
    with pytest.raises(ConversionError, match=r"readout\.bias .* is inline, not in the file"):
        graph_of(traced, step, tmp_path / "model.safetensors", scan=False)


def test_a_weight_that_no_step_reads_is_refused() -> None:
    step = LeastStep()
    step.model.unread = torch.nn.Parameter(torch.zeros(3))
    with pytest.raises(ConversionError, match="weight unread is missing from the graph"):
        trace(step)


def test_an_inline_weight_is_refused(
    model: LanguageModel, exported: tuple[ir.Model, LanguageStep]
) -> None:
    graph, step = exported
    value = graph.graph.initializers["readout.weight"]
    value.const_value = ir.tensor(model.readout.weight.detach().numpy(), name=value.name)
    with pytest.raises(ConversionError, match=r"readout\.weight .* is inline"):
        check_graph(graph, step)


def test_two_parameters_on_the_same_bytes_are_refused(
    exported: tuple[ir.Model, LanguageStep],
) -> None:
    graph, step = exported
    initializers = graph.graph.initializers
    first = "stack.cells.0.norm_x.weight"
    initializers[first].const_value = initializers["stack.cells.0.norm_h.weight"].const_value
    with pytest.raises(ConversionError, match="merged"):
        check_graph(graph, step)


def test_the_graphs_read_the_very_bytes_pytorch_reads(artifact: Path) -> None:
    offsets = tensor_offsets(artifact / "model.safetensors")
    content = (artifact / "model.safetensors").read_bytes()
    for name, tensor in load_file(artifact / "model.safetensors").items():
        first, last = offsets[name]
        assert content[first:last] == tensor.numpy().tobytes()
    graphs = list(artifact.glob("*.onnx"))
    assert len(graphs) == 4
    for graph in graphs:
        check_weights(graph)


def test_every_graph_is_what_onnx_itself_takes_for_one(artifact: Path) -> None:
    """onnxruntime takes more: a loop without a name, which other tools of ONNX refuse."""
    for graph in artifact.glob("*.onnx"):
        onnx.checker.check_model(graph, full_check=True)


def test_what_a_file_says_of_itself_is_no_tensor(tmp_path: Path) -> None:
    save_file({"one": torch.zeros(3)}, tmp_path / "it.safetensors", {"made": "here"})
    size = (tmp_path / "it.safetensors").stat().st_size
    assert tensor_offsets(tmp_path / "it.safetensors") == {"one": (size - 12, size)}


def test_no_graph_tells_where_it_was_made(artifact: Path) -> None:
    for path in artifact.glob("*.onnx"):
        assert b"/export/" not in path.read_bytes()
        assert b"site-packages" not in path.read_bytes()


def test_the_manifest_names_every_file_and_its_hash(artifact: Path) -> None:
    manifest = json.loads((artifact / "manifest.json").read_text())
    on_disk = {p.name: sha256(p) for p in artifact.iterdir() if p.name != "manifest.json"}
    assert manifest["files"] == on_disk
    weights = {"model.safetensors", "golden.safetensors"}  # and nothing that only variants have
    assert {name for name in on_disk if not name.endswith(".onnx")} == weights
    assert manifest["format_version"] == 2
    assert manifest["layer_normalizations"] == 6
    assert manifest["provenance"]["updates"] > 0


def test_an_artifact_gives_the_trained_model_back_without_dropout(artifact: Path) -> None:
    model = load_model(artifact, read_artifact(artifact))
    assert model.config.input_dropout == model.config.recurrent_dropout == 0
    tokens, state = torch.randint(256, (9, 2)), model.initial_state(2)
    with torch.no_grad():
        training = model.train()(tokens, state)[0]
        assert torch.equal(training, model.eval()(tokens, state)[0])


def test_an_export_is_quiet_and_what_comes_after_it_is_not() -> None:
    log = logging.getLogger("export.graph")
    with suppress(ConversionError), _quiet():
        assert not log.isEnabledFor(logging.WARNING)
        raise ConversionError("no")
    assert log.isEnabledFor(logging.WARNING)


@pytest.mark.parametrize("looked_for", [True, False])
def test_garbage_is_looked_for_after_an_export_as_it_was_before(looked_for: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if looked_for else gc.disable)()
        with suppress(ZeroDivisionError), _uncollected():
            assert not gc.isenabled()
            1 / 0  # noqa: B018
        assert gc.isenabled() is looked_for
    finally:
        (gc.enable if before else gc.disable)()
