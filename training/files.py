"""What lies below a folder of data, through symbolic links too: large data is kept elsewhere."""

import os
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path


def files_below(folder: Path, pattern: str = "*") -> list[Path]:
    """Every file whose name fits, at any depth, in order of path."""
    found = (path / n for path, _, names in _walk(folder) for n in names if fnmatch(n, pattern))
    return sorted(file for file in found if file.is_file())


def folders_below(folder: Path, pattern: str) -> list[Path]:
    """Every folder below whose name fits, in order of path."""
    return sorted(
        path / n for path, names, _ in _walk(folder) for n in names if fnmatch(n, pattern)
    )


def _walk(folder: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Like `os.walk`, each folder once, so that a link back up is no loop."""
    seen: set[str] = set()
    for path, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(path)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        yield Path(path), folders, files
