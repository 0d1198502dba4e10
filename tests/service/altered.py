"""Copies of an artifact with something changed, honest about it or not."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
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


def edit_golden(
    artifact: Path,
    edit: Callable[[dict[str, np.ndarray]], None],
    bound: str = "",
    **bounds: str,
) -> None:
    """Let `edit` change the golden tensors, and set their bound, or `bounds` by output; hashes
    recomputed."""
    path = artifact / "golden.safetensors"
    tensors = load_file(path)
    edit(tensors)
    named = {f"bound.{name}": value for name, value in bounds.items()}
    save_file(tensors, path, named or {"bound": bound})
    rehash(artifact)
