"""The graphs of an artifact, by their form: `scan` or `step`; and what a report has to have."""

from pathlib import Path

import onnx
import onnx_ir as ir

from contract.manifests import read_manifest
from export.artifact import read_artifact
from export.graph import ROW_INDEPENDENT, tensor_offsets
from export.parity.report import COST
from export.parity.served import ServedGraph
from lab.measured.page import SHIPPED


def shipped_lines(kind: str) -> list[str]:
    """The lines of a report, but for time, that all shipped models of a kind carry. Whoever adds a
    check has them verified again."""
    shipped = [read_manifest(Path(__file__).parents[2] / "artifacts" / name) for name in SHIPPED]
    (lines,) = {
        tuple(f.name for f in manifest.parity or () if f.name != COST)
        for manifest in shipped
        if manifest.kind == kind
    }
    return list(lines)


def graph_file(artifact: Path, form: str) -> Path:
    return artifact / getattr(read_artifact(artifact).graphs, form).plain


def served_graph(artifact: Path, form: str) -> ServedGraph:
    ports = read_artifact(artifact).ports
    return ServedGraph(graph_file(artifact, form), ports, scan=form == "scan")


def check_nodes(artifact: Path, form: str, norms: int) -> None:
    """Every layer norm is one native node, and all operators keep the bits of a row."""
    nodes = list(ir.load(graph_file(artifact, form)).graph.all_nodes())
    assert sum(n.op_type == "LayerNormalization" for n in nodes) == norms
    assert read_artifact(artifact).layer_normalizations == norms
    assert sum(n.op_type == "Scan" for n in nodes) == (form == "scan")
    assert {n.op_type for n in nodes} <= ROW_INDEPENDENT


def check_weights(graph: Path) -> set[str]:
    """All weights of a graph are those of the file beside it: their names."""
    offsets = tensor_offsets(graph.with_name("model.safetensors"))
    proto = onnx.load(graph, load_external_data=False)
    external = {t.name: t for t in proto.graph.initializer if t.external_data}
    assert external.keys() == offsets.keys()
    for name, tensor in external.items():
        place = {e.key: e.value for e in tensor.external_data}
        assert place["location"] == "model.safetensors"
        assert int(place["offset"]) == offsets[name][0]
    return set(external)
