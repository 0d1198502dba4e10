"""A trained run as an artifact: weights once, graphs that point into them, golden vectors, and a
manifest that says what everything is.
"""

import math
import platform
import re
import shutil
from collections.abc import Callable
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import onnxruntime
from torch import nn

from contract.files import told_of
from contract.manifest import (
    EXACT,
    GOLDEN,
    MANIFEST,
    NAME,
    Graphs,
    Runners,
    Variant,
    sha256,
)
from contract.manifests import MANIFESTS, read_manifest
from export.artifact import (
    HISTORY,
    facts_of,
    is_artifact,
    load_model,
    read_artifact,
    require_facts,
    require_files,
)
from export.folders import made_whole, require_place
from export.graph import OPSET, layer_normalizations
from export.kind import ExportKind
from export.kinds import KINDS
from export.variant import GraphWriter
from models.norms import fold as fold_weights
from models.quantized import as_floats, integer_matrices, load_weights
from training import checkpoint
from training.kinds import KINDS as TRAINED
from training.loop import CHECKPOINT

_ROUNDED = "after training, which was in float32, as the validation loss is"

# File by runner and by whether options that leave symbols out are in the graph.
GRAPHS = {
    "scan": {"plain": "model.onnx", "filtered": "model-filtered.onnx"},
    "step": {"plain": "step.onnx", "filtered": "step-filtered.onnx"},
    "cuda": {"plain": "step-cuda.onnx", "filtered": "step-cuda-filtered.onnx"},
}


def convert(
    source: Path,
    artifact: Path,
    *,
    fold: bool = False,
    quantize: bool = False,
    approve: Callable[[Path], None] = lambda folder: None,
) -> None:
    """Write the best weights of a run as an artifact folder, all of it or nothing; or those of
    another artifact, with the graphs of today. `fold` makes a faster variant; `quantize` rounds the
    matrices to eight bits, for which they were not trained, and the provenance says so. `approve`
    sees the new one before it takes the place of an old one, which stays if it raises.

    Raises `ConversionError` when a graph breaks a promise, `ValueError` for a source without
    weights, a variant its model cannot have, or a place where something else is, and `OSError` for
    a disk that is full.
    """
    _require_name(artifact)
    with made_whole(artifact, is_artifact, "artifact") as folder:
        model, facts = read_source(source)
        if quantize:
            model, facts = _in_eight_bits(model, facts)
        with told_of(artifact):
            write_artifact(folder, artifact.name, model, facts, Variant(folded=fold))
            if is_artifact(source):
                _keep_extras(source, folder)
        approve(folder)


def require_artifact(artifact: Path) -> None:
    """Raise `ValueError` unless an artifact can be written there, under the name of its folder."""
    _require_name(artifact)
    require_place(artifact, is_artifact, "artifact")


def _require_name(artifact: Path) -> None:
    """Raise `ValueError` unless an artifact can have the name of this folder."""
    if not re.fullmatch(NAME, artifact.name):
        raise ValueError(
            f"{artifact.name!r} is no name of an artifact; it may have up to 100 letters, digits, "
            "_ . and -, and begins with neither of the last two"
        )


def require_servable(kind: ExportKind[Any], model: nn.Module, source: object) -> None:
    """Raise `ValueError` for a model that its kind cannot serve, which came of `source`."""
    if reason := kind.unfit(model):
        raise ValueError(f"{source} is {reason}")


def read_source(source: Path) -> tuple[nn.Module, dict[str, Any]]:
    """The model of a run or of an artifact, and the facts of its training."""
    if is_artifact(source):
        manifest = read_artifact(source)
        weights = {n: h for n, h in manifest.files.items() if n.endswith(".safetensors")}
        require_files(source, weights)
        model = load_model(source, manifest)
        return model, facts_of(source, manifest)
    if not (source / CHECKPOINT).exists():
        raise ValueError(f"{source} has neither {CHECKPOINT} nor {MANIFEST}; train it first")
    tensors, facts = checkpoint.load(source / CHECKPOINT)
    if "kind" not in facts:
        raise ValueError(
            f"{source} is a run of the laboratory; `python -m lab export TASK` exports it"
        )
    with checkpoint.understanding(source):
        kind = KINDS[facts["kind"]]
        model = kind.model(facts["model"])
    require_servable(kind, model, source)
    with checkpoint.understanding(source):
        require_facts(facts)
        validated = math.isfinite(facts["progress"]["best_loss"])
    if not validated:
        raise ValueError(f"{source} has not been validated yet; train it on")
    with checkpoint.understanding(source):
        model.load_state_dict(checkpoint.group(tensors, "best"))
    return model, facts


def _in_eight_bits(model: nn.Module, facts: dict[str, Any]) -> tuple[nn.Module, dict[str, Any]]:
    kind = KINDS[facts["kind"]]
    if facts["model"].get("precision") == "int8":
        raise ValueError("its matrices are of eight bits already")
    if "precision" not in {field.name for field in fields(TRAINED[kind.name].config)}:
        raise ValueError(f"a {kind.name} model has no matrices of eight bits")
    facts = facts | {"model": facts["model"] | {"precision": "int8"}, "rounded": _ROUNDED}
    eight = kind.model(facts["model"])
    load_weights(eight, as_floats(fold_weights(model)).state_dict())
    return eight, facts


def write_artifact(
    folder: Path, name: str, model: nn.Module, facts: dict[str, Any], variant: Variant = EXACT
) -> None:
    """Fill `folder` with the parts of an artifact; under weight norm, of the folded model."""
    kind = KINDS[facts["kind"]]
    model = fold_weights(model)
    writer = GraphWriter(kind, model, variant)
    graphs = {
        runner: {o: f for o, f in files.items() if o == "plain" or kind.filters}
        for runner, files in GRAPHS.items()
        if runner != "cuda" or integer_matrices(model)
    }
    plain = step = writer.step(filtered=False)
    for runner, files in graphs.items():
        for options, file in files.items():
            step = writer.write(
                folder / file,
                scan=runner == "scan",
                filtered=options == "filtered",
                signed=runner == "cuda",
            )
    kind.golden(model, facts).save(folder / GOLDEN)
    unfolded = {"layer_normalizations_unfolded": layer_normalizations(model)}
    MANIFESTS[kind.name](
        name=name,
        kind=kind.name,
        hyperparameters=facts["model"],
        graphs=Runners(**{runner: Graphs(**files) for runner, files in graphs.items()}),
        ports=writer.ports(step),
        filters=tuple(p.name for p in step.row_ports if p not in plain.row_ports),
        layer_normalizations=layer_normalizations(step),
        variant=variant,
        parameters=sum(p.numel() for p in model.parameters()),
        provenance=provenance(facts) | kind.served_as(model),
        files={p.name: sha256(p) for p in sorted(folder.iterdir())},
        **kind.contract(facts),
        **(unfolded if variant.folded else {}),
    ).write(folder)


def provenance(facts: dict[str, Any]) -> dict[str, Any]:
    """What the model was trained on, how, and with which versions; converted again, also those."""
    packages = ("torch", "onnx", "onnxscript", "safetensors")
    now = {"python": platform.python_version(), "onnxruntime": onnxruntime.__version__}
    now |= {p: version(p) for p in packages}
    again = {"converted_with": now} if "versions" in facts else {}
    temperature = facts["progress"].get("temperature")
    return (
        again
        | {name: facts[name] for name in HISTORY if name in facts}
        | {
            "data": facts["data"],
            "batch": facts["batch"],
            "training": facts["training"],
            "updates": facts["progress"]["best_update"],
            **({} if temperature is None else {"temperature": temperature}),
            "validation_loss": facts["progress"]["best_loss"],
            "elapsed_s": round(facts["progress"]["elapsed_s"], 1),
            "opset": OPSET,
            "versions": facts.get("versions", now),
        }
    )


def _keep_extras(source: Path, folder: Path) -> None:
    """What was added to an artifact after it was converted goes with it, such as stored hands:
    states of the network, which other graphs of it go on from as well."""
    before = read_artifact(source)
    for file, field in before.extras.items():
        if file in before.files:
            shutil.copyfile(source / file, folder / file)
            after = read_manifest(folder)
            after.with_file(file, folder / file, **{field: getattr(before, field)}).write(folder)
