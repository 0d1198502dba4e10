"""Artifacts that serve something else than was trained."""

import shutil
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from safetensors.numpy import load_file

from contract.manifest import sha256
from export.convert import read_artifact


def with_served_weight_changed(artifact: Path, folder: Path, name: str, by: float) -> Path:
    """A copy whose graphs read the largest element of a weight `by` larger than PyTorch does, and
    whose manifest knows of it."""
    shutil.copytree(artifact, folder)
    changed = load_file(folder / "model.safetensors")[name].copy()
    changed.flat[np.abs(changed).argmax()] += by
    for path in folder.glob("*.onnx"):
        proto = onnx.load(path, load_external_data=False)
        (place,) = (i for i, t in enumerate(proto.graph.initializer) if t.name == name)
        proto.graph.initializer[place].CopyFrom(numpy_helper.from_array(changed, name))
        path.write_bytes(proto.SerializeToString())
    manifest = read_artifact(folder)
    files = {file: sha256(folder / file) for file in manifest.files}
    manifest.model_copy(update={"files": files}).write(folder)
    return folder
