"""An artifact folder, checked before anything is served from it."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import ValidationError
from safetensors import SafetensorError, safe_open

from contract.golden import Arrays, Golden
from contract.manifest import GOLDEN, MANIFEST, WEIGHTS, Manifest, sha256
from contract.manifests import read_manifest


class ArtifactError(Exception):
    """A folder that cannot be served: something is missing, cut short or altered."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A checked folder; `digest` identifies the content of all its files together."""

    folder: Path
    manifest: Manifest
    golden: Golden
    digest: str

    @property
    def name(self) -> str:
        return self.manifest.name

    def initial_state(self) -> Arrays:
        """The state of one row before its first step."""
        return {p.name: np.full(p.shape, p.initial, p.dtype) for p in self.manifest.ports.state}

    def tensors(self, name: str) -> Arrays:
        """All tensors of one of its safetensors files. Raises `ArtifactError`."""
        try:
            with safe_open(self.folder / name, framework="numpy") as file:
                return {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        except (OSError, SafetensorError) as error:
            raise ArtifactError(f"{self.folder}: {name}: {error}") from error


def load_artifact(folder: Path) -> Artifact:
    """Read and check one folder. Raises `ArtifactError` naming the file and the reason."""
    path = folder / MANIFEST
    manifest = _read_manifest(path)
    for name, expected in manifest.files.items():
        if name != Path(name).name:
            raise ArtifactError(f"{path}: files: {name} is not in the folder")
        _check_file(folder / name, expected)
    for name in (WEIGHTS, GOLDEN, *manifest.graphs.files()):
        if name not in manifest.files:
            raise ArtifactError(f"{path}: files: {name} is not among them")
    try:
        golden = Golden.load(folder / GOLDEN)
    except ValueError as error:
        raise ArtifactError(f"{folder}: {error}") from error
    for group, ports in (("steps", manifest.ports.step), ("rows", manifest.ports.row)):
        given = {name: str(array.dtype) for name, array in getattr(golden, group).items()}
        if given != {port.name: port.dtype for port in ports}:
            raise ArtifactError(f"{folder}: {GOLDEN}: {group} are not those of the graphs")
    files = json.dumps(manifest.files, sort_keys=True).encode()
    return Artifact(folder, manifest, golden, hashlib.sha256(files).hexdigest())


def load_artifacts(folder: Path) -> dict[str, Artifact]:
    """Every artifact in `folder`, by name. Raises `ArtifactError` when there is none."""
    folders = sorted(p.parent for p in folder.glob(f"*/{MANIFEST}"))
    if not folders:
        raise ArtifactError(f"{folder.resolve()} holds no artifact; `make serve` builds one")
    loaded: dict[str, Artifact] = {}
    for artifact in map(load_artifact, folders):
        if artifact.name in loaded:
            raise ArtifactError(f"{artifact.folder}: another folder has a model {artifact.name!r}")
        loaded[artifact.name] = artifact
    return loaded


def _read_manifest(path: Path) -> Manifest:
    try:
        return read_manifest(path.parent)
    except OSError as error:
        raise ArtifactError(f"{path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise ArtifactError(f"{path}: {place}: {first['msg']}") from error
    except ValueError as error:
        raise ArtifactError(f"{path}: {error}") from error


def _check_file(path: Path, expected: str) -> None:
    if not path.is_file():
        raise ArtifactError(f"{path} is missing")
    found = sha256(path)
    if found != expected:
        raise ArtifactError(
            f"{path} has sha256 {found[:12]}…, the manifest says {expected[:12]}…; "
            f"the file was cut short or altered"
        )
