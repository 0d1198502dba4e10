"""Files written whole: whoever reads one, at any moment or after a full disk, has the old content
or the new. Also locks on folders, and TOML.
"""

import errno
import fcntl
import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from stat import S_IMODE
from typing import Any
from unicodedata import category

from safetensors import SafetensorError

# Which every version of Unicode has alike, unlike all that can be printed: a name is the same name
# under each Python.
_CONTROLS = ("Cc", "Zl", "Zp")


def printable(name: str) -> str:
    """A file name, or a text with one in it, that can be printed: bytes of the name that are not
    UTF-8, which Python keeps as surrogates, become escapes such as `\\xff`, and so does what would
    begin a line or move a cursor."""
    told = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(repr(c)[1:-1] if category(c) in _CONTROLS else c for c in told)


def require_writable(folder: Path) -> Path:
    """Raise `ValueError` unless files can be written in `folder` or, if it is not there yet, it can
    be made. To be called before work whose result goes there. Returns the nearest folder that is
    there: itself, or the one in which it would be made."""
    place = folder.absolute()
    there = next(path for path in (place, *place.parents) if os.path.lexists(path))
    if not there.is_dir():
        raise ValueError(f"{folder}: {there} is no folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ValueError(f"{folder}: nothing may be written in {there}")
    return there


@contextmanager
def alone_in(folder: Path, *, waits: bool = True) -> Iterator[None]:
    """Hold a folder's lock: whoever else asks for it waits, or gets `BlockingIOError` if it `waits`
    not. The operating system frees it with the process, however that ends."""
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(held)


def from_toml(text: str) -> dict[str, Any]:
    """A TOML text as a dict. Raises `ValueError` for what is no TOML, or is nested too deep."""
    try:
        tables = tomllib.loads(text)
        repr(tables)  # a key of many parts makes tables of any depth, of which nobody could tell
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    return tables


@contextmanager
def told_of(place: Path) -> Iterator[None]:
    """Have an error of writing there name the place: of a full disk the system tells no more than
    that it is full, and safetensors raises an error of its own. Raises `OSError`."""
    try:
        yield
    except SafetensorError as error:
        raise OSError(f"could not write {place}: {error}") from error
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(place)) from error


@contextmanager
def replacing(path: Path, mode: int | None = None) -> Iterator[Path]:
    """Yields the path of a temporary file beside `path`, to write the new content to. It replaces
    the old file when the block ends without an error, and is removed otherwise.

    The new file has the permissions of the old one, unless a `mode` is given, and its owner where
    that is allowed. Where `path` is a symbolic link, the file it leads to is replaced. Raises
    `OSError` as `told_of` does, and at once where there is something that is no plain file, such as
    `/dev/null`.
    """
    path = behind(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if path.exists():
            if not path.is_file():
                raise FileExistsError(errno.EEXIST, "it is no plain file", str(path))
            temporary.touch(0o600)  # until it is whole, nobody reads it who might not read the old
        with told_of(path):
            yield temporary
        _open_to_the_same(path, temporary)
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def to_disk(path: Path) -> None:
    """Have the content of a file on the disk: after a loss of power a name may otherwise lead to
    what was never written. For what takes hours to make, and all of it. Raises `OSError`."""
    with path.open("rb") as file:
        os.fsync(file)


def forget_unfinished(path: Path) -> None:
    """Remove the temporary files that `replacing` left beside `path` in processes that were killed.
    No other process may be writing the file: its temporary file would be removed as well."""
    path = behind(path)
    for left in path.parent.glob(f".{escape(path.name)}.*"):
        if left.suffix[1:].isdecimal():
            left.unlink(missing_ok=True)


def behind(path: Path) -> Path:
    """The path itself or, if it is a symbolic link, what that leads to."""
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
