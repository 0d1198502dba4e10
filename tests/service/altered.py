"""Copies of an artifact with something changed, honest about it or not."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file


def copy_of(artifact: Path, folder: Path) -> Path:
    """A copy of one artifact, by its own name, in `folder`."""
    return Path(shutil.copytree(artifact, folder / artifact.name))


def edit_manifest(artifact: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    """Let `edit` change the manifest."""
    path = artifact / "manifest.json"
    manifest = json.loads(path.read_text())
    edit(manifest)
    path.write_text(json.dumps(manifest))


def rehash(artifact: Path) -> None:
    """Make the manifest agree with the files again."""

    def edit(manifest: dict[str, Any]) -> None:
        for name in manifest["files"]:
            content = (artifact / name).read_bytes()
            manifest["files"][name] = hashlib.sha256(content).hexdigest()

    edit_manifest(artifact, edit)


def perturb(artifact: Path, tensor: str, place: tuple[int, ...], by: float) -> None:
    """Add `by` to one element of a weight, hashes recomputed. The file's layout stays as it was."""
    path = artifact / "model.safetensors"
    content = bytearray(path.read_bytes())
    size = int.from_bytes(content[:8], "little")
    entry = json.loads(content[8 : 8 + size])[tensor]
    begin, end = (8 + size + offset for offset in entry["data_offsets"])
    weights = np.frombuffer(content[begin:end], np.float32).reshape(entry["shape"]).copy()
    weights[place] += by
    content[begin:end] = weights.tobytes()
    path.write_bytes(content)
    rehash(artifact)


def perturb_graph(artifact: Path, graph: str, tensor: str, place: tuple[int, ...]) -> None:
    """Change one element of a weight in one graph alone, hashes recomputed."""
    import onnx  # here, because only a few tests need it

    model = onnx.load(artifact / graph, load_external_data=False)
    (weight,) = (i for i in model.graph.initializer if i.name == tensor)
    where = {entry.key: entry.value for entry in weight.external_data}
    content = (artifact / where["location"]).read_bytes()[int(where["offset"]) :]
    values = np.frombuffer(content[: int(where["length"])], np.float32).reshape(weight.dims).copy()
    values[place] += 1e-3
    weight.CopyFrom(onnx.numpy_helper.from_array(values, tensor))
    onnx.save(model, artifact / graph)
    rehash(artifact)


def lose_state(artifact: Path, graph: str, port: str) -> None:
    """Have one graph leave a port of its state as the run began with it, hashes recomputed."""
    import onnx  # here, because only a few tests need it

    model = onnx.load(artifact / graph, load_external_data=False)
    after = f"{port}_after"
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = [f"{after}_lost" if name == after else name for name in names]
    model.graph.node.append(onnx.helper.make_node("Identity", [port], [after]))
    onnx.save(model, artifact / graph)
    rehash(artifact)


def pass_on(artifact: Path, graph: str, which: str) -> None:
    """Have one graph emit what is "drawn" even where it is forced, or what it is given ("forced")
    even where it draws, hashes recomputed."""
    import onnx  # here, because only a few tests need it

    model = onnx.load(artifact / graph, load_external_data=False)
    scans = [node for node in model.graph.node if node.op_type == "Scan"]
    nodes = scans[0].attribute[0].g.node if scans else model.graph.node
    (choice,) = (
        n for n in nodes if n.op_type == "Where" and n.input[1] in {"forced", "forced_now"}
    )
    choice.input[1:] = [choice.input[2 if which == "drawn" else 1]] * 2
    onnx.save(model, artifact / graph)
    rehash(artifact)


def mix_rows(artifact: Path, graph: str) -> None:
    """Have one graph add a millionth of the logits of all earlier rows to those of a row, hashes
    recomputed."""
    import onnx  # here, because only a few tests need it

    model = onnx.load(artifact / graph, load_external_data=False)
    scans = [node for node in model.graph.node if node.op_type == "Scan"]
    inner = scans[0].attribute[0].g if scans else model.graph
    (name,) = (o.name for o in inner.output if o.name.startswith("logits"))
    for node in inner.node:
        for names in (node.input, node.output):
            names[:] = ["unmixed" if n == name else n for n in names]
    constants = {"of_rows": np.int64(0), "millionth": np.float32(1e-6)}
    for constant, value in constants.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(value), constant))
    inner.node.extend(
        [
            onnx.helper.make_node("CumSum", ["unmixed", "of_rows"], ["summed"], exclusive=1),
            onnx.helper.make_node("Mul", ["summed", "millionth"], ["leak"]),
            onnx.helper.make_node("Add", ["unmixed", "leak"], [name]),
        ]
    )
    onnx.save(model, artifact / graph)
    rehash(artifact)


def edit_golden(
    artifact: Path,
    edit: Callable[[dict[str, np.ndarray]], object] = lambda tensors: None,
    **bounds: float | str,
) -> None:
    """Let `edit` change the golden tensors, and set `bounds` by output; hashes recomputed."""
    path = artifact / "golden.safetensors"
    with safe_open(path, framework="numpy") as file:
        facts = json.loads(file.metadata()["evenkeel"])
    tensors = load_file(path)
    edit(tensors)
    facts["bounds"] |= bounds
    save_file(tensors, path, {"evenkeel": json.dumps(facts)})
    rehash(artifact)
