"""Whether the graphs for CUDA of a model of eight bits, whose bytes are signed, are good there."""

from pathlib import Path

from export.artifact import load_model, read_artifact
from export.cuda import without_kernel
from export.kinds import KINDS
from export.parity.report import Served
from export.parity.served import differing_bytes, read


def require_the_same_on_cuda(artifact: Path) -> None:
    """Its graphs for CUDA have kernels there, and draw the same as the others, here."""
    manifest = read_artifact(artifact)
    assert manifest.graphs.cuda is not None
    for file in manifest.graphs.cuda.files().values():
        assert without_kernel(artifact / file) == []
    signed = manifest.model_copy(
        update={"graphs": manifest.graphs.model_copy(update={"step": manifest.graphs.cuda})}
    )
    drawn = KINDS[manifest.kind].sample(load_model(artifact, manifest), 20, 2, 0)
    outputs = [read(Served(artifact, m).step, drawn) for m in (manifest, signed)]
    assert differing_bytes(*outputs) == 0
