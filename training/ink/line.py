"""The one form of pen data: a line of text, the strokes that wrote it, and what was left out.

Shapes: N points of one stroke.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from training.bar import steady

_NAMED = 5
Stroke = NDArray[np.float32]  # (N, 2): x to the right and y up, one row per sample of the pen


@dataclass(frozen=True, slots=True)
class Line:
    """Text and the strokes of the pen on the paper, in the units and at the rate of the source."""

    text: str
    strokes: tuple[Stroke, ...]
    writer: str
    source: str
    points_per_second: float


@dataclass(slots=True)
class Tally:
    """How many lines were kept, how many were not and why, and some of the names to look at."""

    kept: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def skip(self, reason: str, what: str) -> None:
        """Count `what` under `reason`; the first few are remembered by name."""
        self.skipped[reason] += 1
        names = self.examples.setdefault(reason, [])
        if len(names) < _NAMED:
            names.append(what)

    def report(self) -> str:
        """One line per reason, the most frequent first."""
        rows = [f"{self.kept:8,} lines kept"]
        for reason, count in self.skipped.most_common():
            rows.append(f"{count:8,} {reason}: {', '.join(self.examples[reason])}")
        return "\n".join(rows)


def counted(lines: Iterable[Line], total: int | None = None) -> "tqdm[Line]":
    """The lines, of which there may be many: who sits at a terminal sees how far they are."""
    bar = tqdm(lines, "ink", total, leave=False, mininterval=1.0, unit=" lines", disable=None)
    return steady(bar)
