"""API keys: a TOML file with a table for each, which holds what a key is checked by and may do.

    [alice]
    sha256 = "..."              # of the key; the key itself is nowhere
    admin = false
    concurrency = 8             # requests under way at once, any number if it is missing
    bytes_per_minute = 1000000  # read and written, any number if it is missing
    expires = 2027-01-31T00:00:00Z

`python -m service keys new NAME` makes one.
"""

import asyncio
import logging
import os
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path
from stat import S_ISREG
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from contract.files import alone_in, behind, from_toml, replacing
from service.errors import rule_of

log = logging.getLogger(__name__)

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LOOK_EVERY_S = 1.0
_LARGEST_BYTES = 16 << 20  # some 100,000 keys
_Limit = Annotated[int, Field(strict=True, ge=1, lt=2**63)]  # as whole numbers of TOML are


def _date_in(written: object) -> date:
    """A date of TOML, or one in quotes. Raises `ValueError` for anything else: of a number, such as
    20270131, pydantic would make so many seconds since 1970."""
    if isinstance(written, date):
        return written
    if isinstance(written, str):
        with suppress(ValueError):
            return datetime.fromisoformat(written)
    raise ValueError("a date is written 2027-01-31 or 2027-01-31T00:00:00Z")


class BadKeys(ValueError):
    """A file of keys that cannot be used; says what is wrong, and nothing that is secret."""


class UnreadKeys(BadKeys):
    """One that the system would not open or read: it may a moment later, without any change."""


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Key:
    """One table of the file.

    A plain hash is enough at rest: a key has 256 random bits, which nobody finds by trying, so
    there is nothing that salt or a slow hash would protect.
    """

    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    admin: Annotated[bool, Field(strict=True)] = False
    concurrency: _Limit | None = None
    bytes_per_minute: _Limit | None = None
    expires: Annotated[datetime, BeforeValidator(_date_in)] | None = None

    @property
    def valid(self) -> bool:
        """Whether its time has not passed; without a time zone that is UTC."""
        if self.expires is None:
            return True
        zoned = self.expires if self.expires.tzinfo else self.expires.replace(tzinfo=UTC)
        return datetime.now(UTC) < zoned


_FILE = TypeAdapter(dict[str, Key])


def read_keys(path: Path) -> dict[str, Key]:
    """The keys of a file by name. Raises `BadKeys`."""
    return _keys_in(_text_of(path), path)


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            said = file.read(_LARGEST_BYTES + 1)
        if len(said) > _LARGEST_BYTES:
            raise ValueError(f"more than {_LARGEST_BYTES:,} bytes")
        return said.decode("utf-8-sig")  # an editor may have put a mark of its encoding before it
    except OSError as error:
        raise UnreadKeys(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise BadKeys(f"{path}: {error}") from None


def _keys_in(text: str, path: Path) -> dict[str, Key]:
    """Those of a file that says, or will say, this."""
    try:
        keys = _FILE.validate_python(from_toml(text))
        _require_different(keys)
        return keys
    except ValidationError as error:
        first = error.errors()[0]
        raise BadKeys(f"{path}: {'.'.join(map(str, first['loc']))}: {rule_of(first)}") from None
    except ValueError as error:
        raise BadKeys(f"{path}: {error}") from None


def _require_different(keys: dict[str, Key]) -> None:
    """Raise `ValueError` where two names have one key: whose limits it has would be left open."""
    names: dict[str, str] = {}
    for name, key in keys.items():
        if (first := names.setdefault(key.sha256, name)) != name:
            raise ValueError(f"{first} and {name} are the same key")


def new_key(
    path: Path,
    name: str,
    *,
    admin: bool = False,
    concurrency: int | None = None,
    bytes_per_minute: int | None = None,
    show: Callable[[str], None] = lambda key: None,
) -> str:
    """Add a key to a file, which is made if need be, and return it; where it cannot be shown, the
    file stays as it was. Raises `BadKeys`."""
    if not _NAME.fullmatch(name):
        raise BadKeys(f"{name!r} is no name of a key: at most 64 letters, digits, _ and -")
    key = f"ek-{secrets.token_urlsafe(32)}"
    lines = [f"[{name}]", f'sha256 = "{_hash(key)}"', f"admin = {str(admin).lower()}"]
    limits = {"concurrency": concurrency, "bytes_per_minute": bytes_per_minute}
    lines += [f"{limit} = {value}" for limit, value in limits.items() if value is not None]
    try:
        # Of two who had read the same file, one would lose their key. A service that reads it at
        # this moment finds the old one or the new one.
        with alone_in(behind(path).parent), replacing(path) as file:
            # A link to itself is there as well: to be refused before a key of it is shown.
            before = _text_of(path) if os.path.lexists(behind(path)) else ""
            if name in _keys_in(before, path):
                raise BadKeys(f"{path} has a key {name} already")
            after = (f"{before.rstrip()}\n\n" if before else "") + "\n".join(lines) + "\n"
            _keys_in(after, path)
            file.write_text(after, "utf-8")
            show(key)
    except OSError as error:
        raise BadKeys(f"{path}: {error.strerror}") from None
    return key


def _by_hash(keys: dict[str, Key]) -> dict[str, tuple[str, Key]]:
    """The name and entry of each key by its hash."""
    return {key.sha256: (name, key) for name, key in keys.items()}


def _hash(key: str) -> str:
    return sha256(key.encode()).hexdigest()


class Keys:
    """The keys of a file, which is read again when it has changed. A bad file changes nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._told = ""  # why the last look failed, which may be what the next do for hours
        self._seen = self._stamp()  # before it is read: what changes meanwhile is a change
        self._keys = _by_hash(read_keys(path))

    def find(self, presented: str) -> tuple[str, Key] | None:
        """The name and entry of a key. It is looked for by its hash, so that the time this takes
        says something of hashes at most, and nobody can come nearer to one by choosing keys."""
        found = self._keys.get(_hash(presented))
        return found if found and found[1].valid else None

    async def follow(self) -> None:
        """Look at the file until cancelled. In a thread: to read 100,000 keys takes seconds."""
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            try:
                await asyncio.to_thread(self.look)
            except Exception as error:  # the next look may do better
                if (why := repr(error)) != self._told:
                    log.exception("a look at the keys failed")
                self._told = why

    def look(self) -> None:
        """Read the file again if it has changed; until that is done the keys are those before."""
        stamp = self._stamp()
        if stamp == self._seen:
            self._told = ""
            return
        try:
            if stamp is None:
                raise BadKeys(f"{self._path} is gone, or is no plain file")
            self._keys = _by_hash(read_keys(self._path))
            log.info("%s: read again, %d keys", self._path, len(self._keys))
        except UnreadKeys as error:
            if (why := str(error)) != self._told:
                log.error("the keys stay as they were: %s", why)
            self._told = why
            return  # or a key that was taken away would open until the file changes once more
        except BadKeys as error:
            log.error("the keys stay as they were: %s", error)
        self._told = ""
        self._seen = stamp  # unless the look failed, through nothing in the file

    def _stamp(self) -> tuple[int, ...] | None:
        """None where there is no plain file: a pipe says once what it has, and whoever reads it
        again waits for ever."""
        try:
            found = self._path.stat()
        except OSError:
            return None
        if not S_ISREG(found.st_mode):
            return None
        # That of the last is another once the file may be read.
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
