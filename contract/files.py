"""Files written whole: whoever reads one, or finds it after a full disk, has the old or the new."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A place beside a file to write to, which takes the file's when all went well."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Replace a text file, or leave it as it was; who may read it stays. Raises `OSError`."""
    with replacing(path) as temporary:
        temporary.write_text(text)
        if path.exists():
            shutil.copymode(path, temporary)
