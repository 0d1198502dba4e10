"""Files written whole: whoever reads one, or finds it after a full disk, has the old or the new.
And who may write them at a time, and what TOML says.
"""

import fcntl
import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from stat import S_IMODE
from typing import Any


def printable(name: str) -> str:
    """The name of a file, or words that have one: bytes of it that are no UTF-8 are spelt out."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def require_writable(folder: Path) -> None:
    """Raise `ValueError` where nothing can be made in a folder, or the folder itself: before the
    work that it is of."""
    place = folder.absolute()
    there = next(path for path in (place, *place.parents) if path.exists())
    if not there.is_dir():
        raise ValueError(f"{folder}: {there} is no folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ValueError(f"{folder}: nothing may be written in {there}")


@contextmanager
def alone_in(folder: Path, *, waits: bool = True) -> Iterator[None]:
    """Whoever else asks for a folder in this way waits, or has `BlockingIOError`. The system lets
    it go with the process, however that ends."""
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(held)


def from_toml(text: str) -> dict[str, Any]:
    """What a text in TOML says. Raises `ValueError`, also for one that is nested without an end."""
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


@contextmanager
def replacing(path: Path, mode: int | None = None) -> Iterator[Path]:
    """A place beside a file to write to, which takes the file's when all went well: for those who
    might read that, or whom a `mode` lets. Of a symbolic link, the file's that it leads to."""
    path = _behind(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if path.exists():  # until it is whole, nobody reads it who might not read the old one
            temporary.touch(0o600)
        yield temporary
        _open_to_the_same(path, temporary)
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def forget_unfinished(path: Path) -> None:
    """Remove what processes that were killed left beside a file while they wrote it anew. For
    who is alone there: what another is writing would go as well."""
    path = _behind(path)
    for left in path.parent.glob(f".{escape(path.name)}.*"):
        if left.suffix[1:].isdecimal():
            left.unlink(missing_ok=True)


def _behind(path: Path) -> Path:
    """The file, or that which a symbolic link leads to."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _open_to_the_same(path: Path, temporary: Path) -> None:
    """Give a new file the permissions of the old one and, where that may be done, its owner."""
    with suppress(FileNotFoundError, PermissionError):
        old = path.stat()
        temporary.chmod(S_IMODE(old.st_mode))
        os.chown(temporary, old.st_uid, old.st_gid)


def write_whole(path: Path, text: str) -> None:
    """Replace a text file, or leave it as it was. Raises `OSError`."""
    with replacing(path) as temporary:
        temporary.write_text(text, "utf-8")
