"""IAM-OnDB (Liwicki and Bunke 2005): lines of English text written on a whiteboard.

The strokes of each line are one XML file under `lineStrokes`; the text of a whole form is one file
under `ascii`, of which the part after `CSR:` has the text of line -01 first, then -02.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from training.files import files_below, folders_below
from training.ink.line import Line, Stroke, Tally

_SOURCE = "iam"
_POINTS_PER_SECOND = 100.0
_TEXT_MARK = "CSR:"
# Stands in the text for a word that was struck through: nobody wrote this character.
_CROSSED_OUT = "#"
# Nobody holds the pen down for so long: the clock jumped within the stroke.
_LONGEST_STROKE_S = 30.0


class _Unusable(ValueError):
    """A file that is not what the format says it is."""


class IamFolder:
    """The archives of IAM-OnDB, unpacked anywhere below one folder."""

    def __init__(self, folder: Path) -> None:
        strokes = below(folder, "lineStrokes")
        if strokes is None:
            raise ValueError(f"{folder} has no folder lineStrokes, so it is not IAM-OnDB")
        self._line_files = files_below(strokes, "*.xml")
        texts = below(folder, "ascii")
        self._text_files = {f.stem: f for f in files_below(texts, "*.txt")} if texts else {}
        originals = below(folder, "original")
        self._original_files = {
            f.parent.name + f.stem.removeprefix("strokes"): f
            for f in (files_below(originals, "strokes*.xml") if originals else ())
        }
        self._texts = cache(self._read_texts)
        self._writer = cache(self._read_writer)

    def lines(self, tally: Tally) -> Iterator[Line]:
        """All its lines; what cannot be read is counted in `tally`."""
        for file in self._line_files:
            try:
                yield self._line(file)
            except (_Unusable, OSError) as error:
                reason = str(error) if isinstance(error, _Unusable) else "unreadable file"
                tally.skip(reason, file.name)

    def _line(self, file: Path) -> Line:
        form, _, number = file.stem.rpartition("-")
        texts = self._texts(form)
        if not number.isdecimal() or not 1 <= int(number) <= len(texts):
            raise _Unusable("no text for the line")
        if _CROSSED_OUT in texts[int(number) - 1]:
            raise _Unusable("a word crossed out")
        strokes = _strokes(file)
        if not strokes:
            raise _Unusable("no strokes")
        writer = f"{_SOURCE}/{self._writer(form)}"
        return Line(texts[int(number) - 1], strokes, writer, _SOURCE, _POINTS_PER_SECOND)

    def _read_texts(self, form: str) -> tuple[str, ...]:
        """The text of each line of a form, in order; none where the file is missing."""
        file = self._text_files.get(form)
        if file is None:
            return ()
        text = file.read_text("utf-8", errors="replace")
        rows = [row.strip() for row in text.partition(_TEXT_MARK)[2].splitlines()]
        return tuple(row for row in rows if row)

    def _read_writer(self, form: str) -> str:
        """The writer as the original recording names them; a form is by one writer, so else it."""
        file = self._original_files.get(form)
        if file is None:
            return form
        try:
            # A recording is long, and what is looked for is at its head.
            for _, element in ElementTree.iterparse(file, events=("start",)):
                if "writerID" in element.attrib:
                    return str(element.attrib["writerID"])
        except (ElementTree.ParseError, LookupError, ValueError, OSError):
            return form
        return form


def below(folder: Path, name: str) -> Path | None:
    """The folder of that name, or of an archive unpacked without its inner folder."""
    for pattern in (name, f"{name}-all"):
        if folder.name == pattern:
            return folder
        for path in folders_below(folder, pattern):
            return path
    return None


def _strokes(file: Path) -> tuple[Stroke, ...]:
    try:
        root = ElementTree.parse(file).getroot()
    except (ElementTree.ParseError, LookupError, ValueError) as error:  # or an unknown encoding
        raise _Unusable("malformed XML") from error
    strokes = []
    for stroke in root.iter("Stroke"):
        try:
            rows = [
                (float(p.attrib["x"]), float(p.attrib["y"]), float(p.get("time", "nan")))
                for p in stroke.iter("Point")
            ]
        except (KeyError, ValueError) as error:
            raise _Unusable("malformed points") from error
        if rows:
            strokes.append(_evenly(np.array(rows)))
    return tuple(strokes)


def _evenly(rows: NDArray[np.float64]) -> Stroke:
    """Points at equal steps of time from rows of x, y down and seconds; `(N, 2)` with y up."""
    points = rows[:, :2] * (1.0, -1.0)
    seconds = rows[:, 2]
    duration = seconds[-1] - seconds[0]
    # A clock that stands still, goes back or jumps says nothing of the pen.
    if (np.diff(seconds) >= 0).all() and 0 < duration <= _LONGEST_STROKE_S:
        count = max(1, round(duration * _POINTS_PER_SECOND)) + 1
        at = np.linspace(seconds[0], seconds[-1], count)
        points = np.stack([np.interp(at, seconds, axis) for axis in points.T], axis=1)
    return points.astype(np.float32)
