"""Models of eight bits, trained on from ones of float32: served exactly as they were trained."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest
import torch
from safetensors.numpy import load_file
from safetensors.torch import save_file
from torch import nn

from contract.integers import LARGEST_INPUT
from contract.manifest import WEIGHTS, Finding
from export import variant
from export.__main__ import main
from export.artifact import read_artifact
from export.convert import convert, provenance, read_source
from export.cuda import without_kernel
from export.graph import trace
from export.integers import integer_products, worths
from export.parity.bits import MAX_COST
from export.parity.replay import replay
from export.parity.report import Extent, Report, Served
from export.verify import verify
from models.generation import Step
from models.quantized import EightBits, settle
from service.artifact import load_artifact
from service.attestation import attest
from service.engine.runners import ScanRunner, SlotRunner
from service.engine.runtime import Runtime
from tests.artifacts import SCRAWL
from tests.export.signed import require_the_same_on_cuda
from tests.training.pens import judged_by_short_rows, pen_recipe
from tests.training.tiny import Interrupted, stop_after, tensors, tiny_recipe, undrawn
from training.config import Recipe
from training.ink.corpus import PenCorpus, read_pens
from training.ink.line import Tally
from training.loop import LOG
from training.recipe import FOLDER, read_recipe
from training.run import carry_out

SMALL = Extent(sampled_steps=80, structure_steps=12, bit_steps=3, timed=False)
_PRODUCT = "MatMulInteger"
_SHIPPED = Path(__file__).parents[2] / "artifacts"
_EXACT = {"language": "shakespeare", "handwriting": "handwriting"}
LEAST = replace(SMALL, sampled_steps=40, structure_steps=5)


def of_text(corpus: Path) -> Recipe:
    recipe = tiny_recipe(corpus, epochs=0.5, learning_rate=1e-3, validate_every_epochs=0.1)
    return replace(recipe, model=replace(recipe.model, precision="int8"))


def of_ink(pens: Path, folder: Path) -> Recipe:
    lines = read_pens(pens / "invented.npz", Tally()).inks
    PenCorpus("few", lines[:60]).save(folder / "few.npz")
    recipe = pen_recipe(folder / "few.npz")
    often = {"epochs": 0.4, "validate_every_epochs": 0.2}
    training = replace(recipe.training, **often)
    batch = replace(recipe.batch, growing=False)
    model = replace(SCRAWL, precision="int8")
    return replace(recipe, model=model, training=training, batch=batch)


@pytest.fixture(scope="module", autouse=True)
def _traced_once() -> Iterator[None]:
    """What a network is traced to is that of every network of its shape: here one that is trained
    in eight bits and one that is rounded to them."""
    traced = dict[tuple[str, ...], ir.Model]()

    def once(step: Step) -> ir.Model:
        ports = (*step.state_ports, *step.step_ports, *step.row_ports, *step.output_ports)
        weights = [f"{name} {w.shape} {w.dtype}" for name, w in step.model.state_dict().items()]
        shape = (str(type(step)), str(step.model), *map(str, ports), *weights)
        if shape not in traced:
            traced[shape] = trace(step)
        return traced[shape]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(variant, "trace", once)
        yield


@pytest.fixture(scope="module")
def text(artifact: Path, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of text; nobody may change it."""
    run = tmp_path_factory.mktemp("text") / "run"
    with undrawn():
        carry_out(of_text(corpus), run, "cpu", Path(), artifact)
    return run


@pytest.fixture(scope="module", params=["text", "ink"])
def made(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path, Path]:
    """The artifact that was begun from, the run and its artifact of eight bits."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "text":
        start, run = (request.getfixturevalue(name) for name in ("artifact", "text"))
    else:
        made_once = request.getfixturevalue("made_once")
        start, run = made_once("scrawl"), folder / "run"
        recipe = of_ink(made_once("pens"), folder)
        with undrawn(), judged_by_short_rows():
            carry_out(recipe, run, "cpu", Path(), start)
    convert(run, folder / "small")
    return start, run, folder / "small"


@pytest.fixture(scope="module")
def report(made: tuple[Path, Path, Path], corpus: Path) -> Report:
    return verify(made[2], corpus.parent, SMALL)


def test_the_report_has_the_lines_and_bounds_of_the_exact_model_and_holds(
    made: tuple[Path, Path, Path], report: Report
) -> None:
    assert report.holds, [finding.line() for finding in report.findings]
    exact = read_artifact(_SHIPPED / _EXACT[read_artifact(made[2]).kind])
    lines = {(f.name, f.bound) for f in exact.parity or ()}
    timed = {("bits, cost", MAX_COST)}  # of a full report alone
    assert {(f.name, f.bound) for f in report.findings} == lines - timed


def test_it_is_attested_on_both_runners(made: tuple[Path, Path, Path]) -> None:
    artifact = load_artifact(made[2])
    for kind in (ScanRunner, SlotRunner):
        verdict = attest(artifact, kind(artifact, Runtime("cpu", "scan", 1, slots=2)))
        assert verdict.ok, verdict


def test_it_begins_about_where_the_other_ended_and_learns(made: tuple[Path, Path, Path]) -> None:
    before = read_artifact(made[0]).provenance["validation_loss"]
    losses = [json.loads(r)["validation_loss"] for r in (made[1] / LOG).read_text().splitlines()]
    if read_artifact(made[0]).kind == "language":  # it had learned all there is
        assert max(losses) < before + 0.05
    else:  # it had learned nothing
        assert losses[-1] < losses[0] - 0.1


def test_the_manifest_says_what_it_was_begun_from(made: tuple[Path, Path, Path]) -> None:
    start, _, small = (read_artifact(path) if path.name != "run" else None for path in made)
    assert start is not None
    assert small is not None
    assert (start.precision, small.precision) == ("float32", "int8")
    assert small.provenance["from"] == {"name": start.name, "digest": start.digest}
    assert load_artifact(made[2]).digest == small.digest
    assert small.variant.exact


def test_matrices_are_a_quarter_and_no_graph_for_a_cpu_has_them_as_floats(
    made: tuple[Path, Path, Path],
) -> None:
    weights = load_file(made[2] / "model.safetensors")
    floats = [w for w in weights.values() if w.dtype == np.float32 and w.ndim == 2]
    embeddings = [w for n, w in weights.items() if n.endswith("embedding.weight")]
    assert len(floats) == len(embeddings)
    for file in read_artifact(made[2]).graphs.files():
        graph = onnx.load(made[2] / file, load_external_data=False).graph
        nodes = [*graph.node, *(n for s in graph.node for a in s.attribute for n in a.g.node)]
        found = [n.op_type for n in nodes]
        assert "Gemm" not in found
        if "cuda" not in file:  # there a matrix of few rows is in floats
            assert found.count(_PRODUCT) == sum(w.dtype == np.int8 for w in weights.values())


def test_digits_of_a_state_are_made_once_a_step(made: tuple[Path, Path, Path]) -> None:
    graphs = read_artifact(made[2]).graphs
    step, scan = (
        onnx.load(made[2] / file, load_external_data=False).graph
        for file in (graphs.step.plain, graphs.scan.plain)
    )
    (loop,) = (node for node in scan.node if node.op_type == "Scan")
    counts = [
        sum(node.op_type == "QuantizeLinear" for node in nodes)
        for nodes in (step.node, loop.attribute[0].g.node, scan.node)
    ]
    digits = 3
    assert counts[1:] == [counts[0] - digits, digits]


def test_cuda_has_a_kernel_for_every_node_and_its_bytes_mean_the_same(
    made: tuple[Path, Path, Path],
) -> None:
    plain = read_artifact(made[2]).graphs.step.plain
    assert any("uint8 as T1" in problem for problem in without_kernel(made[2] / plain))
    require_the_same_on_cuda(made[2])


def test_what_is_for_cuda_alone_is_replayed_as_well(
    made: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(made[2], tmp_path / "small"))
    manifest = read_artifact(folder)
    assert manifest.graphs.cuda is not None
    files = list(manifest.graphs.cuda.files().values())
    for file in files:
        model = onnx.load(folder / file, load_external_data=False)
        (zero,) = (t for t in model.graph.initializer if t.name == "signed")
        zero.CopyFrom(onnx.numpy_helper.from_array(np.array(3, np.int8), "signed"))
        (folder / file).write_bytes(model.SerializeToString())
    found = replay(folder, manifest, Served(folder, manifest))
    assert found.value == len(files), found
    assert all(f"{file}: " in found.detail for file in files)


def test_an_interrupted_run_goes_on_from_itself_and_not_from_the_artifact(
    artifact: Path, corpus: Path, text: Path, tmp_path: Path
) -> None:
    recipe = of_text(corpus)
    with pytest.MonkeyPatch.context() as patch:
        stop_after(patch, 20)
        with pytest.raises(Interrupted):
            carry_out(recipe, tmp_path / "cut", "cpu", Path(), artifact)
    with undrawn():
        carry_out(recipe, tmp_path / "cut", "cpu", Path(), artifact)
    first, second = tensors(text), tensors(tmp_path / "cut")
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_what_cannot_be_begun_from_is_refused(
    artifact: Path, corpus: Path, inks: Path, tmp_path: Path
) -> None:
    altered = shutil.copytree(artifact, tmp_path / "altered")
    content = (altered / WEIGHTS).read_bytes()
    (altered / WEIGHTS).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    for start, reason in (
        (tmp_path, "is not an artifact"),
        (altered, "is not the file its manifest describes"),
        (inks / "scrawl", "of kind handwriting and precision float32"),
        (inks / "letters", r"letters, which has .*units=\d+.*; the recipe has \d+"),
    ):
        with pytest.raises(ValueError, match=reason):
            carry_out(of_text(corpus), tmp_path / "run", "cpu", Path(), start)


def test_matrices_may_be_rounded_without_training_which_the_manifest_says(
    artifact: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = tmp_path / "small"
    assert main(["convert", str(artifact), str(small), "--quantize"]) == 0
    manifest = read_artifact(small)
    assert manifest.precision == "int8"
    assert manifest.provenance["rounded"].startswith("after training")
    # Its graph in float64 is that of a model which was trained in eight bits, traced once more.
    found = Finding(name="structure", value=0.0, bound=0.0, detail="left out")
    monkeypatch.setattr("export.text.parity._structure", lambda *_: found)
    assert verify(small, corpus.parent, LEAST).holds
    with pytest.raises(ValueError, match="of eight bits already"):
        convert(small, tmp_path / "twice", quantize=True)
    model, facts = read_source(small)  # as whoever converts it again
    assert provenance(facts)["rounded"] == manifest.provenance["rounded"]
    save_file(model.state_dict(), tmp_path / WEIGHTS)
    assert (tmp_path / WEIGHTS).read_bytes() == (small / WEIGHTS).read_bytes()


@pytest.mark.parametrize(("largest", "digits"), [(1.0, 3), (LARGEST_INPUT, 4)])
def test_digits_leave_out_less_than_two_to_the_minus_23(largest: float, digits: int) -> None:
    scales = np.array(worths(largest, digits))
    random = np.random.default_rng(0)
    x = np.concatenate([random.uniform(-largest, largest, 10_000), [largest, -largest, 0.0]])
    rest, found = x.copy(), []
    for scale in scales:
        found.append(np.rint(rest / scale))
        rest -= found[-1] * scale
    assert np.abs(found).max() <= 127
    assert np.abs(rest).max() < 2**-23
    # A digit times its worth has no rounding, so the rest of a float32 is exact.
    assert all(float(np.float32(127 * s)) == 127 * s for s in scales)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(
    ("inputs", "largest"), [(1, 1.0), (3, 1.0), (64, 1.0), (301, 1.0), (64, LARGEST_INPUT)]
)
def test_a_product_of_integers_is_the_product(
    tmp_path: Path, signed: bool, inputs: int, largest: float
) -> None:
    torch.manual_seed(inputs)
    model = OneProduct(inputs, 7, hidden=largest == 1)
    path = tmp_path / "one.onnx"
    write_one(model, path, signed=signed)
    made = [node.op_type for node in onnx.load(path, load_external_data=False).graph.node]
    assert made.count("QuantizeLinear") == (3 if largest == 1 else 4)  # digits, and no more
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    x = torch.rand(5, inputs) * 2 - 1
    x[0], x[1] = 1, -1
    x[2] *= largest
    (y,) = session.run(None, {"x": x.numpy()})
    weight = model.readout.weight.double()
    expected = x.double() @ weight.t() + model.readout.bias.double()
    spread = weight.abs().sum(1).max().item()
    bound = 2**-22 * max(spread, 1) * x.abs().amax(1, keepdim=True).clamp(min=1)
    assert (np.abs(y - expected.detach().numpy()) < bound.numpy()).all()


class OneProduct(nn.Module):
    def __init__(self, inputs: int, outputs: int, *, hidden: bool) -> None:
        super().__init__()
        self._hidden = hidden
        self.readout = nn.Linear(inputs, outputs)
        nn.utils.parametrize.register_parametrization(self.readout, "weight", EightBits())
        settle(self)

    def hidden_inputs(self) -> set[str]:
        return {"readout.weight"} if self._hidden else set()


def write_one(model: OneProduct, path: Path, *, signed: bool) -> None:
    """A graph of one Gemm, its product then in integers."""
    outputs, inputs = model.readout.weight.shape
    float32 = ir.TensorType(ir.DataType.FLOAT)
    x = ir.Value(name="x", shape=ir.Shape(["B", inputs]), type=float32)
    weights = []
    for name, tensor in (("weight", model.readout.weight), ("bias", model.readout.bias)):
        value = ir.Value(name=f"readout.{name}", shape=ir.Shape(tensor.shape), type=float32)
        value.const_value = ir.tensor(tensor.detach().contiguous().numpy(), name=value.name)
        weights.append(value)
    gemm = ir.node("Gemm", [x, *weights], attributes={"transB": 1})
    y = gemm.outputs[0]
    y.name, y.shape, y.type = "y", ir.Shape(["B", outputs]), float32
    graph = ir.Graph([x], [y], nodes=[gemm], initializers=weights, opset_imports={"": 18})
    whole = ir.Model(graph, ir_version=10)
    replaced = integer_products(whole, model, signed=signed)
    assert list(replaced) == ["readout.weight"]
    ir.save(whole, path)


@pytest.mark.parametrize(
    ("name", "first", "data"),
    [
        ("shakespeare-int8", "shakespeare", {}),
        ("handwriting-int8", "handwriting", {"marked": 0.3}),
        ("handwriting-marks", "handwriting", {"marked": 0.3}),
        ("reader-marks", "reader", {"marked": 0.3}),
        ("handwriting-on", "handwriting", {"marked": 0.3}),
        ("reader-on", "reader", {"marked": 0.3}),
        ("handwriting-figures", "handwriting", {"marked": 0.3, "figured": 0.25}),
        ("reader-figures", "reader", {"marked": 0.25, "figured": 0.2}),
        ("handwriting-varied", "handwriting", {"marked": 0.3, "figured": 0.25, "varied": 0.08}),
        (
            "handwriting-own",
            "handwriting",
            {"marked": 0.3, "figured": 0.25, "varied": 0.08, "own": 0.5},
        ),
        ("reader-bars", "reader", {"marked": 0.3, "figured": 0.25}),
    ],
)
def test_a_recipe_that_trains_on_has_the_same_network_and_lines(
    name: str, first: str, data: dict[str, float]
) -> None:
    before, after = read_recipe(first), read_recipe(name)
    changed = {"precision": "float32"} if "int8" in name else {}
    if first == "reader":
        changed = {"output_dropout": before.model.output_dropout}
    assert replace(after.model, **changed) == before.model
    assert after.kind == before.kind
    assert after.data == replace(before.data, **data)
    assert replace(after.batch, growing=True) == before.batch
    assert f"--from artifacts/{first}" in (FOLDER / f"{name}.toml").read_text()
