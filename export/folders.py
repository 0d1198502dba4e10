"""Folders written whole: all of one or nothing, and in no other's place."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from glob import escape
from pathlib import Path

from contract.files import alone_in, behind, require_writable, to_disk

_RANDOM = 8  # characters that `tempfile` ends a name with


def require_place(folder: Path, ours: Callable[[Path], bool], what: str) -> None:
    """Raise `ValueError` unless a folder can be written at this place: nothing is there yet, or an
    empty folder, or one that `ours` says may be replaced; the error calls such a one `what`."""
    if folder.is_symlink() and not folder.exists():
        raise ValueError(f"{folder} is a link to nothing; name the folder of a new one")
    if folder.exists() and not ours(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} is there and is no {what}; name the folder of a new one")
    _require_room(folder, f"{_begun(Path())}{'-' * _RANDOM}")


def require_parent(file: Path | None) -> None:
    """Raise `ValueError` for a file that cannot be written; None is no file. To be called before
    the work whose result goes there."""
    if file is None:
        return
    place = behind(file)
    if not place.parent.is_dir():
        raise ValueError(f"{file}: there is no folder {place.parent}")
    if file.is_dir():
        raise ValueError(f"{file} is a folder; name a file")
    _require_room(file, f"..{os.getpid()}")


def _require_room(path: Path, added: str) -> None:
    """Raise `ValueError` where nothing can be written, and for a name that has no room for what is
    added to it until all is whole."""
    place = behind(path)
    longest = os.pathconf(require_writable(place.parent), "PC_NAME_MAX") - len(added)
    if len(os.fsencode(place.name)) > longest:
        raise ValueError(f"{path} cannot be written: a name has {longest} bytes at most here")


@contextmanager
def made_whole(folder: Path, ours: Callable[[Path], bool], what: str) -> Iterator[Path]:
    """Yields an empty folder to fill, which takes the place of `folder` when the block ends without
    an error; where that is a symbolic link, the place of what it leads to, as for a file. What
    processes that were killed had begun to fill for that place is removed first.

    Raises `ValueError` as `require_place` does.
    """
    require_place(folder, ours, what)
    folder = behind(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    _forget_unfinished(folder)
    with ExitStack() as at_work:
        made = _begin(folder, at_work)
        yield made
        # Files of safetensors are private to their owner; what is exported is for any reader.
        made.chmod(0o755)
        for file in made.iterdir():
            file.chmod(0o644)
            to_disk(file)  # or a loss of power might leave neither this folder nor the one before
        before = made.with_name("before")
        try:
            if folder.exists():
                folder.rename(before)
            made.rename(folder)
        except BaseException:  # an interruption between the two as well
            if before.exists() and not folder.exists():
                before.rename(folder)
            raise


def _begin(folder: Path, at_work: ExitStack) -> Path:
    """An empty folder to fill, in one that is held and, in the end, removed by `at_work`."""
    while True:
        beside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=_begun(folder)))
        at_work.callback(_clear, beside, folder)
        with suppress(OSError):  # of a file system that keeps nobody out
            at_work.enter_context(alone_in(beside))
        with suppress(FileNotFoundError):  # somebody took it for one that a dead one had begun
            (made := beside / "made").mkdir()
            return made


def _clear(beside: Path, folder: Path) -> None:
    """Remove what a folder was made in, unless that holds the only one: where it could not be put
    back, whoever makes the folder next does that first."""
    if folder.exists() or not (beside / "before").exists():
        with suppress(FileNotFoundError):
            _remove(beside)


def _remove(folder: Path) -> None:
    """With what is in folders of it in which nobody may write."""
    for place, _, _ in os.walk(folder):
        os.chmod(place, 0o700)
    shutil.rmtree(folder)


def _begun(folder: Path) -> str:
    """How the names of the temporary folders for this one begin; the rest has no tilde."""
    return f".making-{folder.name}~"


def _forget_unfinished(folder: Path) -> None:
    """Remove what was left by those who died while they made it. Where one had put the folder
    before aside already, and the new one is not there, that is in its place again."""
    begun = _begun(folder)
    for left in folder.parent.glob(f"{escape(begun)}*"):
        if "~" in left.name.removeprefix(begun):
            continue  # of a folder whose name begins as that of this one, and goes on with a tilde
        # The system has let go of what nobody is at work in any more.
        with suppress(OSError), alone_in(left, waits=False):
            if (left / "before").exists() and not folder.exists():
                (left / "before").rename(folder)
            _remove(left)
