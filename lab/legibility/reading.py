"""An outside reader of handwriting: a line of ink as a picture, what Tesseract reads in it, and how
far that is from the text. Real and generated ink go through here alike.
"""

import os
import subprocess
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jiwer
import numpy as np
from numpy.typing import NDArray

from contract.strokes import UNITS_PER_CHARACTER, UNITS_PER_LINE
from service.ink.layout import Layout
from service.ink.pen import LinePen, strokes
from service.ink.png import to_png_here
from service.ink.svg import to_svg

# Of 24 to 56 px and strokes of 0.03 to 0.06 of that, these read real lines best: CER 0.43 of all
# candidates; 0.44 to 0.47 elsewhere, some of it measured on every second one.
PAGE = Layout(
    width_px=0,
    line_height_px=36.0,
    stroke_width_px=1.3,
    color="#000",
    units_per_line=UNITS_PER_LINE,
    units_per_character=UNITS_PER_CHARACTER,
)
_READ_LIMIT_S = 60
_RESAMPLES, _SEED = 2000, 20131

Offsets = NDArray[np.float32]
Reader = Callable[[bytes], str]


class NoReader(OSError):
    """Tesseract is not installed, or has not learnt a language: a command ends with that."""


def in_units(offsets: Offsets) -> NDArray[np.float64]:
    """The points `(N, 3)` of a line as a page shows them, in units from the left end of the
    baseline, y up, with pen_up."""
    points = LinePen(PAGE, 0).move(offsets)
    points[:, :2] = (points[:, :2] - PAGE.origin_px(0)) / (PAGE.px_per_unit, -PAGE.px_per_unit)
    return points


def picture(offsets: Offsets) -> bytes:
    """A PNG of a line of ink `(N, 3)`, black on white, with a margin of half a line around it."""
    return picture_of(LinePen(PAGE, 0).move(offsets))


def picture_of(points: NDArray[np.float64]) -> bytes:
    """The same of points `(N, 3)` on `PAGE`."""
    right_px = float(points[:, 0].max(initial=PAGE.margin_px))
    page = replace(PAGE, width_px=ceil(right_px + PAGE.margin_px))
    return to_png_here(to_svg(strokes(points), page, 1))


def tesseract_version(wanted: Collection[str] = ("eng",)) -> str:
    """Raises `NoReader` where it, or one of the languages, is missing."""
    try:
        version = _run("--version").decode()
        languages = _run("--list-langs").decode().split()
    except FileNotFoundError as error:
        raise NoReader("tesseract is not installed (Debian: tesseract-ocr)") from error
    if missing := [f"tesseract-ocr-{name}" for name in wanted if name not in languages]:
        raise NoReader(f"tesseract has not learnt all languages (Debian: {' '.join(missing)})")
    return version.split()[1]


def tesseract(png: bytes) -> str:
    """What Tesseract reads in the picture of one line."""
    return _run("stdin", "stdout", "--psm", "7", "-l", "eng", stdin=png).decode()


def tesseract_all(pngs: Sequence[bytes], language: str = "eng") -> list[str]:
    """What `tesseract` reads in each, by one process: a tenth of the time for short lines."""
    if not pngs:
        return []
    with TemporaryDirectory() as folder:
        paths = [Path(folder, f"{number}.png") for number in range(len(pngs))]
        for path, png in zip(paths, pngs, strict=True):
            path.write_bytes(png)
        listed = "\n".join(map(str, paths)).encode()
        every = _run("stdin", "stdout", "--psm", "7", "-l", language, stdin=listed, lines=len(pngs))
    return every.decode().split("\f")


def read(inks: Sequence[Offsets], reader: Reader) -> list[str]:
    """What is read in each line, any white space in it one space."""
    return [one_line(reader(picture(ink))) for ink in inks]


def one_line(text: str) -> str:
    """The text with any white space as one space, none at its ends."""
    return " ".join(text.split())


@dataclass(frozen=True, slots=True)
class Errors:
    """Characters to insert, delete and replace to make readings the texts, of so many."""

    edits: int
    characters: int

    @property
    def rate(self) -> float:
        """The character error rate, CER; more than 1 where more is read than was written."""
        return self.edits / self.characters


def errors(text: str, reading: str) -> Errors:
    """Of one line; upper and lower case are different characters."""
    found = jiwer.process_characters(one_line(text), reading)
    missed = found.substitutions + found.deletions
    return Errors(missed + found.insertions, missed + found.hits)


def overall(lines: Sequence[Errors]) -> Errors:
    """All edits of all characters, so that a long line counts for more than a short one."""
    return Errors(sum(e.edits for e in lines), sum(e.characters for e in lines))


def figures(lines: Sequence[Errors]) -> dict[str, Any]:
    """All of them as one, as results have it."""
    every = overall(lines)
    return {"lines": len(lines), **asdict(every), "cer": round(every.rate, 4)}


def interval(mine: Sequence[Errors], theirs: Sequence[Errors]) -> list[float]:
    """95% of the ratio of two error rates when the lines, the same of both, are drawn again with
    replacement."""
    again = np.random.default_rng(_SEED).integers(len(mine), size=(_RESAMPLES, len(mine)))
    # The characters are the same in both.
    edits, others = (np.array([e.edits for e in lines])[again].sum(axis=1)
                     for lines in (mine, theirs))  # fmt: skip
    low, high = np.quantile(edits / others, [0.025, 0.975]).round(3).tolist()
    return [low, high]


def _run(*arguments: str, stdin: bytes = b"", lines: int = 1) -> bytes:
    # One thread: OpenMP slows pictures as small as a line down.
    environment = os.environ | {"OMP_THREAD_LIMIT": "1"}
    return subprocess.run(
        ["tesseract", *arguments],
        input=stdin,
        capture_output=True,
        check=True,
        timeout=_READ_LIMIT_S * lines,
        env=environment,
    ).stdout
