"""Files written whole: whoever reads one, or finds it after a full disk, has the old or the new."""

import os
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Replace a text file, or leave it as it was. Raises `OSError`."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
