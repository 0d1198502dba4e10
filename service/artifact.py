"""An artifact folder, checked before anything is served from it."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError
from safetensors import SafetensorError, safe_open

WEIGHTS = "model.safetensors"
GOLDEN = "golden.safetensors"
Arrays = dict[str, NDArray[Any]]


class ArtifactError(Exception):
    """A folder that cannot be served: something is missing, cut short or altered."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Port(_Strict):
    """One tensor that enters or leaves a step; `shape` is that of one row at one step."""

    name: str
    dtype: Literal["float32", "int64", "bool"]
    shape: tuple[int, ...]
    initial: float


class Ports(_Strict):
    """All tensors of the graphs by role: carried, per step, per row, and put out."""

    state: tuple[Port, ...]
    step: tuple[Port, ...]
    row: tuple[Port, ...]
    output: tuple[Port, ...]


class Graphs(_Strict):
    """A graph without the options that need a sort, and one with them."""

    plain: str
    filtered: str


class Runners(_Strict):
    """The graphs of either runner."""

    scan: Graphs
    step: Graphs


class Alphabet(_Strict):
    """The symbols of the model and the one that stands before the first."""

    kind: Literal["bytes"]
    size: int
    start_token: int


class Manifest(_Strict):
    """`manifest.json`: what the files of the artifact are and what the graphs expect."""

    format_version: Literal[1]
    name: str
    kind: Literal["language"]
    hyperparameters: dict[str, Any]
    alphabet: Alphabet
    graphs: Runners
    ports: Ports
    filters: tuple[str, ...]
    layer_normalizations: int
    parameters: int
    provenance: dict[str, Any]
    files: dict[str, str]
    parity: list[dict[str, Any]] | None


@dataclass(frozen=True, slots=True)
class Artifact:
    """A checked folder; `digest` identifies the content of all its files together."""

    folder: Path
    manifest: Manifest
    digest: str

    @property
    def name(self) -> str:
        return self.manifest.name

    def initial_state(self) -> Arrays:
        """The state of one row before its first step."""
        return {p.name: np.full(p.shape, p.initial, p.dtype) for p in self.manifest.ports.state}

    def golden(self) -> tuple[Arrays, float]:
        """The golden tensors and the bound on a replay's error in its logits."""
        try:
            with safe_open(self.folder / "golden.safetensors", framework="numpy") as file:
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                return tensors, float((file.metadata() or {})["bound"])
        except (KeyError, ValueError, SafetensorError) as error:
            raise ArtifactError(f"{self.folder}: golden.safetensors: {error}") from error


def load_artifact(folder: Path) -> Artifact:
    """Read and check one folder. Raises `ArtifactError` naming the file and the reason."""
    path = folder / "manifest.json"
    try:
        manifest = Manifest.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ArtifactError(f"{path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise ArtifactError(f"{path}: {place}: {first['msg']}") from error
    for name, expected in manifest.files.items():
        if name != Path(name).name:
            raise ArtifactError(f"{path}: files: {name} is not in the folder")
        _check_file(folder / name, expected)
    scan, step = manifest.graphs.scan, manifest.graphs.step
    needed = (WEIGHTS, GOLDEN, scan.plain, scan.filtered, step.plain, step.filtered)
    for name in needed:
        if name not in manifest.files:
            raise ArtifactError(f"{path}: files: {name} is not among them")
    files = json.dumps(manifest.files, sort_keys=True).encode()
    return Artifact(folder, manifest, hashlib.sha256(files).hexdigest())


def load_artifacts(folder: Path) -> dict[str, Artifact]:
    """Every artifact in `folder`, by name. Raises `ArtifactError` when there is none."""
    folders = sorted(p.parent for p in folder.glob("*/manifest.json"))
    if not folders:
        raise ArtifactError(f"{folder.resolve()} holds no artifact; `make serve` builds one")
    loaded: dict[str, Artifact] = {}
    for artifact in map(load_artifact, folders):
        if artifact.name in loaded:
            raise ArtifactError(f"{artifact.folder}: another folder has a model {artifact.name!r}")
        loaded[artifact.name] = artifact
    return loaded


def _check_file(path: Path, expected: str) -> None:
    if not path.is_file():
        raise ArtifactError(f"{path} is missing")
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise ArtifactError(
            f"{path} has sha256 {found[:12]}…, the manifest says {expected[:12]}…; "
            f"the file was cut short or altered"
        )
