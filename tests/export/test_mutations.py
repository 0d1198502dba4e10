"""The power of the parity report: each bound is broken by a defect planted in what is served.

The planted artifact is the tiny one with its graphs changed; PyTorch still reads the right weights.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
from numpy.typing import NDArray
from onnx import numpy_helper
from safetensors.numpy import load_file
from torch import Tensor, nn

from contract.manifest import Finding
from export import variant
from export.artifact import load_model, read_artifact
from export.golden import Sample
from export.kinds import KINDS
from export.parity import numbers
from export.parity.report import Served
from export.parity.served import follow, read
from export.text.golden import sample, training_logits
from export.text.numbers import score
from export.text.parity import compare
from export.variant import GraphWriter
from models.language import LanguageConfig, LanguageModel

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
    manifest = read_artifact(artifact)
    model, served = load_model(artifact, manifest), Served(artifact, manifest)
    drawn = sample(model, 60, 8, seed=5)
    outputs, draws = follow(served.step, drawn)
    findings, _ = compare(model, drawn, outputs["logits"], draws, 60)
    trained, logits = training_logits(model, drawn).numpy(), read(served.scan, drawn)["logits"]
    findings.append(score("scan", drawn.symbols.numpy(), trained, logits))
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
    for name in ("score, sampled text", "score, scan"):
        assert not findings[name].holds or defect == "another epsilon", findings


def test_a_state_that_is_not_reset_turns_the_sampling_red(whole: Path, tmp_path: Path) -> None:
    mutant = tmp_path / "tiny"
    shutil.copytree(whole, mutant)
    manifest = json.loads((mutant / "manifest.json").read_text())
    for port in manifest["ports"]["state"][1:]:
        port["initial"] = 1  # what an earlier request might have left
    (mutant / "manifest.json").write_text(json.dumps(manifest))
    findings = report(mutant)
    assert not findings["sampling"].holds, findings
    assert not findings["log-probability"].holds, findings


def test_a_wrong_epsilon_is_structure_not_rounding() -> None:
    torch.manual_seed(0)
    model = LanguageModel(LanguageConfig(cell="rnn", units=12, embedding=4)).double()
    drawn = sample(model, 60, 2, seed=1)
    writer = GraphWriter(KINDS["language"], model)

    def structure(by: float = 0.0) -> Finding:
        def trained(model: nn.Module, of: Sample) -> Tensor:
            logits = training_logits(model, of)
            logits[-1, -1, -1] += by
            return logits

        return numbers.structure(writer, drawn, trained, "logits")

    assert structure().holds
    for by in (1e-8, -1e-8, np.nan):  # one number among all
        assert not structure(by).holds
    with pytest.MonkeyPatch.context() as patch:
        exact = variant.graph_of

        def wrong(*arguments: Any, **options: Any) -> ir.Model:
            graph = exact(*arguments, **options)
            for node in graph.graph.all_nodes():
                if node.op_type == "LayerNormalization":
                    node.attributes["epsilon"] = ir.AttrFloat32("epsilon", 1e-5)
            return graph

        patch.setattr(variant, "graph_of", wrong)
        assert not structure().holds
