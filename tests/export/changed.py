"""Artifacts that serve something else than was trained."""

import shutil
from pathlib import Path

import numpy as np
import onnx
from safetensors.numpy import load_file, save_file

from contract.manifest import DERIVED, sha256
from export.artifact import read_artifact


def with_served_weight_changed(artifact: Path, folder: Path, name: str, by: float) -> Path:
    """A copy whose graphs read the largest element of a weight `by` larger than PyTorch does, and
    whose manifest knows of it."""
    shutil.copytree(artifact, folder)
    changed = load_file(folder / "model.safetensors")[name].copy()
    changed.flat[np.abs(changed).argmax()] += by
    save_file({name: changed}, folder / DERIVED)
    offset = (folder / DERIVED).stat().st_size - changed.nbytes
    for path in folder.glob("*.onnx"):
        proto = onnx.load(path, load_external_data=False)
        (tensor,) = (t for t in proto.graph.initializer if t.name == name)
        place = {"location": DERIVED, "offset": str(offset), "length": str(changed.nbytes)}
        for entry in tensor.external_data:
            entry.value = place[entry.key]
        path.write_bytes(proto.SerializeToString())
    manifest = read_artifact(folder)
    files = {file: sha256(folder / file) for file in (*manifest.files, DERIVED)}
    manifest.model_copy(update={"files": files}).write(folder)
    return folder
