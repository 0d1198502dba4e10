"""A trained run as an artifact: weights once, graphs that point into them, golden vectors, and a
manifest that says what everything is.
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

import onnxruntime
from safetensors.torch import load_file, save_file

from export import checkpoint
from export.golden import golden_mode, golden_vectors
from export.graph import OPSET, layer_normalizations
from export.ink_golden import ink_golden_vectors
from export.pens.prepare import (
    POINTS_PER_CHARACTER,
    UNITS_OF_SIZE,
    UNITS_PER_CHARACTER,
    UNITS_PER_LINE,
)
from export.train import CHECKPOINT
from export.variant import EXACT, WEIGHTS, GraphWriter, Model, Variant
from models.generation import LanguageStep, Port, Step
from models.handwriting import ALPHABET, END, LONGEST_TEXT, HandwritingConfig, HandwritingModel
from models.language import LanguageConfig, LanguageModel
from models.norms import fold as fold_weights
from models.quantized import QuantizedLanguageModel

FORMAT_VERSION = 1
GOLDEN = "golden.safetensors"
MANIFEST = "manifest.json"
STYLES = "styles.safetensors"
# File by runner and by whether options that leave symbols out are in the graph; ink has none.
GRAPHS = {
    "scan": {"plain": "model.onnx", "filtered": "model-filtered.onnx"},
    "step": {"plain": "step.onnx", "filtered": "step-filtered.onnx"},
}
_GOLDEN_ROWS = 2
_GOLDEN_POINTS = 160
_GOLDEN_SEED = 20160721  # any constant: the same model always gets the same golden vectors


def convert(source: Path, artifact: Path, *, fold: bool = False, quantize: bool = False) -> None:
    """Write the best weights of a run as an artifact folder, all of it or nothing; or those of
    another artifact, with the graphs of today. `fold` and `quantize` make a faster variant.

    Raises `ConversionError` when a graph breaks a promise, `ValueError` for a source without
    weights or a variant its model cannot have.
    """
    model, facts = read_source(source)
    artifact.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=artifact.parent, prefix=".converting-") as folder:
        write_artifact(Path(folder), artifact.name, model, facts, Variant(fold, quantize))
        if (source / STYLES).exists():
            _keep_styles(source, Path(folder))
        if artifact.exists():
            shutil.rmtree(artifact)
        shutil.copytree(folder, artifact)
    # Temporary folders and safetensors are private to their owner; an artifact is for any reader.
    artifact.chmod(0o755)
    for file in artifact.iterdir():
        file.chmod(0o644)


def read_source(source: Path) -> tuple[Model, dict[str, Any]]:
    """The model of a run or of an artifact, and the facts of its training."""
    if (source / MANIFEST).exists():
        manifest = read_manifest(source)
        for name in (WEIGHTS, STYLES):
            if name in manifest["files"] and sha256(source / name) != manifest["files"][name]:
                raise ValueError(f"{source / name} is not the file its manifest describes")
        trained = manifest["provenance"]
        facts = {"kind": manifest["kind"], "model": manifest["hyperparameters"]}
        facts |= {name: trained[name] for name in ("data", "batch", "training", "versions")}
        facts["progress"] = {
            "best_update": trained["updates"],
            "best_loss": trained["validation_loss"],
            "elapsed_s": trained["elapsed_s"],
        }
        return load_model(source, manifest), facts
    if not (source / CHECKPOINT).exists():
        raise ValueError(f"{source} has neither {CHECKPOINT} nor {MANIFEST}; train it first")
    tensors, facts = checkpoint.load(source / CHECKPOINT)
    model = make_model(facts["kind"], facts["model"])
    if isinstance(model, HandwritingModel) and not model.config.window:
        raise ValueError(f"{source} is a prediction network; only one that takes a text is served")
    model.load_state_dict(checkpoint.group(tensors, "best"))
    return model, facts


def write_artifact(
    folder: Path, name: str, model: Model, facts: dict[str, Any], variant: Variant = EXACT
) -> None:
    """Fill `folder` with the parts of an artifact; under weight norm, of the folded model."""
    model = fold_weights(model)
    writer = GraphWriter(folder, model, variant)
    ink = isinstance(model, HandwritingModel)
    graphs = {r: {o: f for o, f in g.items() if o == "plain" or not ink} for r, g in GRAPHS.items()}
    for runner, files in graphs.items():
        for options, file in files.items():
            scan, filtered = runner == "scan", options == "filtered"
            writer.write(folder / file, scan=scan, filtered=filtered)
    write_golden(folder / GOLDEN, model, facts, variant)
    plain, step = (writer.step(filtered=filtered) for filtered in (False, True))
    manifest = {
        "format_version": FORMAT_VERSION,
        "name": name,
        "kind": facts["kind"],
        "hyperparameters": facts["model"],
        "alphabet": alphabet(step),
        "graphs": graphs,
        "ports": {
            "state": [_describe(p) for p in step.state_ports],
            "step": [_describe(p) for p in step.step_ports],
            "row": [_describe(p) for p in step.row_ports],
            "output": [_describe(p) for p in step.output_ports],
        },
        "filters": [p.name for p in step.row_ports if p not in plain.row_ports],
        "layer_normalizations": layer_normalizations(step),
        "parameters": sum(p.numel() for p in model.parameters()),
        "provenance": provenance(facts) | served_as(model),
        "files": {p.name: sha256(p) for p in sorted(folder.iterdir())},
        "parity": None,
    }
    if not variant.exact:
        manifest["variant"] = asdict(variant)
    if variant.folded:
        manifest["layer_normalizations_unfolded"] = layer_normalizations(model)
    if ink:
        manifest["ink"] = {
            "points_per_character": POINTS_PER_CHARACTER,
            "units_per_character": UNITS_PER_CHARACTER,
            "units_per_line": UNITS_PER_LINE,
            "units_of_size": UNITS_OF_SIZE,
        }
    write_json(folder / MANIFEST, manifest)


def make_model(kind: str, hyperparameters: dict[str, Any]) -> Model:
    """A model of that kind with fresh weights, every dropout rate 0."""
    if kind == "handwriting":
        return HandwritingModel(HandwritingConfig(**hyperparameters))
    return LanguageModel(zero_dropout(LanguageConfig(**hyperparameters)))


def write_golden(path: Path, model: Model, facts: dict[str, Any], variant: Variant) -> None:
    """Golden vectors with the bounds of a replay in the file's metadata."""
    rows = facts["batch"]["rows"]
    if isinstance(model, HandwritingModel):
        tensors, bounds = ink_golden_vectors(
            model, _GOLDEN_POINTS, rows, _GOLDEN_ROWS, _GOLDEN_SEED
        )
        metadata = {f"bound.{name}": repr(bound) for name, bound in bounds.items()}
    else:
        steps = facts["batch"]["steps"]
        served, exact = model, None
        if variant.quantized:
            served, exact = QuantizedLanguageModel(model, folded=variant.folded), model
        tensors, bound = golden_vectors(served, steps, rows, _GOLDEN_ROWS, _GOLDEN_SEED, exact)
        metadata = {"bound": repr(bound)}
    save_file(tensors, path, metadata=metadata)


def alphabet(step: Step) -> dict[str, Any]:
    """The symbols a model knows."""
    if isinstance(step, LanguageStep):
        return {"kind": "bytes", "size": 256, "start_token": step.state_ports[0].initial}
    return {
        "kind": "characters",
        "characters": ALPHABET,
        "end": END,
        "longest_text": LONGEST_TEXT - 1,
    }


def provenance(facts: dict[str, Any]) -> dict[str, Any]:
    """What the model was trained on, how, and with which versions; converted again, also those."""
    packages = ("torch", "onnx", "onnxscript", "safetensors")
    now = {"python": platform.python_version(), "onnxruntime": onnxruntime.__version__}
    now |= {p: version(p) for p in packages}
    again = {"converted_with": now} if "versions" in facts else {}
    return again | {
        "data": facts["data"],
        "batch": facts["batch"],
        "training": facts["training"],
        "updates": facts["progress"]["best_update"],
        "validation_loss": facts["progress"]["best_loss"],
        "elapsed_s": round(facts["progress"]["elapsed_s"], 1),
        "opset": OPSET,
        "versions": facts.get("versions", now),
    }


def served_as(model: Model) -> dict[str, Any]:
    """In which of PyTorch's modes a model is served, and what that means past training's steps."""
    if isinstance(model, HandwritingModel):
        return {"golden_mode": "training"}
    mode = {"golden_mode": golden_mode(model)}
    if model.config.norm != "batch":
        return mode
    last = model.config.longest_step
    return mode | {"past_longest_step": f"after {last} steps, the statistics of the last of them"}


def _keep_styles(source: Path, folder: Path) -> None:
    """Stored hands are states of the network, which other graphs of it go on from as well."""
    shutil.copyfile(source / STYLES, folder / STYLES)
    manifest = read_manifest(folder)
    manifest["styles"] = read_manifest(source)["styles"]
    manifest["files"][STYLES] = sha256(folder / STYLES)
    write_json(folder / MANIFEST, manifest)


def load_model(artifact: Path, manifest: dict[str, Any]) -> Model:
    """The PyTorch model of an artifact, from the very bytes onnxruntime reads; dropout rates 0."""
    model = fold_weights(make_model(manifest["kind"], manifest["hyperparameters"]))
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
