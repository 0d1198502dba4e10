"""A trained run as an artifact: weights once, four graphs that point into them, golden vectors,
and a manifest that says what everything is.
"""

import hashlib
import json
import platform
import shutil
import tempfile
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import onnx_ir as ir
import onnxruntime
from safetensors.torch import load_file, save_file

from export import checkpoint
from export.golden import golden_mode, golden_vectors
from export.graph import OPSET, export_graph, layer_normalizations
from export.train import CHECKPOINT
from models.generation import LanguageStep, Port
from models.language import LanguageConfig, LanguageModel
from models.norms import fold

FORMAT_VERSION = 1
WEIGHTS = "model.safetensors"
GOLDEN = "golden.safetensors"
MANIFEST = "manifest.json"
# File by runner and by whether the options that need a sort are in the graph.
GRAPHS = {
    "scan": {"plain": "model.onnx", "filtered": "model-filtered.onnx"},
    "step": {"plain": "step.onnx", "filtered": "step-filtered.onnx"},
}
_GOLDEN_ROWS = 2
_GOLDEN_SEED = 20160721  # any constant: the same model always gets the same golden vectors


def convert(run: Path, artifact: Path) -> None:
    """Write the best weights of a run as an artifact folder, all of it or nothing.

    Raises `ConversionError` when a graph breaks a promise, `ValueError` for a run without a
    checkpoint.
    """
    if not (run / CHECKPOINT).exists():
        raise ValueError(f"{run} has no {CHECKPOINT}; train it first")
    tensors, facts = checkpoint.load(run / CHECKPOINT)
    model = LanguageModel(zero_dropout(LanguageConfig(**facts["model"])))
    model.load_state_dict(checkpoint.group(tensors, "best"))
    artifact.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=artifact.parent, prefix=".converting-") as folder:
        write_artifact(Path(folder), artifact.name, model, facts)
        if artifact.exists():
            shutil.rmtree(artifact)
        shutil.copytree(folder, artifact)
    # Temporary folders and safetensors are private to their owner; an artifact is for any reader.
    artifact.chmod(0o755)
    for file in artifact.iterdir():
        file.chmod(0o644)


def write_artifact(folder: Path, name: str, model: LanguageModel, facts: dict[str, Any]) -> None:
    """Fill `folder` with the five parts of an artifact; under weight norm, of the folded model."""
    model = fold(model)
    save_file(model.state_dict(), folder / WEIGHTS)
    for runner, variants in GRAPHS.items():
        for variant, file in variants.items():
            step = LanguageStep(model, filtered=variant == "filtered")
            graph = export_graph(step, folder / WEIGHTS, scan=runner == "scan")
            ir.save(graph, folder / file)
    golden, bound = golden_vectors(
        model, facts["batch"]["steps"], facts["batch"]["rows"], _GOLDEN_ROWS, _GOLDEN_SEED
    )
    save_file(golden, folder / GOLDEN, metadata={"bound": repr(bound)})
    step = LanguageStep(model, filtered=True)
    manifest = {
        "format_version": FORMAT_VERSION,
        "name": name,
        "kind": "language",
        "hyperparameters": facts["model"],
        "alphabet": {"kind": "bytes", "size": 256, "start_token": step.state_ports[0].initial},
        "graphs": GRAPHS,
        "ports": {
            "state": [_describe(p) for p in step.state_ports],
            "step": [_describe(p) for p in step.step_ports],
            "row": [_describe(p) for p in step.row_ports],
            "output": [_describe(p) for p in step.output_ports],
        },
        "filters": ["top_k", "top_p"],
        "layer_normalizations": layer_normalizations(model),
        "parameters": sum(p.numel() for p in model.parameters()),
        "provenance": provenance(facts) | served_as(model),
        "files": {p.name: sha256(p) for p in sorted(folder.iterdir())},
        "parity": None,
    }
    write_json(folder / MANIFEST, manifest)


def provenance(facts: dict[str, Any]) -> dict[str, Any]:
    """What the model was trained on, how, and with which versions."""
    packages = ("torch", "onnx", "onnxscript", "safetensors")
    return {
        "data": facts["data"],
        "batch": facts["batch"],
        "training": facts["training"],
        "updates": facts["progress"]["best_update"],
        "validation_loss": facts["progress"]["best_loss"],
        "elapsed_s": round(facts["progress"]["elapsed_s"], 1),
        "opset": OPSET,
        "versions": {"python": platform.python_version(), "onnxruntime": onnxruntime.__version__}
        | {p: version(p) for p in packages},
    }


def served_as(model: LanguageModel) -> dict[str, Any]:
    """In which of PyTorch's modes a model is served, and what that means past training's steps."""
    mode = {"golden_mode": golden_mode(model)}
    if model.config.norm != "batch":
        return mode
    last = model.config.longest_step
    return mode | {"past_longest_step": f"after {last} steps, the statistics of the last of them"}


def load_model(artifact: Path, manifest: dict[str, Any]) -> LanguageModel:
    """The PyTorch model of an artifact, from the very bytes onnxruntime reads; dropout rates 0."""
    model = fold(LanguageModel(zero_dropout(LanguageConfig(**manifest["hyperparameters"]))))
    model.load_state_dict(load_file(artifact / WEIGHTS))
    return model


def zero_dropout(config: LanguageConfig) -> LanguageConfig:
    """The same network with every dropout rate 0: the one thing serving leaves out."""
    rates = {"input_dropout": 0.0, "recurrent_dropout": 0.0, "output_dropout": 0.0}
    return LanguageConfig(**asdict(config) | rates)


def read_manifest(artifact: Path) -> dict[str, Any]:
    """The manifest of an artifact folder. Raises `ValueError` when there is none."""
    path = artifact / MANIFEST
    if not path.is_file():
        raise ValueError(f"{artifact} is not an artifact: it has no {MANIFEST}")
    manifest: dict[str, Any] = json.loads(path.read_text())
    return manifest


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Indented JSON with a newline at its end."""
    path.write_text(json.dumps(content, indent=2) + "\n")


def sha256(path: Path) -> str:
    """The file's SHA-256 in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _describe(port: Port) -> dict[str, Any]:
    return {
        "name": port.name,
        "dtype": str(port.dtype).removeprefix("torch."),
        "shape": list(port.shape),
        "initial": port.initial,
    }
