"""The reader of an artifact and Tesseract, given the same lines as a page shows them."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from contract.ink import STYLES
from contract.manifest import WEIGHTS
from export.artifact import read_artifact
from lab.legibility.reading import PAGE, Offsets, one_line, picture, tesseract_all
from lab.reading.readers import read_strokes, reader_of
from service.ink.pen import LinePen, strokes

READER, TESSERACT = "reader", "tesseract"

# What each reads in lines of offsets `(N, 3)`, any white space one space.
Readers = dict[str, Callable[[Sequence[Offsets]], list[str]]]


def readers_of(artifact: Path) -> Readers:
    """Both, by name. Raises `ValueError` or `FileNotFoundError` where there is no reader."""
    network = reader_of(artifact)

    def by_reader(inks: Sequence[Offsets]) -> list[str]:
        return [one_line(read_strokes(network, as_shown(ink))) for ink in inks]

    def by_tesseract(inks: Sequence[Offsets]) -> list[str]:
        return [one_line(text) for text in tesseract_all([picture(ink) for ink in inks])]

    return {READER: by_reader, TESSERACT: by_tesseract}


def named(artifact: Path) -> dict[str, str]:
    """Which model was measured: its name, and the hashes of its weights and stored hands."""
    manifest = read_artifact(artifact)
    kept = {f: h for f, h in manifest.files.items() if f in (WEIGHTS, STYLES)}
    return {"name": manifest.name} | kept


def as_shown(offsets: Offsets) -> list[NDArray[np.float64]]:
    """The strokes `(k, 2)` of a line in px, y up."""
    return [stroke * (1, -1) for stroke in strokes(LinePen(PAGE, 0).move(offsets))]
