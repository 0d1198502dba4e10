"""An artifact as PyTorch reads it: its manifest, its weights as a model, the facts of its training.

Nothing here knows of graphs, so that who only reads an artifact does not load what writes one.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import load
from torch import nn

from contract.manifest import MANIFEST, WEIGHTS, Manifest, sha256
from contract.manifests import read_manifest
from models.norms import fold as fold_weights
from training import checkpoint
from training.config import BatchConfig
from training.kinds import KINDS
from training.loop import Progress
from training.recipe import build

# What only some models have behind them: the artifact they were trained on from, and a rounding.
HISTORY = ("from", "rounded")


def is_artifact(folder: Path) -> bool:
    """Whether a folder has a manifest, valid or not."""
    return (folder / MANIFEST).is_file()


def read_artifact(artifact: Path) -> Manifest:
    """The manifest of an artifact folder. Raises `ValueError` when there is none that is valid."""
    if not is_artifact(artifact):
        raise ValueError(f"{artifact} is not an artifact: it has no {MANIFEST}")
    return read_manifest(artifact)


def require_files(artifact: Path, files: Mapping[str, str]) -> None:
    """Raise `ValueError` unless the files of an artifact, by name, have these SHA-256."""
    for name, expected in files.items():
        if not (artifact / name).is_file() or sha256(artifact / name) != expected:
            raise ValueError(f"{artifact / name} is not the file its manifest describes")


def load_model(artifact: Path, manifest: Manifest) -> Any:
    """The PyTorch model of an artifact, from the very bytes onnxruntime reads; dropout rates 0.
    Raises `ValueError` where it is of another version."""
    with checkpoint.understanding(artifact):
        model: nn.Module = fold_weights(KINDS[manifest.kind].model(manifest.hyperparameters))
        model.load_state_dict(load((artifact / WEIGHTS).read_bytes()))
    return model


def facts_of(artifact: Path, manifest: Manifest) -> dict[str, Any]:
    """The facts of a training as a checkpoint has them, from an artifact's provenance. Raises
    `ValueError` where it is of another version."""
    trained = manifest.provenance
    with checkpoint.understanding(artifact):
        facts = {"kind": manifest.kind, "model": manifest.hyperparameters}
        facts |= {name: trained[name] for name in ("data", "batch", "training", "versions")}
        facts |= {name: trained[name] for name in HISTORY if name in trained}
        facts["progress"] = {
            "best_update": trained["updates"],
            "best_loss": trained["validation_loss"],
            "elapsed_s": trained["elapsed_s"],
            "temperature": trained.get("temperature"),
        }
        require_facts(facts)
    return facts


def require_facts(facts: dict[str, Any]) -> None:
    """Raise an error that `checkpoint.understanding` tells unless the facts say how a model was
    trained."""
    batch = facts["batch"]
    build(BatchConfig, dict(batch), "batch")
    build(Progress, dict(facts["progress"]), "progress")
    _ = batch["rows"], batch["steps"], facts["data"]["name"]
    _ = facts["training"].keys(), facts.get("versions", {}).keys()
