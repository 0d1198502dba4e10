"""Files of compose as they are read here."""

from pathlib import Path
from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """Knows what compose adds to YAML."""


_Loader.add_constructor("!reset", lambda loader, node: None)


def read(path: Path) -> dict[str, Any]:
    """What a file says."""
    content: dict[str, Any] = yaml.load(path.read_text("utf-8"), _Loader)
    return content
