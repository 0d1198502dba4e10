"""Which format a folder of pen data has, and all its lines."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from training.files import MissingData
from training.ink.iam import IamFolder, below
from training.ink.isolated import read_isolated
from training.ink.line import Line, Tally, counted
from training.ink.prepare import Ink, prepare
from training.ink.synthetic import synthetic_lines
from training.ink.unipen import UnipenFolder, archives

SYNTHETIC = Path("synthetic")
_SYNTHETIC_LINES = 10_000
_SYNTHETIC_SEED = 0
_UNIPEN_CATEGORIES = ("7", "8")  # words and text


@dataclass(frozen=True, slots=True)
class Format:
    """A format of pen data: what a folder of it has, in words, how it is known, and its lines."""

    has: str
    known: Callable[[Path], bool]
    lines: Callable[[Path, Tally], Iterable[Line]]


def read_lines(folder: Path, tally: Tally) -> list[Line]:
    """Every line of a folder of one of the `FORMATS`, or of the synthetic pen for `synthetic`.

    Raises:
        ValueError: the folder is none of them.
    """
    if folder == SYNTHETIC:
        return list(counted(synthetic_lines(_SYNTHETIC_LINES, _SYNTHETIC_SEED), _SYNTHETIC_LINES))
    if not folder.is_dir():
        raise MissingData(f"{folder} is no folder; it must be one, or the word {SYNTHETIC}")
    for format_ in FORMATS.values():
        if format_.known(folder):
            return list(counted(format_.lines(folder, tally)))
    told = ", ".join(f"{name} has {format_.has}" for name, format_ in FORMATS.items())
    raise ValueError(f"{folder} holds no pen data: {told}")


def read_inks(folder: Path, tally: Tally, marks: bool, figures: bool) -> list[Ink]:
    """Every line that can be learned from, and if they are wanted the isolated characters, which
    only UNIPEN has: marks, and figures and letters beside them."""
    if (marks or figures) and _is_unipen(folder):
        unipen = UnipenFolder(folder)  # its archives are unpacked once
        lines = counted(_lines(unipen, tally))
        return prepare(list(lines), tally) + read_isolated(unipen, tally, figures)
    return prepare(read_lines(folder, tally), tally)


def _lines(unipen: UnipenFolder, tally: Tally) -> Iterable[Line]:
    return (line for c in _UNIPEN_CATEGORIES for line in unipen.lines(c, tally))


def _is_unipen(folder: Path) -> bool:
    unpacked = (folder / "data").is_dir() and (folder / "include").is_dir()
    return unpacked or any(path.name.startswith("unipen") for path in archives(folder))


def _is_iam(folder: Path) -> bool:
    return below(folder, "lineStrokes") is not None


FORMATS = {
    "UNIPEN": Format(
        "the folders data and include or archives unipen*.tar, .tar.gz, .tar.bz2 or .tar.xz",
        _is_unipen,
        lambda folder, tally: _lines(UnipenFolder(folder), tally),
    ),
    "IAM-OnDB": Format(
        "a folder lineStrokes", _is_iam, lambda folder, tally: IamFolder(folder).lines(tally)
    ),
}
