"""The folded variant, of float32 and of eight bits: its own tensors and counts, its own report."""

import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import onnx
import onnx_ir as ir
import pytest
import torch

from contract.manifest import DERIVED, EXACT, Variant
from export.artifact import read_artifact
from export.convert import convert, provenance, read_source
from export.graph import tensor_offsets
from export.hoist import hoist
from export.kinds import KINDS
from export.parity.report import Extent
from export.variant import GraphWriter
from export.verify import verify
from models.language import LanguageConfig, LanguageModel
from models.quantized import settle
from service.artifact import load_artifact
from service.attestation import attest
from service.engine.runners import ScanRunner, SlotRunner
from service.engine.runtime import Runtime
from tests.export.least import LeastModel, LeastStep, PlainKind

SMALL = Extent(sampled_steps=160, structure_steps=24, bit_steps=4, timed=False)
VARIANTS = {"folded": {"fold": True}, "both": {"fold": True, "quantize": True}}
_PARAMS = ["folded", pytest.param("both", marks=pytest.mark.long)]


@pytest.fixture(scope="module")
def artifact(made_once: Callable[[str], Path]) -> Path:
    """One layer, which is traced sooner than two; nobody may change it."""
    return made_once("letters")


@pytest.fixture(scope="module", params=_PARAMS)
def variant(
    request: pytest.FixtureRequest, artifact: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder: Path = tmp_path_factory.mktemp("variants") / request.param
    convert(artifact, folder, **VARIANTS[request.param])
    return folder


def operators(path: Path) -> list[str]:
    proto = onnx.load(path, load_external_data=False)
    (scan,) = (n for n in proto.graph.node if n.op_type == "Scan")
    return [node.op_type for node in scan.attribute[0].g.node]


def test_a_variant_keeps_every_bound_of_its_report(variant: Path) -> None:
    report = verify(variant, None, SMALL)
    assert report.holds, report.findings
    assert {f.name for f in report.findings} >= {"bits", "operators"}


def test_a_variant_is_attested_on_both_runners(variant: Path) -> None:
    artifact = load_artifact(variant)
    for kind in (ScanRunner, SlotRunner):
        verdict = attest(artifact, kind(artifact, Runtime("cpu", "scan", 1, slots=2)))
        assert verdict.ok, verdict


def test_the_manifest_says_what_is_different(variant: Path, artifact: Path) -> None:
    exact, manifest = read_artifact(artifact), read_artifact(variant)
    assert exact.variant == EXACT
    assert exact.layer_normalizations_unfolded is None
    assert manifest.variant.folded
    assert manifest.layer_normalizations_unfolded == exact.layer_normalizations
    assert manifest.layer_normalizations == exact.layer_normalizations - 1
    found = operators(variant / "model.onnx").count("LayerNormalization")
    assert found == manifest.layer_normalizations


def test_the_weights_are_the_exact_ones_and_the_rest_is_derived(
    variant: Path, artifact: Path
) -> None:
    name = "model.safetensors"
    same = (variant / name).read_bytes() == (artifact / name).read_bytes()
    assert same == (variant.name == "folded")
    require_all_derived_used(variant, read_artifact(variant).graphs.files())


def require_all_derived_used(folder: Path, graphs: Iterable[str]) -> None:
    used = {
        tensor.name
        for file in graphs
        for tensor in onnx.load(folder / file, load_external_data=False).graph.initializer
        if any(entry.value == DERIVED for entry in tensor.external_data)
    }
    assert used == set(tensor_offsets(folder / DERIVED))


def test_no_copy_is_made_of_a_matrix_that_the_table_stands_for(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = settle(
        LanguageModel(LanguageConfig(cell="rnn", units=4, embedding=4, precision="int8"))
    )
    writer = GraphWriter(KINDS["language"], model, Variant(folded=True))
    writer.write(tmp_path / "cuda.onnx", scan=False, filtered=False, signed=True)
    require_all_derived_used(tmp_path, ["cuda.onnx"])


def test_nothing_in_a_scan_is_computed_from_what_does_not_change(artifact: Path) -> None:
    model = ir.load(artifact / "model-filtered.onnx")
    before = [n.op_type for n in model.graph.all_nodes()]
    assert model.graph.num_nodes() > 1  # what was moved
    hoist(model)
    assert [n.op_type for n in model.graph.all_nodes()] == before


def test_a_damaged_artifact_is_not_converted_into_a_valid_one(
    artifact: Path, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(artifact, damaged)
    weights = damaged / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(ValueError, match="is not the file its manifest describes"):
        convert(damaged, tmp_path / "never")
    assert not (tmp_path / "never").exists()


def test_a_conversion_keeps_the_provenance_and_adds_its_own_versions(
    variant: Path, artifact: Path
) -> None:
    trained = read_artifact(artifact).provenance
    again = read_artifact(variant).provenance
    assert again["converted_with"] == trained["versions"]
    added = {"converted_with", "rounded"}
    assert {n: v for n, v in again.items() if n not in added} == trained
    facts = read_source(artifact)[1] | {"versions": {"torch": "1.0"}}
    assert provenance(facts)["versions"] == {"torch": "1.0"}


def test_a_writer_of_another_model_traces_that_one_and_each_folder_has_its_weights(
    tmp_path: Path,
) -> None:
    shallow, deep = (LeastModel(norms) for norms in (1, 2))
    writer = GraphWriter(PlainKind(LeastStep), shallow)  # type: ignore[arg-type]
    folders = [tmp_path / name for name in ("one", "again", "deep")]
    writers = (writer, writer, replace(writer, model=deep))
    for folder, one in zip(folders, writers, strict=True):
        folder.mkdir()
        one.write(folder / "model.onnx", scan=True, filtered=False)
    found = [operators(folder / "model.onnx").count("LayerNormalization") for folder in folders]
    assert found == [1, 1, 2]
    weights = [(folder / "model.safetensors").read_bytes() for folder in folders]
    assert weights[0] == weights[1]
    assert len(weights[0]) < len(weights[2])
