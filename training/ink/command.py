"""What a folder of pen data holds: `python -m export pens DIR`."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from training.ink.line import Line, Tally
from training.ink.sources import read_lines

_ROW = "{:<12}{:>9}{:>9}{:>12}{:>18}"
_HEAD = _ROW.format("source", "lines", "writers", "characters", "points/character")


def show(folder: Path) -> list[Line]:
    """Print what was read, what was not and why; all lines."""
    tally = Tally()
    lines = read_lines(folder, tally)
    tally.kept = len(lines)
    print(tally.report())
    if not lines:
        return lines
    print()
    print(_HEAD)
    by_source = defaultdict(list)
    for line in lines:
        by_source[line.source].append(line)
    for source, group in sorted(by_source.items()):
        print(_row(source, group))
    return lines


def _row(source: str, lines: Sequence[Line]) -> str:
    characters = [len("".join(line.text.split())) for line in lines]
    points = [sum(map(len, line.strokes)) for line in lines]
    typical = median(p / max(c, 1) for p, c in zip(points, characters, strict=True))
    writers = len({line.writer for line in lines})
    return _ROW.format(
        source, f"{len(lines):,}", f"{writers:,}", f"{sum(characters):,}", f"{typical:.1f}"
    )
