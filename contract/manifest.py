"""`manifest.json`: what an artifact is. Export writes it with the class the service reads it with.

Each kind of model has a subclass of `Manifest` with what it alone has to say.
"""

import hashlib
import json
import math
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from contract.files import replacing, to_disk

MANIFEST = "manifest.json"
WEIGHTS = "model.safetensors"
DERIVED = "derived.safetensors"
GOLDEN = "golden.safetensors"


class Strict(BaseModel):
    """Frozen, and every unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="strings")


# Of a file in the folder, and of a model in a path of the service.
NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$"
Name = Annotated[str, Field(pattern=NAME)]
# What a person is told: a line.
Words = Annotated[str, Field(max_length=200, pattern=r"^[^\p{C}]*$")]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_LARGEST_PORT = 1 << 20
_LARGEST_FLOAT = float(np.finfo(np.float32).max)
_MOST_FILES = 32
_Size = Annotated[int, Field(ge=1, le=_LARGEST_PORT)]


class Port(Strict):
    """One tensor that enters or leaves a step; `shape` is that of one row at one step."""

    name: Name
    dtype: Literal["float32", "int64", "bool"]
    shape: Annotated[tuple[_Size, ...], Field(max_length=3)]
    initial: float

    @model_validator(mode="after")
    def _check(self) -> Self:
        if math.prod(self.shape) > _LARGEST_PORT:
            raise ValueError(f"{self.name} has more than {_LARGEST_PORT} numbers a row")
        size, whole = abs(self.initial), self.initial.is_integer()
        if self.dtype == "float32":
            fits = size <= _LARGEST_FLOAT or math.isinf(size)
        else:
            fits = whole and size < 1 << 53
        if not fits:
            raise ValueError(f"{self.name} is initially {self.initial}, which is no {self.dtype}")
        return self


class Ports(Strict):
    """All tensors of the graphs by role: carried, per step, per row, and put out."""

    state: tuple[Port, ...]
    step: tuple[Port, ...]
    row: tuple[Port, ...]
    output: tuple[Port, ...]

    @model_validator(mode="after")
    def _check(self) -> Self:
        after = (f"{port.name}_after" for port in self.state)
        names = [*after, *(p.name for _, ports in self for p in ports)]
        if len(set(names)) < len(names):
            raise ValueError("two ports have one name")
        # Each slot of a service has a place for every one of them.
        if (numbers := sum(math.prod(p.shape) for _, ports in self for p in ports)) > _LARGEST_PORT:
            raise ValueError(f"ports have {numbers} numbers a row, more than {_LARGEST_PORT}")
        return self


class Graphs(Strict):
    """A graph without the options that leave symbols out, and one with them if it has any."""

    plain: Name
    filtered: Name | None = None

    def files(self) -> dict[str, str]:
        """The names of both by what they are."""
        named = {"plain": self.plain, "filtered": self.filtered}
        return {options: name for options, name in named.items() if name is not None}


class Runners(Strict):
    """The graphs of either runner; `cuda` are those of a step for CUDA, where they are others."""

    scan: Graphs
    step: Graphs
    cuda: Graphs | None = None

    def step_on(self, provider: str) -> Graphs:
        """Those of a step where `cpu` or `cuda` runs it."""
        return self.cuda or self.step if provider == "cuda" else self.step

    def each(self) -> list[tuple[str, str, str]]:
        """Runner, options and file of every graph."""
        runners = {"scan": self.scan, "step": self.step, "cuda": self.cuda}
        return [
            (runner, options, file)
            for runner, graphs in runners.items()
            if graphs
            for options, file in graphs.files().items()
        ]

    def files(self) -> list[str]:
        """The names of all graphs."""
        return [file for _, _, file in self.each()]


class Variant(Strict):
    """How the graphs differ from the network as trained, for speed, when asked to.

    `folded`: the first layer's projected input comes from a table. Older manifests also say that
    nothing is `quantized`; a model of eight bits is one as trained (`Manifest.precision`).
    """

    folded: bool = False
    quantized: Literal[False] = False

    @property
    def exact(self) -> bool:
        """Whether the graphs compute what the network does, operation by operation."""
        return not self.folded


EXACT = Variant()


def as_json(facts: dict[str, Any]) -> dict[str, Any]:
    """Facts as JSON, which has no word for a number that is not finite: null."""
    odd = [n for n, v in facts.items() if isinstance(v, float) and not math.isfinite(v)]
    return facts | dict.fromkeys(odd)


class Finding(Strict):
    """One measured figure of the parity report: `value` must be at most `bound`."""

    name: str
    value: float
    bound: float
    detail: str

    @property
    def holds(self) -> bool:
        """False for NaN, and for a bound that bounds nothing."""
        return self.value <= self.bound < math.inf

    def line(self) -> str:
        """For the terminal."""
        mark = "ok  " if self.holds else "FAIL"
        return f"{mark} {self.name}: {self.value:.3g} (bound {self.bound:g}), {self.detail}"

    def describe(self) -> dict[str, Any]:
        """As JSON, with the verdict."""
        return as_json(self.model_dump() | {"holds": self.holds})


class Manifest(Strict):
    """What the files of an artifact are, what its graphs expect and where it came from.

    `extras` are files that are added to a converted artifact, and what then tells of them.
    """

    extras: ClassVar[dict[str, str]] = {}

    format_version: Literal[2] = 2
    name: Name
    kind: str
    hyperparameters: dict[str, Any]
    graphs: Runners
    ports: Ports
    filters: tuple[str, ...]
    layer_normalizations: int
    layer_normalizations_unfolded: int | None = None
    variant: Variant = EXACT
    parameters: int
    provenance: dict[str, Any]
    files: Annotated[dict[Name, str], Field(max_length=_MOST_FILES)]
    parity: tuple[Finding, ...] | None = None

    @property
    def doubt(self) -> str | None:
        """Why the parity report is no proof that what is served is what was trained, if it is none:
        it is missing, or red."""
        if not self.parity:
            return (
                "there is no parity report; `python -m export verify --record ARTIFACT` makes one"
            )
        red = [finding.name for finding in self.parity if not finding.holds]
        if not red:
            return None
        cause = ""
        if self.provenance.get("golden_mode") == "evaluation":
            cause = "; its batch norm computes another function in evaluation mode than in training"
        return f"the parity report is red: {', '.join(red)}{cause}"

    @property
    def precision(self) -> str:
        """Of the matrices: `float32`, or `int8` of eight bits."""
        return str(self.hyperparameters.get("precision", "float32"))

    @property
    def digest(self) -> str:
        """The SHA-256 that identifies the content of all its files together."""
        return hashlib.sha256(json.dumps(self.files, sort_keys=True).encode()).hexdigest()

    def write(self, folder: Path) -> None:
        """Indented JSON with a newline at its end, for any reader as all that is exported."""
        with replacing(folder / MANIFEST, mode=0o644) as file:
            file.write_text(self.model_dump_json(indent=2, exclude_none=True) + "\n", "utf-8")
            to_disk(file)  # without its manifest an artifact is none

    def with_file(self, file: str, path: Path, /, **changes: Any) -> Self:
        """The same with a file added or replaced, which lies at `path`, and other changes."""
        files = dict(sorted((self.files | {file: sha256(path)}).items()))
        return self.model_copy(update={"files": files} | changes)


class AnyManifest(BaseModel):
    """As much of a manifest as says which version and which class read the rest."""

    format_version: int
    kind: str


def sha256(path: Path) -> str:
    """The file's SHA-256 in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
