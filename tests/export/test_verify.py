"""The parity report: it holds for what was converted, and breaks when something else is served."""

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from export.parity.finding import Finding
from onnx import numpy_helper
from safetensors.numpy import load_file

from export.__main__ import main
from export.convert import read_manifest, sha256, write_json
from export.verify import verify
from service.artifact import load_artifact
from service.attestation import attest
from service.engine.runtime import Runtime, ScanRunner

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "artifacts" / "shakespeare"


def with_served_weight_changed(artifact: Path, folder: Path) -> Path:
    """A copy whose graphs read one element of the recurrent matrix 1e-3 larger than PyTorch."""
    shutil.copytree(artifact, folder)
    name = "stack.cells.0.weight_h"
    changed = load_file(folder / "model.safetensors")[name].copy()
    row, column = np.unravel_index(np.abs(changed).argmax(), changed.shape)
    changed[row, column] += 1e-3
    for path in folder.glob("*.onnx"):
        proto = onnx.load(path, load_external_data=False)
        (place,) = (i for i, t in enumerate(proto.graph.initializer) if t.name == name)
        proto.graph.initializer[place].CopyFrom(numpy_helper.from_array(changed, name))
        path.write_bytes(proto.SerializeToString())
    manifest = read_manifest(folder)
    manifest["files"] = {file: sha256(folder / file) for file in manifest["files"]}
    write_json(folder / "manifest.json", manifest)
    return folder


def test_what_was_converted_keeps_every_bound(
    artifact: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = verify(artifact, corpus.parent)
    assert [f.name for f in report.findings] == [
        "structure", "rounding", "log-probability", "sampling", "score, sampled text",
        "score, validation text", "bits", "bits, control", "operators", "operators, control",
    ]  # fmt: skip
    assert report.holds, report.findings
    before = read_manifest(artifact)
    assert main(["verify", str(artifact)]) == 0
    assert read_manifest(artifact) == before
    assert main(["verify", str(artifact), "--record"]) == 0
    assert "FAIL" not in capsys.readouterr().out
    parity = json.loads((artifact / "manifest.json").read_text())["parity"]
    assert all(row["holds"] for row in parity)


def test_without_the_corpus_the_report_says_what_it_used(artifact: Path, tmp_path: Path) -> None:
    names = [f.name for f in verify(artifact, tmp_path).findings]
    assert "score, sampled text" in names
    assert "score, validation text" not in names


@pytest.mark.parametrize("which", ["tiny", "shakespeare"])
def test_one_changed_element_of_the_served_matrix_breaks_the_report_and_the_replay(
    artifact: Path, tmp_path: Path, which: str, capsys: pytest.CaptureFixture[str]
) -> None:
    original = artifact if which == "tiny" else SHIPPED
    changed = with_served_weight_changed(original, tmp_path / which)
    assert main(["verify", str(changed)]) == 1
    assert "FAIL log-probability" in capsys.readouterr().out
    runtime = Runtime("cpu", "scan", threads=1, slots=4)
    for folder, expected in ((original, True), (changed, False)):
        checked = load_artifact(folder)
        verdict = attest(checked, ScanRunner(checked, runtime))
        assert verdict.ok is expected, verdict


def test_nothing_served_passes_by_being_not_a_number() -> None:
    assert not Finding("x", float("nan"), 1.0, "").holds
