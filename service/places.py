"""The folders of the artifacts folder, what each of them gave, and which may have which name."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from errno import ELOOP, ENOENT, ENOTDIR
from pathlib import Path
from stat import S_ISDIR
from typing import Any, Literal

from contract.files import printable
from service.artifact import ArtifactError
from service.errors import UnknownModel, shown
from service.models import ServedModel

State = Literal["ready", "loading", "failed", "unloaded"]
_GONE = (ENOENT, ENOTDIR, ELOOP)  # what the system says of what is not there
Look = frozenset[tuple[str, int, int, int, int]]


@dataclass(slots=True)
class Place:
    """A folder, the model it gave, and why what it holds now is not served, if it is not.

    `name` is that of the model, or of the folder as long as it gave none. `seen` is what the folder
    looked like when it was read last, `rivalled` the name that its model could not have, and
    `unloaded` the one by which an administrator unloaded it.
    """

    folder: Path
    name: str
    seen: Look = frozenset()
    model: ServedModel | None = None
    refused: str | None = None
    rivalled: str | None = None
    unloaded: str | None = None

    @classmethod
    def of(cls, folder: Path) -> "Place":
        """That of a folder which has given no model yet."""
        return cls(folder, printable(folder.name))

    @property
    def problem(self) -> str | None:
        """Why it is not served, or not as the folder has it now."""
        return self.refused or (self.model.problem if self.model else None)

    @property
    def state(self) -> State:
        """`loading` until it has proved itself for the first time."""
        if self.model is not None and self.model.engine.ready:
            return "ready"
        if self.unloaded:
            return "unloaded"
        return "failed" if self.problem else "loading"

    def health(self) -> dict[str, Any]:
        """The entry of `/health`."""
        state = self.state  # at one look: it may change before another
        facts = {"ready": state == "ready", "state": state, "failed": self.problem}
        return facts | ({} if self.model is None else self.model.health())


class Places:
    """Those of all folders, in the order of their names. No two serve models of one name."""

    def __init__(self) -> None:
        self._of: dict[Path, Place] = {}

    def __iter__(self) -> Iterator[Place]:
        return iter([self._of[folder] for folder in sorted(self._of)])

    @property
    def named(self) -> dict[str, Place]:
        """The same by their names, each of them once."""
        return _named(self)

    def of(self, folder: Path) -> Place:
        """That of a folder, which has one from now on."""
        return self._of.setdefault(folder, Place.of(folder))

    def remove(self, place: Place) -> None:
        del self._of[place.folder]

    def find(self, name: str, folders: Iterable[Path] = ()) -> Place:
        """That of a model, or of a folder; among other `folders` as well, of which it has one then.

        Raises `UnknownModel`.
        """
        new = [Place.of(folder) for folder in folders if folder not in self._of]
        known = _named([*self, *new])
        if name not in known:
            raise UnknownModel(
                f"model is {shown(name)}; the artifacts are: {', '.join(known)}", "name"
            )
        return self.of(known[name].folder)

    def claim(self, name: str, place: Place, *, asked: bool) -> None:
        """Raise `ArtifactError` where the name is taken, which the place notes; `asked` is whether
        somebody wants that model, and not what is in the folder."""
        if self._is_taken(name, place, asked=asked):
            place.rivalled = name
            raise ArtifactError(f"{place.folder}: another folder has a model {name!r}")

    def rival_gone(self, place: Place) -> bool:
        """Whether the name it could not have is free."""
        return place.rivalled is not None and not self._is_taken(place.rivalled, place)

    def exchange(self, place: Place) -> Place | None:
        """Give a place the model of the name its folder has now, if that is of a folder which
        changed its name as well: that place, which has the model of this one then."""
        for other in self if place.model is not None else ():
            if other.name == place.rivalled and other.rivalled and other.model is not None:
                place.model, other.model = other.model, place.model
                place.name, other.name = other.name, place.name
                return other
        return None

    def _is_taken(self, name: str, place: Place, *, asked: bool = False) -> bool:
        """Whether another place has a model of that name, or had it until it was unloaded: only
        where it is `asked` for does it come back by another folder."""
        others = [other for other in self if other is not place]
        served = any(other.model is not None and other.name == name for other in others)
        return served or (not asked and any(other.unloaded == name for other in others))


def _named(places: Iterable[Place]) -> dict[str, Place]:
    """Places by their names, in order. A folder may be called as the model of another is: it is
    told apart by a slash, which no model has in its name."""
    found: dict[str, Place] = {}
    for place in sorted(places, key=lambda place: place.model is None):
        found[place.name if place.name not in found else f"{printable(place.folder.name)}/"] = place
    return dict(sorted(found.items()))


def is_there(folder: Path) -> bool:
    """Whether it is, as far as one can tell: it may lie where nobody may look, or on a mount that
    is dead, and has not gone for that. From Python 3.14 on `Path.is_dir` says of such that it is
    none."""
    try:
        return S_ISDIR(os.stat(folder).st_mode)
    except OSError as error:
        return error.errno not in _GONE


def look_at(folder: Path) -> Look:
    """What a folder's files look like: it differs once a file has changed, even one whose size and
    time of modification are the same, as its inode or its ctime is another."""
    files = set()
    with suppress(OSError):  # it has just gone: the next look tells
        for entry in os.scandir(folder):
            with suppress(OSError):  # this has, or is a link to nothing, as some editors lock with
                facts = entry.stat()
                times = facts.st_mtime_ns, facts.st_ctime_ns
                files.add((entry.name, facts.st_ino, facts.st_size, *times))
    return frozenset(files)
