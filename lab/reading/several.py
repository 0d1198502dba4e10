"""How much is read of what people wrote on several lines? `python -m lab lines`: all texts of
held-out writers, as they stand in the corpus, read line by line as the service reads them; and
beside it taken for one line each.
"""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from export.results import machine, write_json
from lab.legibility import held_out
from lab.legibility.reading import Errors, figures
from lab.reading.readers import Reader, read_strokes, reader_of
from lab.reading.report import judge
from lab.reading.shown import named
from service.ink.upright import upright
from service.reader.lines import lines_of
from training.ink.corpus import is_held_out
from training.ink.line import Line, Tally, counted
from training.ink.unipen import UnipenFolder

RESULTS = Path("docs", "results", "reading-lines.json")
_TEXTS = "8"  # category: free text, of which some is on several lines
_SHORTEST = 2  # characters


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--reader", type=Path, default=Path("artifacts", "reader"))
    parser.add_argument("--out", type=Path, default=RESULTS)


def run(options: argparse.Namespace) -> int:
    """0: there is no goal. Raises `ValueError` where there is no text of several lines."""
    texts = held_out_texts(UnipenFolder(held_out.folder()).lines(_TEXTS, Tally()))
    content = measure(reader_of(options.reader), texts)
    head = {"command": options.told, "machine": machine(), "model": named(options.reader)}
    write_json(options.out, head | content)
    print(f"written to {options.out}")
    return 0


def held_out_texts(lines: Iterable[Line]) -> list[Line]:
    """Those that no network was trained on, of printable ASCII."""
    return [
        line
        for line in counted(lines)
        if is_held_out(line.writer, held_out.VALIDATION_FRACTION)
        and len(line.text) >= _SHORTEST
        and line.text.isascii()
        and line.text.isprintable()
        and any(map(len, line.strokes))
    ]


def measure(reader: Reader, texts: Sequence[Line]) -> dict[str, Any]:
    """Read, print, and say what came out. Raises `ValueError` where no text has several lines."""
    # As a caller sends them, y down.
    inks = [upright([(s * (1.0, -1.0)).tolist() for s in t.strokes if len(s)]) for t in texts]
    pages = [lines_of(ink) for ink in inks]
    several = [len(page) > 1 for page in pages]
    if not any(several):
        raise ValueError("no text of a held-out writer is on several lines")
    told = [" ".join(read_strokes(reader, line) for line in page) for page in pages]
    as_one = [read_strokes(reader, ink) for ink in inks]
    content: dict[str, Any] = {"texts": len(texts), "several lines": sum(several)}
    for name, readings in (("line by line", told), ("as one line", as_one)):
        found = judge([text.text for text in texts], readings)
        content[name] = {
            "all": figures(found),
            "of several lines": figures(_those(found, several)),
        }
        print(f"{name:12}", *(f"{kind} {part['cer']:.4f}" for kind, part in content[name].items()))
    return content


def _those(found: Sequence[Errors], several: Sequence[bool]) -> list[Errors]:
    return [each for each, among in zip(found, several, strict=True) if among]
