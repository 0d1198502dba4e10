"""Which class reads the manifest of which kind of model."""

import json
from pathlib import Path

from contract.ink import InkManifest
from contract.kinds import Kinds
from contract.manifest import MANIFEST, AnyManifest, Manifest
from contract.text import TextManifest

MANIFESTS: Kinds[type[Manifest]] = Kinds({"language": TextManifest, "handwriting": InkManifest})


def read_manifest(folder: Path) -> Manifest:
    """The manifest of an artifact folder.

    Raises `OSError` when it cannot be read and `ValueError`, of which pydantic's errors are, for
    one that is not valid.
    """
    content = (folder / MANIFEST).read_bytes()
    kind = AnyManifest.model_validate_json(content).kind
    manifest = MANIFESTS[kind].model_validate_json(content)
    # Defaults are for who writes one: a manifest of another kind must not pass for this by them.
    if missing := manifest.model_dump(exclude_none=True).keys() - json.loads(content).keys():
        raise ValueError(f"{', '.join(sorted(missing))}: missing from a manifest of kind {kind}")
    return manifest
