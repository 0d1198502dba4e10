"""Lines a pen wrote that the reader reads as they were meant: `python -m lab own OUT [ARTIFACT]`, a
corpus with these beside people's ink, for `data.own` of a recipe: a pen learns from those of its
draws that can be read.

The texts are those of rows that pens are trained on, more of them with what a pen writes worst and
more of short words, whose gaps are narrow; the hands are those of writers they may learn from and
made-up ones. What is not read is drawn again, and given up in the end: rejection sampling.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from contract.alphabets import LONGEST_TEXT
from export.ink.styles import fitting_lines
from lab.glyphs.contexts import fold
from lab.legibility import held_out
from lab.legibility.reading import Offsets, in_units
from lab.legibility.write_ink import Hand, Pen
from lab.reading.shown import READER, readers_of
from training.command import positive
from training.ink.compose import Rows
from training.ink.corpus import PenCorpus
from training.ink.prepare import LONGEST_INK, OWN, Ink

_CHARACTERS = range(2, 33)  # of a text, and a few more
_MARKED, _FIGURED = 0.3, 0.25  # as in the recipes that such lines are for
_MORE = 1 / 3  # so many texts are drawn until they have what there is to be more of
_REDRAWN = 50
_BRIEF = 0.1  # so many are a few short words
_BRIEF_WORDS, _BRIEF_LETTERS = (2, 3), 3
_LINES = 3  # of a writer, a hand after each
_MADE_UP = 1 / 3  # so many lines are in no hand
# Less neatly than a pen is usually asked to write, so that what it learns from is not all alike.
_BIAS = 0.5

Asked = tuple[str, Hand]  # a text, and in which hand


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("out", type=Path, help="the corpus to write, .npz")
    parser.add_argument("artifact", type=Path, nargs="?", default=Path("artifacts", "handwriting"))
    parser.add_argument("--pens", type=Path, help="a corpus saved as .npz, not EVENKEEL_DATA")
    parser.add_argument("--reader", type=Path, default=Path("artifacts", "reader"))
    parser.add_argument("--count", type=positive, default=16000, help="texts (16000)")
    parser.add_argument(
        "--more", default="", help="characters of which a third of the texts has one"
    )
    parser.add_argument("--tries", type=positive, default=8, help="draws of each at most (8)")
    parser.add_argument("--seed", type=int, default=0, help="another one gives other lines (0)")


def run(options: argparse.Namespace) -> int:
    """Write the corpus, and say how many of the texts were read."""
    if options.out.suffix != ".npz":
        raise ValueError(f"OUT is {str(options.out)!r}; a corpus is a file that ends with .npz")
    if options.seed < 0:
        raise ValueError(f"--seed is {options.seed}; it is 0 or more")
    corpus = held_out.corpus(options.pens, marks=True, figures=True)
    learned, _ = corpus.split(held_out.VALIDATION_FRACTION)
    generator = np.random.default_rng(options.seed)
    pen, read = Pen(options.artifact), readers_of(options.reader)[READER]
    asked = texts_asked(pen, learned, options.count, generator, options.more)
    lines = legible(pen, read, asked, options.tries, generator)
    PenCorpus(corpus.name, corpus.inks + lines).save(options.out)
    print(f"{len(lines)} of {len(asked)} texts are read as they were meant: {options.out}")
    return 0


def texts_asked(
    pen: Pen, inks: Sequence[Ink], count: int, generator: np.random.Generator, more: str = ""
) -> list[Asked]:
    """So many texts of rows of this ink, in hands of its writers and in made-up ones. A third has
    one of the characters `more`, if rows have them."""
    rows = Rows(list(inks), _MARKED, _FIGURED)
    brief = sorted(
        {ink.text for ink in inks if ink.text.isalpha() and len(ink.text) <= _BRIEF_LETTERS}
    )
    hands = hands_of(pen, inks, generator)
    made_up = pen.fresh()
    asked = []
    for characters in generator.integers(_CHARACTERS.start, _CHARACTERS.stop, count):
        in_no_hand = not hands or generator.random() < _MADE_UP
        hand = made_up if in_no_hand else hands[generator.integers(len(hands))]
        if brief and generator.random() < _BRIEF:
            text = " ".join(generator.choice(brief, generator.choice(_BRIEF_WORDS)))
        else:
            wanted = more if generator.random() < _MORE else ""
            text = _text(rows, int(characters), wanted, generator)
        asked.append((text, hand))
    return asked


def _text(rows: Rows, characters: int, wanted: str, generator: np.random.Generator) -> str:
    """Of the first row that a line has room for and that has one of the wanted characters; of the
    last that a line has room for if none does."""
    text = ""
    for _ in range(_REDRAWN):
        drawn = rows.draw(characters, generator).text
        text = drawn if len(drawn) <= LONGEST_TEXT else text
        if text and not (wanted and set(wanted).isdisjoint(text)):
            break
    return text


def hands_of(pen: Pen, inks: Sequence[Ink], generator: np.random.Generator) -> list[Hand]:
    """Every writer's hand after some of the lines that show one; none of who wrote no such line."""
    corpus = PenCorpus("", list(inks))
    found = []
    for writer in sorted({ink.writer for ink in inks}):
        try:
            lines = fitting_lines(corpus, writer)
        except ValueError:
            continue  # nothing long enough
        for place in generator.permutation(len(lines))[:_LINES]:
            ink = lines[place]
            found.append(pen.hand_after(pen.fresh(), ink.text, ink.offsets))
    return found


def legible(
    pen: Pen,
    read: Callable[[Sequence[Offsets]], list[str]],
    asked: Sequence[Asked],
    tries: int,
    generator: np.random.Generator,
) -> list[Ink]:
    """The first draw of each text that is read as it was meant, of so many; of the others none."""
    kept = []
    for _ in range(tries):
        texts, hands = [text for text, _ in asked], [hand for _, hand in asked]
        drawn = pen.write(texts, _BIAS, int(generator.integers(2**31)), hands)
        readings = read([ink.offsets for ink in drawn])
        missed = []
        for one, ink, reading in zip(asked, drawn, readings, strict=True):
            whole = ink.ended and len(ink.offsets) <= LONGEST_INK
            if whole and fold(reading) == fold(one[0]):
                kept.append(_own(one[0], ink.offsets))
            else:
                missed.append(one)
        asked = missed
    return kept


def _own(text: str, offsets: Offsets) -> Ink:
    """As it stands on its line: level, from the left end of the baseline."""
    points = in_units(offsets)
    moves = np.diff(points[:, :2], axis=0, prepend=0)
    ink = np.column_stack([moves, points[:, 2]]).astype(np.float32)
    return Ink(text, ink, float(points[:, 0].max()), OWN, OWN)
