"""The weights of an artifact, from which another run begins."""

from dataclasses import asdict
from pathlib import Path

from safetensors.torch import load
from torch import nn

from contract.manifest import MANIFEST, WEIGHTS, Manifest, sha256
from contract.manifests import read_manifest
from models.quantized import load_weights
from training import checkpoint
from training.config import Recipe

# What changes no matrix: how it is rounded, and what is left out while it is trained.
_MAY_DIFFER = {"precision", "input_dropout", "recurrent_dropout", "output_dropout"}


def require_start(artifact: Path, recipe: Recipe) -> Manifest:
    """The manifest of an artifact whose model differs from that of a recipe in its precision at
    most, so that a run may begin from it.

    Raises `ValueError` for an artifact of another kind or shape, of eight bits, or one altered.
    """
    if not (artifact / MANIFEST).is_file():
        raise ValueError(f"--from is {artifact}, which is not an artifact: it has no {MANIFEST}")
    manifest = read_manifest(artifact)
    if manifest.kind != recipe.kind or manifest.precision != "float32":
        raise ValueError(
            f"--from is {artifact}, of kind {manifest.kind} and precision {manifest.precision}; "
            f"it must be of kind {recipe.kind} and float32"
        )
    if sha256(artifact / WEIGHTS) != manifest.files[WEIGHTS]:
        raise ValueError(f"{artifact / WEIGHTS} is not the file its manifest describes")
    theirs, ours = manifest.hyperparameters, asdict(recipe.model)
    other = {n: v for n, v in theirs.items() if n in ours and n not in _MAY_DIFFER and ours[n] != v}
    if other:
        told = ", ".join(f"{name}={value}" for name, value in other.items())
        mine = ", ".join(str(ours[name]) for name in other)
        raise ValueError(f"--from is {artifact}, which has {told}; the recipe has {mine}")
    return manifest


def begin_from(artifact: Path, model: nn.Module, recipe: Recipe) -> dict[str, str]:
    """Give a model of a recipe the weights of an artifact; returns the artifact's name and digest.

    Raises `ValueError` for weights that are none, and as `require_start` does.
    """
    manifest = require_start(artifact, recipe)
    with checkpoint.understanding(artifact):
        load_weights(model, load((artifact / WEIGHTS).read_bytes()))
    return {"name": manifest.name, "digest": manifest.digest}
