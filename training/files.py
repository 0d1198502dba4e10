"""What lies below a folder of data, through symbolic links too: large data is kept elsewhere."""

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from lzma import LZMAError
from pathlib import Path
from tarfile import TarError
from zipfile import BadZipFile


class MissingData(ValueError):
    """A file or folder of data that is not there."""


def files_below(folder: Path, pattern: str = "*", *, readable: bool = False) -> list[Path]:
    """Every file whose name fits, at any depth, in order of path. Raises `OSError` for a folder
    that may not be read, unless only those are wanted that are in `readable` ones."""
    walk = _walk(folder, readable=readable)
    found = (path / n for path, _, names in walk for n in names if fnmatch(n, pattern))
    is_file = os.path.isfile if readable else Path.is_file  # the latter raises
    return sorted(file for file in found if is_file(file))


def folders_below(folder: Path, pattern: str) -> list[Path]:
    """Every folder below whose name fits, in order of path. Raises `OSError` as `files_below`."""
    return sorted(
        path / n for path, names, _ in _walk(folder) for n in names if fnmatch(n, pattern)
    )


@contextmanager
def unpacking(path: Path) -> Iterator[None]:
    """Raises `ValueError` for a packed file that is not whole, or packed otherwise."""
    try:
        yield
    # What bz2 and gzip find wrong is an OSError, and a password of a zip file a RuntimeError.
    except (BadZipFile, OSError, RuntimeError, EOFError, LZMAError, TarError, zlib.error) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise  # it cannot be opened
        reason = " ".join(str(error).split())  # tarfile tries every way, in a line each
        raise ValueError(f"{path} cannot be unpacked: {reason}") from error


def _walk(folder: Path, *, readable: bool = False) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Like `os.walk`, each folder once, so that a link back up is no loop. A folder that may not be
    read is an error, or half a corpus would be learned for the whole."""

    def failed(error: OSError) -> None:
        if not readable and not isinstance(error, FileNotFoundError):
            raise error

    seen: set[str] = set()
    for path, folders, files in os.walk(folder, onerror=failed, followlinks=True):
        real = os.path.realpath(path)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        yield Path(path), folders, files
