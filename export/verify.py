"""The parity report of an artifact: `python -m export verify ARTIFACT [--full]`.

Training mode is PyTorch with `train()` on, batched as the loss was, every dropout rate 0. Served is
onnxruntime on the CPU at batch 1. Bounds stand beside each check; a broken one fails the report.
"""

from pathlib import Path

from export.artifact import facts_of, load_model, read_artifact, require_files
from export.kinds import KINDS
from export.parity.replay import replay
from export.parity.report import QUICK, Evidence, Extent, Report, Served
from export.variant import GraphWriter


def verify(artifact: Path, data_folder: Path | None, extent: Extent = QUICK) -> Report:
    """Compare what training computes with what onnxruntime serves, for one artifact. Raises
    `ValueError` for files that are not those its manifest describes, or one of another version."""
    manifest = read_artifact(artifact)
    require_files(artifact, manifest.files)
    facts_of(artifact, manifest)  # which a comparison looks into
    kind = KINDS[manifest.kind]
    writer = GraphWriter(kind, load_model(artifact, manifest), manifest.variant)
    served = Served(artifact, manifest)
    report = kind.parity(writer, Evidence(manifest, served, extent, data_folder))
    report.findings.append(replay(artifact, manifest, served))
    return report
