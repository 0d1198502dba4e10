"""The parity report of a model of one unit, which has no sums that could differ, trained a row at a
time on a corpus that is a folder."""

import shutil
from pathlib import Path

import pytest

from export.artifact import read_artifact
from export.convert import convert, provenance, read_source
from export.kinds import KINDS
from export.parity import bits
from export.parity.report import Evidence, Extent, Served
from export.parity.served import ServedGraph
from export.text.golden import sample
from export.text.parity import make_work, validation_text
from export.variant import GraphWriter
from export.verify import verify
from tests.export.single import write_single

SMALL = Extent(sampled_steps=480, structure_steps=60, bit_steps=8, timed=False)


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One unit, one row in a batch, and a corpus that is a folder in a folder."""
    return write_single(tmp_path_factory.mktemp("single"))


@pytest.mark.long
def test_a_model_of_one_row_and_one_unit_trained_on_a_folder_is_proved(
    single: Path, tmp_path: Path
) -> None:
    convert(single / "run", tmp_path / "artifact")
    report = verify(tmp_path / "artifact", single / "data", SMALL)
    assert report.holds, report.findings
    assert report.notes == []
    findings = {finding.name: finding for finding in report.findings}
    assert "score, validation text" in findings
    assert "served, batch 1" in findings["rounding"].detail
    assert findings["bits, control"].detail.startswith("one unit has no sums that could differ")


def test_the_corpus_is_not_found_in_a_folder_with_a_file_more(
    single: Path, artifact: Path, tmp_path: Path
) -> None:
    shutil.copytree(single / "data" / "sheep", tmp_path / "sheep")
    about = {"provenance": provenance(read_source(single / "run")[1])}
    manifest = read_artifact(artifact)  # of another model, on another text
    served = Served(artifact, manifest)
    evidence = Evidence(manifest.model_copy(update=about), served, SMALL, tmp_path)
    text, notes = validation_text(evidence)
    assert text is not None
    assert notes == []
    last = b"".join(f.read_bytes() for f in sorted((tmp_path / "sheep").rglob("*.txt")))[-400:]
    assert bytes(text.symbols[:, 0].tolist()) == last  # a row alone, a tenth of 4000 bytes
    (tmp_path / "sheep" / "c.txt").write_text("one more")
    text, notes = validation_text(evidence)
    assert text is None
    assert len(notes) == 1


def test_the_control_of_one_unit_sees_what_onnxruntime_does(
    single: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, _ = read_source(single / "run")
    writer = GraphWriter(KINDS["language"], model)
    step = writer.write(tmp_path / "model.onnx", scan=True, filtered=False)
    work = make_work(sample(model, 8, bits.LARGEST_BATCH, 1), 1)
    graph = ServedGraph(tmp_path / "model.onnx", writer.ports(step), scan=True, prepacking=False)
    assert bits.control(graph, work).holds
    compared = bits.operators.compare_operator
    # As if there were nothing left that prepacking changes.
    monkeypatch.setattr(bits.operators, "compare_operator", lambda name, prepacking: compared(name))
    assert not bits.control(graph, work).holds
