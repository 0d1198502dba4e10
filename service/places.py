"""The folders of the artifacts folder, and what each of them gave."""

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from contract.files import printable
from service.models import ServedModel

State = Literal["ready", "loading", "failed", "unloaded"]
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
    def of(cls, folder: Path, seen: Look = frozenset()) -> "Place":
        """That of a folder which has given no model yet."""
        return cls(folder, printable(folder.name), seen)

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
        facts = {"ready": self.state == "ready", "state": self.state, "failed": self.problem}
        return facts | ({} if self.model is None else self.model.health())


def named(places: Iterable[Place]) -> dict[str, Place]:
    """Places by their names, in order. A folder may be called as the model of another is: it is
    told apart by a slash, which no model has in its name."""
    found: dict[str, Place] = {}
    for place in sorted(places, key=lambda place: place.model is None):
        found[place.name if place.name not in found else f"{printable(place.folder.name)}/"] = place
    return dict(sorted(found.items()))


def is_there(folder: Path) -> bool:
    """Whether it is, as far as one can tell: it may lie where nobody may look, or on a mount that
    is dead, and has not gone for that."""
    try:
        return folder.is_dir()
    except OSError:
        return True


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
