"""Which format a folder of pen data has, and all its lines."""

from pathlib import Path

from training.files import folders_below
from training.ink.iam import IamFolder
from training.ink.line import Line, Tally
from training.ink.marks import read_marks
from training.ink.prepare import Ink
from training.ink.synthetic import synthetic_lines
from training.ink.unipen import UnipenFolder

SYNTHETIC = Path("synthetic")
_SYNTHETIC_LINES = 10_000
_SYNTHETIC_SEED = 0
_UNIPEN_CATEGORIES = ("7", "8")  # words and text


def read_lines(folder: Path, tally: Tally) -> list[Line]:
    """Every line of a folder of UNIPEN or IAM-OnDB, or of the synthetic pen for `synthetic`.

    Raises:
        ValueError: the folder is none of them.
    """
    if folder == SYNTHETIC:
        return list(synthetic_lines(_SYNTHETIC_LINES, _SYNTHETIC_SEED))
    if not folder.is_dir():
        raise ValueError(f"{folder} is no folder; it must be one, or the word {SYNTHETIC}")
    if _is_unipen(folder):
        unipen = UnipenFolder(folder)
        return [line for c in _UNIPEN_CATEGORIES for line in unipen.lines(c, tally)]
    if _is_iam(folder):
        return list(IamFolder(folder).lines(None, tally))
    raise ValueError(
        f"{folder} holds no pen data: UNIPEN has the folders data and include or archives "
        f"unipen*.tar*, IAM-OnDB has a folder lineStrokes"
    )


def read_isolated(folder: Path, tally: Tally) -> list[Ink]:
    """The isolated marks of a folder of pen data, of which only UNIPEN has any."""
    return read_marks(UnipenFolder(folder), tally) if _is_unipen(folder) else []


def _is_unipen(folder: Path) -> bool:
    unpacked = (folder / "data").is_dir() and (folder / "include").is_dir()
    return unpacked or any(folder.glob("unipen*.tar*"))


def _is_iam(folder: Path) -> bool:
    return bool(folders_below(folder, "lineStrokes*"))
