"""UNIPEN (Guyon et al. 1994): labelled words and lines of text from many tablets.

A file under `data/` lists segments by component number, and includes the files under `include/`
that hold the components. The rules that are easy to get wrong: only components with coordinates
are counted, pen up and pen down together; `.COORD` gives the order of the columns and may stand in
an included file; includes nest.
"""

import re
import tarfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from training.files import files_below, unpacking
from training.ink.line import Line, Stroke, Tally

_KEYWORD = re.compile(r"^\.([A-Z_]+)[ \t]*", re.MULTILINE)
_SEGMENT = re.compile(r'(?P<kind>\w+)\s+(?P<range>[\d:,\- ]+)\s+(?P<quality>\S+)\s+"(?P<label>.*)"')
_NUMBER = r"(\d{1,9})"  # of thousands of digits Python reads none
_PLACE = re.compile(f"{_NUMBER}(?::{_NUMBER})?(?:-{_NUMBER}(?::{_NUMBER})?)?")
# What a labelled segment holds.
_TEXTS = ("WORD", "TEXT")
_GLYPHS = ("CHARACTER",)
_ESCAPED = re.compile(r"\\(.)")
_BAD = "BAD"
_PACKED = (".tar", ".tar.gz", ".tar.bz2", ".tar.xz")
# A file of an archive, from the first of the folders that every distribution has.
_INNER = re.compile(r"(?:^|/)((?:data|include)/.+)", re.DOTALL)


class Malformed(ValueError):
    """A file or a segment that does not follow the format."""


@dataclass(frozen=True, slots=True)
class _Pen:
    """What the header lines read so far say about the coordinates that follow."""

    columns: tuple[str, ...] = ("X", "Y")
    points_per_second: float = 100.0
    x_per_unit: float = 1.0
    y_per_unit: float = 1.0
    writer: str = ""


@dataclass(frozen=True, slots=True)
class _Component:
    down: bool
    points: NDArray[np.float32]  # (N, 2)
    pen: _Pen


def archives(folder: Path) -> list[Path]:
    """The tar archives in a folder, without what is beside one, such as its checksum."""
    return sorted(path for path in folder.glob("*.tar*") if path.name.endswith(_PACKED))


class UnipenFolder:
    """A UNIPEN distribution, unpacked or as the tar archives it came in, which may have folders
    above its own. Raises `ValueError` for archives without its `data`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._members: dict[str, bytes] = {}
        if not (folder / "data").is_dir():
            for archive in archives(folder):
                with unpacking(archive), tarfile.open(archive) as tar:
                    for member in tar:
                        place = _INNER.search(member.name)
                        if place and member.isfile() and (file := tar.extractfile(member)):
                            self._members[place[1]] = file.read()
            if not any(name.startswith("data/") for name in self._members):
                raise ValueError(f"{folder}: its archives have no folder data")
        self._components = lru_cache(maxsize=64)(self._read_include)

    def data_files(self, category: str) -> list[str]:
        """The names of the files of a category, such as `7` for words and `8` for text."""
        prefix = f"data/{category}/"
        if self._members:
            return sorted(name for name in self._members if name.startswith(prefix))
        files = files_below(self._folder / prefix)
        return sorted(str(file.relative_to(self._folder)) for file in files)

    def lines(self, category: str, tally: Tally) -> Iterator[Line]:
        """Every labelled word or text of a category; what cannot be read is counted in `tally`."""
        return self._all(self.data_files(category), _TEXTS, tally)

    def glyphs(self, category: str, sources: Collection[str], tally: Tally) -> Iterator[Line]:
        """Every labelled character that some sources have of a category, as a line of its own."""
        files = [name for name in self.data_files(category) if _source(name) in sources]
        return self._all(files, _GLYPHS, tally)

    def _all(self, names: list[str], kinds: tuple[str, ...], tally: Tally) -> Iterator[Line]:
        for name in names:
            try:
                yield from self._lines_of(name, kinds, tally)
            except (OSError, LookupError, ArithmeticError, ValueError) as error:
                tally.skip(f"unreadable file ({_reason(error)})", name)

    def _lines_of(self, name: str, kinds: tuple[str, ...], tally: Tally) -> Iterator[Line]:
        components: list[_Component] = []
        segments: list[str] = []
        pen = _Pen()
        for keyword, content in _entries(self._text(name)):
            if keyword == "INCLUDE":
                pen, included = self._components(content.strip(), pen, 0)
                components.extend(included)
            elif keyword == "SEGMENT":
                segments.append(content)
        source = _source(name)
        for number, content in enumerate(segments):
            what = f"{name}#{number}"
            try:
                match = _SEGMENT.match(content.strip())
                if match is None:
                    raise Malformed("no range or label")
                if match["kind"] not in kinds:
                    continue
                if match["quality"] == _BAD:
                    tally.skip("marked BAD by its collector", what)
                    continue
                strokes, pen = _strokes(components, match["range"])
                label = _ESCAPED.sub(_unescaped, match["label"])
                writer = f"{source}/{pen.writer or Path(name).stem}"
                yield Line(label, strokes, writer, source, pen.points_per_second)
            except Malformed as error:
                tally.skip(f"malformed segment ({error})", what)

    def _read_include(
        self, name: str, pen: _Pen, depth: int
    ) -> tuple[_Pen, tuple[_Component, ...]]:
        """The components of an included file, and the header as it stands after them."""
        if depth > 8:
            raise Malformed("includes include themselves")
        components: list[_Component] = []
        for keyword, content in _entries(self._text(f"include/{name}")):
            match keyword:
                case "INCLUDE":
                    pen, included = self._components(content.strip(), pen, depth + 1)
                    components.extend(included)
                case "PEN_DOWN" | "PEN_UP":
                    points = _points(content, pen)
                    if len(points):
                        components.append(_Component(keyword == "PEN_DOWN", points, pen))
                case _:
                    pen = _header(pen, keyword, content.strip())
        return pen, tuple(components)

    def _text(self, name: str) -> str:
        """The content of a file, by its path in the distribution; every byte is a character."""
        if name in self._members:
            return self._members[name].decode("latin-1")
        path = self._folder / name
        if self._members or not path.is_file():
            raise Malformed("include file missing")
        return path.read_text("latin-1")


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """Each keyword with all that follows up to the next."""
    parts = _KEYWORD.split(text)
    return zip(parts[1::2], parts[2::2], strict=True)


def _header(pen: _Pen, keyword: str, content: str) -> _Pen:
    match keyword:
        case "COORD":
            return replace(pen, columns=tuple(content.split()))
        case "POINTS_PER_SECOND":
            return replace(pen, points_per_second=float(content.split()[0]))
        case "X_POINTS_PER_INCH" | "X_POINTS_PER_MM":
            return replace(pen, x_per_unit=float(content.split()[0]))
        case "Y_POINTS_PER_INCH" | "Y_POINTS_PER_MM":
            return replace(pen, y_per_unit=float(content.split()[0]))
        case "WRITER_ID":
            return replace(pen, writer=content.split("\n")[0].strip())
    return pen


def _points(content: str, pen: _Pen) -> NDArray[np.float32]:
    """The coordinates of a component, `(N, 2)`; the header's resolution makes x and y alike."""
    lines = content.split("\n", 1)
    rest = lines[1] if len(lines) > 1 else ""
    try:
        numbers = np.array(rest.split(), np.float32)
    except ValueError as error:
        raise Malformed("coordinates are not numbers") from error
    width = len(pen.columns)
    if len(numbers) % width:
        raise Malformed("coordinates do not fill their columns")
    table = numbers.reshape(-1, width)
    x, y = (table[:, pen.columns.index(axis)] for axis in ("X", "Y"))
    return np.stack([x * (pen.y_per_unit / pen.x_per_unit), y], axis=1)


def _strokes(components: list[_Component], ranges: str) -> tuple[tuple[Stroke, ...], _Pen]:
    """The pen-down parts of `a:p-b:q, ...`: components a to b, from point p of a to q of b."""
    strokes: list[Stroke] = []
    pen = _Pen()
    for part in ranges.split(","):
        place = _PLACE.fullmatch(part.strip())
        if place is None:
            raise Malformed("no range or label")
        first, start, last, end = place.groups()
        a, b = int(first), int(last or first)
        if b >= len(components) or a > b:
            raise Malformed("range outside the file")
        for i in range(a, b + 1):
            component = components[i]
            pen = component.pen
            begin = int(start) if start and i == a else 0
            stop = int(end) + 1 if end and i == b else None
            points = component.points[begin:stop]
            if component.down and len(points):
                strokes.append(points)
    return tuple(strokes), pen


def _unescaped(match: re.Match[str]) -> str:
    """Source kai marks with \\@ where two letters touch; it is not written."""
    return "" if match[1] == "@" else match[1] if match[1] in '"\\' else match[0]


def _source(name: str) -> str:
    """Who collected a file of `data/CATEGORY/SOURCE/`."""
    return name.split("/")[2]


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, Malformed) else type(error).__name__
