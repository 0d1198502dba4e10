"""An artifact folder, checked before anything is served from it."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from safetensors import SafetensorError, safe_open

WEIGHTS = "model.safetensors"
GOLDEN = "golden.safetensors"
STYLES = "styles.safetensors"
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
    """A graph without the options that leave symbols out, and one with them if it has any."""

    plain: str
    filtered: str | None = None


class Runners(_Strict):
    """The graphs of either runner."""

    scan: Graphs
    step: Graphs

    def files(self) -> list[str]:
        """The names of all graphs."""
        graphs = (self.scan.plain, self.scan.filtered, self.step.plain, self.step.filtered)
        return [name for name in graphs if name is not None]


class ByteAlphabet(_Strict):
    """The symbols of a language model and the one that stands before the first."""

    kind: Literal["bytes"]
    size: int
    start_token: int


class CharacterAlphabet(_Strict):
    """The characters a handwriting model can write, numbered from 1; `end` stands after a text,
    which has `longest_text` characters at most."""

    kind: Literal["characters"]
    characters: str
    end: int
    longest_text: int


class InkUnits(_Strict):
    """How large handwriting is in the units of the model, on average."""

    points_per_character: float
    units_per_character: float
    units_per_line: float
    units_of_size: float


class StyleEntry(_Strict):
    """A stored hand, whose recurrent state is in `styles.safetensors`: the last character it wrote
    and how high over the baseline the pen was, in units."""

    id: str
    description: str
    context: str
    height: float


class GraphVariant(_Strict):
    """How the graphs differ from the network as trained; the exact artifact has no such entry."""

    folded: bool
    quantized: bool


class Manifest(_Strict):
    """`manifest.json`: what the files of the artifact are and what the graphs expect."""

    format_version: Literal[1]
    name: str
    kind: Literal["language", "handwriting"]
    hyperparameters: dict[str, Any]
    alphabet: ByteAlphabet | CharacterAlphabet = Field(discriminator="kind")
    graphs: Runners
    ports: Ports
    filters: tuple[str, ...]
    layer_normalizations: int
    layer_normalizations_unfolded: int | None = None
    variant: GraphVariant | None = None
    parameters: int
    provenance: dict[str, Any]
    files: dict[str, str]
    parity: list[dict[str, Any]] | None
    ink: InkUnits | None = None
    styles: tuple[StyleEntry, ...] = ()

    @model_validator(mode="after")
    def _of_one_kind(self) -> "Manifest":
        characters = isinstance(self.alphabet, CharacterAlphabet)
        if (self.kind == "handwriting") != characters or characters != (self.ink is not None):
            raise ValueError(f"alphabet and ink do not fit a model of kind {self.kind}")
        return self


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

    def golden(self) -> tuple[Arrays, dict[str, float]]:
        """The golden tensors, and by output the bound on a replay's error."""
        tensors, metadata = self._read(GOLDEN)
        try:
            if "bound" in metadata:  # a language model has one such output
                return tensors, {"logits": float(metadata["bound"])}
            bounds = {n.removeprefix("bound."): float(b) for n, b in metadata.items()}
        except ValueError as error:
            raise ArtifactError(f"{self.folder}: {GOLDEN}: {error}") from error
        if not bounds:
            raise ArtifactError(f"{self.folder}: {GOLDEN}: it says no bound")
        return tensors, bounds

    def style_states(self) -> dict[str, Arrays]:
        """The recurrent state of every stored hand, by its id."""
        if not self.manifest.styles:
            return {}
        tensors, _ = self._read(STYLES)
        ports = self.manifest.ports.state
        try:
            return {
                style.id: {p.name: tensors[f"{style.id}.{p.name}"] for p in ports}
                for style in self.manifest.styles
            }
        except KeyError as error:
            raise ArtifactError(f"{self.folder}: {STYLES} has no tensor {error}") from error

    def _read(self, name: str) -> tuple[Arrays, dict[str, str]]:
        try:
            with safe_open(self.folder / name, framework="numpy") as file:
                tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
                return tensors, file.metadata() or {}
        except (OSError, SafetensorError) as error:
            raise ArtifactError(f"{self.folder}: {name}: {error}") from error


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
    needed = [WEIGHTS, GOLDEN, *manifest.graphs.files()]
    needed += [STYLES] if manifest.styles else []
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
