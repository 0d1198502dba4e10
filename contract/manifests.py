"""Which class reads the manifest of which kind of model."""

import json
import math
from pathlib import Path

from pydantic import ValidationError

from contract.ink import InkManifest
from contract.kinds import Kinds
from contract.manifest import GOLDEN, MANIFEST, WEIGHTS, AnyManifest, Manifest
from contract.reader import ReaderManifest
from contract.text import TextManifest

MANIFESTS: Kinds[type[Manifest]] = Kinds(
    {"language": TextManifest, "handwriting": InkManifest, "reader": ReaderManifest}
)


LARGEST_MANIFEST_BYTES = 1 << 20


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a folder. Raises `OSError`, and `ValueError` that names the file."""
    path = folder / MANIFEST
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_MANIFEST_BYTES + 1)
        if len(content) > LARGEST_MANIFEST_BYTES:
            raise ValueError(f"it has more than {LARGEST_MANIFEST_BYTES} bytes")
        return parse_manifest(content)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def parse_manifest(content: bytes) -> Manifest:
    """A manifest from its bytes. Raises `ValueError` with the first thing that is wrong."""
    try:
        told = AnyManifest.model_validate_json(content)
        _require_format(told.format_version)
        kind = told.kind
        manifest = MANIFESTS[kind].model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise ValueError(f"{place}: {first['msg']}") from error
    written = json.loads(content, parse_constant=_finite, parse_float=_finite)
    # Defaults are for who writes one: a manifest of another kind must not pass for this by them.
    if missing := manifest.model_dump(exclude_none=True).keys() - written.keys():
        raise ValueError(f"{', '.join(sorted(missing))}: missing from a manifest of kind {kind}")
    for name in (WEIGHTS, GOLDEN, *manifest.graphs.files()):
        if name not in manifest.files:  # nobody could tell whether it was altered
            raise ValueError(f"files: {name} is not among them")
    return manifest


def _require_format(version: int) -> None:
    """Raises `ValueError` for that of another version, which may differ from ours in anything."""
    ours = Manifest.model_fields["format_version"].default
    if version != ours:
        raise ValueError(
            f"format_version is {version}; it must be {ours}: convert its run again with this "
            "version, `python -m export convert RUN ARTIFACT`"
        )


def _finite(text: str) -> float:
    """Facts are shown as JSON, which has no other numbers; what may be infinite is a string."""
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{text[:20]} is not a finite number")
    return value
