"""The power of the parity report: each bound is broken by a defect planted in what is served.

The planted artifact is the tiny one with its graphs changed; PyTorch still reads the right weights.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from export.parity.finding import Finding
from export.text.sampling import sampling
from numpy.typing import NDArray
from onnx import numpy_helper
from safetensors.numpy import load_file

from export import convert, variant
from export.text import numbers
from export.text.golden import draw
from export.verify import Served

Mutation = Callable[[onnx.GraphProto], None]
CELL = "stack.cells.0"


def initializer(graph: onnx.GraphProto, name: str) -> onnx.TensorProto:
    return next(t for t in graph.initializer if t.name == name)


def body(graph: onnx.GraphProto) -> onnx.GraphProto:
    scans = [n for n in graph.node if n.op_type == "Scan"]
    return next(a.g for a in scans[0].attribute if a.name == "body") if scans else graph


def replaced(name: str, change: Callable[[NDArray[np.float32]], NDArray[np.float32]]) -> Mutation:
    """Serve another content of a parameter than the weight file has."""

    def mutate(graph: onnx.GraphProto) -> None:
        tensor = initializer(graph, name)
        tensor.CopyFrom(numpy_helper.from_array(change(numpy_helper.to_array(tensor)), name))

    return mutate


def other_epsilon(graph: onnx.GraphProto) -> None:
    for node in body(graph).node:
        for attribute in node.attribute:
            if attribute.name == "epsilon":
                attribute.f = 1e-5


def swapped_gates(graph: onnx.GraphProto) -> None:
    split = next(n for n in body(graph).node if n.op_type == "Split")
    split.output[0], split.output[1] = split.output[1], split.output[0]


def as_tensor_float_32(weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """Round to the 10 bits of mantissa that TensorFloat-32 keeps."""
    bits = weights.view(np.uint32)
    return ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)


MUTATIONS: dict[str, tuple[Mutation, str]] = {
    "another epsilon": (other_epsilon, "rounding"),
    "a gain 0.1% larger": (replaced(f"{CELL}.norm_h.weight", lambda w: w * 1.001), "rounding"),
    "forget and input gate swapped": (swapped_gates, "log-probability"),
    "weights rounded as TF32": (
        replaced(f"{CELL}.weight_h", as_tensor_float_32),
        "log-probability",
    ),
}


@pytest.fixture(scope="module")
def whole(artifact: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The artifact with its parameters inline, so that a mutation can change them."""
    folder = tmp_path_factory.mktemp("mutations") / "tiny"
    shutil.copytree(artifact, folder)
    weights = load_file(folder / "model.safetensors")
    for path in folder.glob("*.onnx"):
        proto = onnx.load(path, load_external_data=False)
        for tensor in proto.graph.initializer:
            if tensor.name in weights:
                tensor.CopyFrom(numpy_helper.from_array(weights[tensor.name], tensor.name))
        path.write_bytes(proto.SerializeToString())
    return folder


def report(artifact: Path) -> dict[str, Finding]:
    """The findings that compare PyTorch with the served graphs, over a small sample."""
    manifest = convert.read_manifest(artifact)
    model = convert.load_model(artifact, manifest)
    served = Served(artifact, manifest)
    sample = draw(model, 60, 8, seed=5)
    tokens, uniforms = sample.tokens.numpy(), sample.uniforms.numpy()
    logits, draws = numbers.serve_one_by_one(served.step, tokens, uniforms)
    findings, _ = numbers.rounding(model, tokens, logits)
    findings.append(sampling(draws, tokens, uniforms, logits))
    findings.append(numbers.score("text", model, served.scan, sample.tokens.T.flatten(), 8))
    return {f.name: f for f in findings}


def test_without_a_defect_every_bound_holds(whole: Path) -> None:
    findings = report(whole)
    assert all(f.holds for f in findings.values()), findings


@pytest.mark.parametrize("defect", list(MUTATIONS))
def test_a_planted_defect_turns_its_bound_red(whole: Path, tmp_path: Path, defect: str) -> None:
    mutate, bound = MUTATIONS[defect]
    mutant = tmp_path / "tiny"
    shutil.copytree(whole, mutant)
    for path in mutant.glob("*.onnx"):
        proto = onnx.load(path)
        mutate(proto.graph)
        path.write_bytes(proto.SerializeToString())
    findings = report(mutant)
    assert not findings[bound].holds, findings
    assert not findings["score, text"].holds or defect == "another epsilon", findings


def test_a_state_that_is_not_reset_turns_the_sampling_red(whole: Path, tmp_path: Path) -> None:
    mutant = tmp_path / "tiny"
    shutil.copytree(whole, mutant)
    manifest = convert.read_manifest(mutant)
    for port in manifest["ports"]["state"][1:]:
        port["initial"] = 1  # what an earlier request might have left
    convert.write_json(mutant / "manifest.json", manifest)
    findings = report(mutant)
    assert not findings["sampling"].holds, findings
    assert not findings["log-probability"].holds, findings


def test_a_wrong_epsilon_is_structure_not_rounding(artifact: Path) -> None:
    manifest = convert.read_manifest(artifact)
    model = convert.load_model(artifact, manifest)
    assert numbers.structure(model, manifest, 200, seed=1).holds
    with pytest.MonkeyPatch.context() as patch:
        exact = variant.export_graph

        def wrong(*arguments: Any, **options: Any) -> ir.Model:
            graph = exact(*arguments, **options)
            for node in graph.graph.all_nodes():
                if node.op_type == "LayerNormalization":
                    node.attributes["epsilon"] = ir.AttrFloat32("epsilon", 1e-5)
            return graph

        patch.setattr(variant, "export_graph", wrong)
        assert not numbers.structure(model, manifest, 200, seed=1).holds
