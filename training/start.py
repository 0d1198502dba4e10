"""The weights of an artifact, from which another run begins."""

from pathlib import Path

from safetensors.torch import load_file
from torch import nn

from contract.manifest import MANIFEST, WEIGHTS, sha256
from contract.manifests import read_manifest
from models.quantized import load_weights


def begin_from(artifact: Path, model: nn.Module, kind: str) -> dict[str, str]:
    """Give a model the weights of an artifact that differs from it in its precision at most;
    returns the artifact's name and digest.

    Raises `ValueError` for an artifact of another kind or shape, of eight bits, or one altered.
    """
    if not (artifact / MANIFEST).is_file():
        raise ValueError(f"--from is {artifact}, which is not an artifact: it has no {MANIFEST}")
    manifest = read_manifest(artifact)
    if manifest.kind != kind or manifest.precision != "float32":
        raise ValueError(
            f"--from is {artifact}, of kind {manifest.kind} and precision {manifest.precision}; "
            f"it must be of kind {kind} and float32"
        )
    if sha256(artifact / WEIGHTS) != manifest.files[WEIGHTS]:
        raise ValueError(f"{artifact / WEIGHTS} is not the file its manifest describes")
    load_weights(model, load_file(artifact / WEIGHTS))
    return {"name": manifest.name, "digest": manifest.digest}
