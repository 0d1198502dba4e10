"""Whose hand does a pen write legibly? `python -m lab writers [ARTIFACT]`: the same lines after one
of each writer's own, read by the reader. It is how stored hands are chosen; nothing of it is kept.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

from export.ink.styles import fitting_lines
from lab.legibility import held_out, pages
from lab.legibility.reading import errors, overall
from lab.legibility.write_ink import Hand, Pen
from lab.reading.shown import READER, readers_of
from training.command import positive
from training.ink.corpus import PenCorpus

_LINES = 2  # of a writer
_TEXTS = pages.TEXTS[:5]
_BIAS, _SEED = 1.0, 20141


@dataclass(frozen=True, slots=True)
class Candidate:
    """A writer's fitting line by its number, and the hand after it."""

    writer: str
    line: int
    text: str
    hand: Hand


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("artifact", type=Path, nargs="?", default=Path("artifacts", "handwriting"))
    parser.add_argument("--pens", type=Path, help="a corpus saved as .npz, not EVENKEEL_DATA")
    parser.add_argument("--reader", type=Path, default=Path("artifacts", "reader"))
    parser.add_argument("--best", type=positive, default=60, help="how many are shown (60)")


def run(options: argparse.Namespace) -> int:
    """Print writers and lines, the most legible first."""
    read = readers_of(options.reader)[READER]
    pen = Pen(options.artifact)
    found = candidates(pen, held_out.corpus(options.pens))
    asked = [(text, one.hand) for one in found for text in _TEXTS]
    inks = pen.write([text for text, _ in asked], _BIAS, _SEED, [hand for _, hand in asked])
    readings = read([ink.offsets for ink in inks])
    rates = [errors(text, r) for (text, _), r in zip(asked, readings, strict=True)]
    size = len(_TEXTS)
    each = [overall(rates[size * i : size * (i + 1)]).rate for i in range(len(found))]
    order = sorted(range(len(found)), key=lambda i: each[i])
    for i in order[: options.best]:
        one = found[i]
        print(f"{each[i]:6.3f}  {one.writer:28} {one.line}  {one.text}")
    return 0


def candidates(pen: Pen, corpus: PenCorpus) -> list[Candidate]:
    """The first fitting lines of every writer who has any, as hands."""
    found = []
    for writer in sorted({ink.writer for ink in corpus.inks}):
        try:
            lines = fitting_lines(corpus, writer)
        except ValueError:
            continue  # nothing long enough
        for number, ink in enumerate(lines[:_LINES]):
            hand = pen.hand_after(pen.fresh(), ink.text, ink.offsets)
            found.append(Candidate(writer, number, ink.text, hand))
    return found
