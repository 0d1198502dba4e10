"""A trained task as ONNX graphs over one weights file, and the report on whether they compute what
training did: `python -m lab export TASK`.

The graphs, their promises and the bounds are those of `export`: weights once, native layer norms,
operators whose rows are independent, float64 structure, float32 rounding, bits in any batch. Under
batch norm, training mode is not what is served, and the report is red: that is the exhibit.
"""

import copy
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import nn

from contract.files import told_of
from contract.golden import Arrays
from contract.manifest import GOLDEN, MANIFEST, Finding, sha256
from export.folders import made_whole
from export.graph import OPSET, layer_normalizations
from export.parity.numbers import MAX_ROUNDING_RATIO, MAX_STRUCTURE_ERROR, ratio
from export.parity.served import differing_bytes
from export.results import machine, write_json
from lab.experiment import Experiment, LabTask, Named, Part
from lab.graphs import PartGraph, in_precision
from models.norms import fold
from training.config import Recipe

BATCHES = (2, 3, 7, 16)


def export(
    experiment: Experiment[Any], task: LabTask, recipe: Recipe, folder: Path
) -> list[Finding]:
    """Write the graphs of a trained task, its weights, golden vectors and a manifest; the report.

    All of it or nothing. Raises `ConversionError` when a graph breaks a promise, `ValueError` for
    a place where something else is, `OSError` for a disk that is full.
    """
    with made_whole(folder, _is_export, "export of a task") as made, told_of(folder):
        return _write(experiment, task, recipe, made)


def _is_export(folder: Path) -> bool:
    try:
        return "task" in json.loads((folder / MANIFEST).read_text("utf-8"))
    except (OSError, TypeError, ValueError):
        return False


def _write(
    experiment: Experiment[Any], task: LabTask, recipe: Recipe, folder: Path
) -> list[Finding]:
    model = fold(task.model)
    parts = experiment.parts(task)
    graphs = [PartGraph(part, model, folder) for part in parts]
    report = [finding for graph in graphs for finding in compare(graph, model)]
    save_file(golden(parts, model), folder / GOLDEN)
    manifest = {
        "task": experiment.name,
        "recipe": asdict(recipe),
        "parameters": sum(p.numel() for p in model.parameters()),
        "graphs": {graph.path.name: _described(graph) for graph in graphs},
        "machine": machine(),
        "versions": {p: version(p) for p in ("onnx", "onnxscript", "safetensors")},
        "opset": OPSET,
        "files": {p.name: sha256(p) for p in sorted(folder.iterdir())},
        "report": [finding.describe() for finding in report],
    }
    write_json(folder / MANIFEST, manifest)
    return report


def compare(graph: PartGraph, model: nn.Module) -> list[Finding]:
    """What training computes of a part's inputs beside what its graph does, each row alone."""
    part = graph.part
    truth = trained(part, model, torch.float64)
    return [
        structure(part, model, truth, graph.path.parent / ".float64"),
        rounding(part, model, truth, graph),
        bits(graph),
        native(graph),
    ]


@torch.no_grad()
def trained(part: Part, model: nn.Module, real: torch.dtype) -> Arrays:
    """What training computes, in training mode and in one batch."""
    found = part.trained(copy.deepcopy(model).to(real).train(), in_precision(part.inputs, real))
    return {name: tensor.numpy() for name, tensor in found.items()}


def structure(part: Part, model: nn.Module, truth: Arrays, folder: Path) -> Finding:
    """The float64 graph, each row alone, against float64 training: no rounding to hide in."""
    wide = copy.deepcopy(model).double()
    try:
        served = PartGraph(part, wide, folder).alone(in_precision(part.inputs, torch.float64))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    # Not Python's max, which passes over what is not a number.
    error = float(np.max([np.abs(served[name] - truth[name]).max() for name in truth]))
    return Finding(
        name=f"{part.name}, structure", value=error, bound=MAX_STRUCTURE_ERROR,
        detail="max |difference|, float64 graph at batch 1 and float64 training mode",
    )  # fmt: skip


def rounding(part: Part, model: nn.Module, truth: Arrays, graph: PartGraph) -> Finding:
    """Distance to float64 truth: of the served float32, each row alone, over training's own, which
    is that of its batch. A row alone in PyTorch is a product of another kind, and closer."""
    mine = _rms(graph.alone(part.inputs), truth)
    own = _rms(trained(part, model, torch.float32), truth)
    return Finding(
        name=f"{part.name}, rounding", value=ratio(mine, own), bound=MAX_ROUNDING_RATIO,
        detail=f"rms error of served float32 over training's own, {mine:.2g} over {own:.2g}",
    )  # fmt: skip


def bits(graph: PartGraph) -> Finding:
    """Bytes of a row's outputs and states that depend on the rows beside it."""
    inputs = graph.part.inputs
    alone = graph.alone(inputs)
    total = graph.batch(inputs)
    random = np.random.default_rng(0)
    differing = compared = 0
    for batch in (*(b for b in BATCHES if b < total), total):
        rows = random.permutation(total)[:batch].tolist()
        differing += differing_bytes(graph.taken(alone, rows), graph.rows(inputs, rows))
        compared += batch
    return Finding(
        name=f"{graph.part.name}, bits", value=differing, bound=0,
        detail=f"bytes that differ from a row alone, {compared} rows in batches of up to {total}",
    )  # fmt: skip


def native(graph: PartGraph) -> Finding:
    """Layer normalisations of the graph against those of the model, which are to be native."""
    expected = layer_normalizations(graph.step)
    found = count_layer_norms(graph.path)
    return Finding(
        name=f"{graph.part.name}, layer norms", value=abs(found - expected), bound=0,
        detail=f"{found} LayerNormalization nodes, {expected} in the model",
    )  # fmt: skip


def count_layer_norms(path: Path) -> int:
    """How many native ones a graph file has, at any depth."""
    return sum(node.op_type == "LayerNormalization" for node in ir.load(path).graph.all_nodes())


def golden(parts: Sequence[Part], model: nn.Module) -> Named:
    """Inputs and what training computes of them, as `PART/inputs/PORT`, `PART/float32/PORT` and
    `PART/float64/PORT`."""
    tensors: Named = {}
    for part in parts:
        tensors |= {f"{part.name}/inputs/{n}": t.contiguous() for n, t in part.inputs.items()}
        for label, real in (("float32", torch.float32), ("float64", torch.float64)):
            outputs = trained(part, model, real)
            tensors |= {
                f"{part.name}/{label}/{n}": torch.from_numpy(np.ascontiguousarray(a))
                for n, a in outputs.items()
            }
    return tensors


def _rms(found: Arrays, truth: Arrays) -> float:
    squares: list[NDArray[Any]] = [((found[n] - truth[n]) ** 2).ravel() for n in truth]
    return float(np.sqrt(np.concatenate(squares).mean()))


def _described(graph: PartGraph) -> dict[str, Any]:
    step, scan = graph.step, graph.part.scan
    roles = {
        "state": step.state_ports, "step": step.step_ports, "row": step.row_ports,
        "output": step.output_ports,
    }  # fmt: skip
    return {
        "scan": scan,
        "layer_normalizations": layer_normalizations(step),
        "ports": {
            role: [{"name": p.name, "shape": list(p.shape), "initial": p.initial} for p in ports]
            for role, ports in roles.items()
        },
    }
