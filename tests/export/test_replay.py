"""The golden vectors on every graph: what turns that line of a parity report red."""

import shutil
from pathlib import Path

import onnx
import pytest

from contract.golden import Golden
from export.artifact import read_artifact
from export.parity.replay import replay
from export.parity.report import Served
from tests.service.altered import lose_state, pass_on


@pytest.fixture
def folder(artifact: Path, tmp_path: Path) -> Path:
    """An artifact to be changed."""
    return Path(shutil.copytree(artifact, tmp_path / "tiny"))


def _without_top_k(path: Path) -> None:
    """Have a graph take as many as there are, however few it is asked for."""
    model = onnx.load(path, load_external_data=False)
    for node in model.graph.node:
        for place, name in enumerate(node.input):
            if name == "top_k":
                node.input[place] = "all"
    model.graph.initializer.append(
        onnx.helper.make_tensor("many", onnx.TensorProto.INT64, [], [256])
    )
    model.graph.node.insert(0, onnx.helper.make_node("Max", ["top_k", "many"], ["all"]))
    path.write_bytes(model.SerializeToString())


def test_a_filter_that_is_forgotten_breaks_the_graphs_that_have_it(folder: Path) -> None:
    manifest = read_artifact(folder)
    filtered = [file for _, options, file in manifest.graphs.each() if options == "filtered"]
    for name in filtered:
        _without_top_k(folder / name)
    found = replay(folder, manifest, Served(folder, manifest))
    assert found.value == len(filtered) == 2, found
    golden = Golden.load(folder / "golden.safetensors")
    rows = 2 * len(golden.plain_rows) + 2 * len(golden.all_rows)
    assert f"{rows * len(golden.steps['force']):,} row-steps" in found.detail


def test_state_that_is_lost_from_run_to_run_breaks_the_graphs_that_lose_it(folder: Path) -> None:
    manifest = read_artifact(folder)
    for file in manifest.graphs.scan.files().values():
        lose_state(folder, file, "c0")
    found = replay(folder, manifest, Served(folder, manifest))
    assert found.value == 2, found
    assert "model.onnx: logits: outside the bound at step" in found.detail


@pytest.mark.parametrize("runner", ["scan", "step"])
def test_a_graph_that_hears_no_prompt_is_named(folder: Path, runner: str) -> None:
    """As long as it draws what is golden."""
    manifest = read_artifact(folder)
    files = [file for its, _, file in manifest.graphs.each() if its == runner]
    for file in files:
        pass_on(folder, file, "drawn")
    found = replay(folder, manifest, Served(folder, manifest))
    assert found.value == len(files) == 2, found
    for file in files:
        assert f"{file}: token is not what a step was forced to emit" in found.detail
