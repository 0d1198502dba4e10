"""The parity report of an artifact: `python -m export verify ARTIFACT [--full]`.

Training mode is PyTorch with `train()` on, batched as the loss was, every dropout rate 0. Served is
onnxruntime on the CPU at batch 1. Bounds stand beside each check; a broken one fails the report.
"""

from pathlib import Path

from export.convert import load_model, read_artifact
from export.kinds import KINDS
from export.parity.report import QUICK, Evidence, Extent, Report, Served
from export.variant import GraphWriter


def verify(artifact: Path, data_folder: Path | None, extent: Extent = QUICK) -> Report:
    """Compare what training computes with what onnxruntime serves, for one artifact."""
    manifest = read_artifact(artifact)
    kind = KINDS[manifest.kind]
    writer = GraphWriter(kind, load_model(artifact, manifest), manifest.variant)
    return kind.parity(writer, Evidence(manifest, Served(artifact, manifest), extent, data_folder))
