"""Files of the data folder that a task reads."""

from collections.abc import Sized
from pathlib import Path


def required(path: Path) -> Path:
    """A file that is there. Raises `ValueError` where it is missing."""
    if not path.exists():
        raise ValueError(f"{path} does not exist; --quick needs no data")
    return path


def require_parts(fraction: float, *parts: Sized) -> None:
    """Raise `ValueError` where a fraction leaves nothing to learn from, to validate or to test."""
    if not all(map(len, parts)):
        raise ValueError(
            f"data.validation_fraction is {fraction}; nothing is left to learn from, to validate "
            "or to test"
        )


def lines_of(content: bytes) -> list[str]:
    """The lines of a set of sentences, none of them empty. The sets are not UTF-8; and not
    splitlines: some have bytes in them that it takes for the end of a line."""
    lines = (line.rstrip("\r") for line in content.decode("latin-1").split("\n"))
    return [line for line in lines if line.strip()]
