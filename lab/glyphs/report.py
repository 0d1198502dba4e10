"""Which characters does the pen write legibly? `python -m lab glyphs [ARTIFACT]`: each printable
one in short texts, in every stored hand and in made-up ones, read by the reader and by Tesseract;
and the same characters of real ink, where EVENKEEL_DATA has it.
"""

import argparse
import string
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from export.results import machine, write_json
from lab.glyphs.contexts import ALIKE, CHARACTERS, Context, contexts
from lab.glyphs.judge import LETTERS_LEAST, MARKS_LEAST, classes, tally, worst
from lab.glyphs.people import Judged, marks_among_words, real_lines
from lab.glyphs.sheet import SAMPLES, Sample, Shown, plot_glyphs
from lab.legibility import held_out
from lab.legibility.goal import Goal
from lab.legibility.reading import NoReader, Offsets, in_units, tesseract_version
from lab.legibility.write_ink import Hand, Pen, Written
from lab.reading.shown import READER, TESSERACT, Readers, named, readers_of
from service.artifact import load_artifact
from service.ink.model import stored_hands
from service.ink.owners import owners
from training.command import positive

RESULTS = Path("docs", "results", "ink-glyphs.json")
SHEET = Path("docs", "ink-glyphs.png")
BIAS = 1.0
_SEED = 20261122
_WORST = 20


@dataclass(frozen=True, slots=True)
class Line:
    """A context as the pen wrote it."""

    context: Context
    ink: Written


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("artifact", type=Path, nargs="?", default=Path("artifacts", "handwriting"))
    parser.add_argument(
        "--contexts", type=positive, default=40, help="texts for each character (40)"
    )
    parser.add_argument("--reader", type=Path, default=Path("artifacts", "reader"))
    parser.add_argument("--pens", type=Path, help="a corpus saved as .npz, not EVENKEEL_DATA")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the results to write")
    parser.add_argument("--sheet", type=Path, default=SHEET, help="the contact sheet to write")


def run(options: argparse.Namespace) -> int:
    """0 if every goal is met."""
    readers, pen = readers_of(options.reader), Pen(options.artifact)
    people = real_ink(options.pens)
    tools = {"jiwer": version("jiwer")}
    try:
        tools[TESSERACT] = tesseract_version()
    except NoReader as error:
        print(f"{error}; the reader reads alone")
        del readers[TESSERACT]
    hands = [*stored_hands(load_artifact(options.artifact), pen.manifest).values(), pen.fresh()]
    lines = write_contexts(pen, hands, options.contexts)
    found = {"pen": judge_pen(lines, readers)}
    if people:
        found["people"] = judge_people(people, readers)
    shares = found["pen"][READER]["characters"]
    goals = goals_of(shares)
    print_found(found)
    print("\n".join(goal.line() for goal in goals))
    about = {
        "command": options.told,
        "machine": machine(),
        "tools": tools,
        "models": {"pen": named(options.artifact), "reader": named(options.reader)},
        "bias": BIAS,
        "seed": _SEED,
        "contexts": options.contexts,
        "hands": len(hands),
        "alike": ALIKE,
        "goals": [goal.described() for goal in goals],
    }
    write_json(options.out, about | found)
    plot_glyphs(shown(lines, shares), options.sheet)
    print(f"written to {options.out} and {options.sheet}")
    return 0 if all(goal.met for goal in goals) else 1


def real_ink(saved: Path | None) -> list[Judged]:
    """Lines of held-out writers and their isolated marks, from a file or `EVENKEEL_DATA`; none
    where neither is given."""
    corpus = held_out.corpus_if_any(saved, marks=True)
    if corpus is None:
        return []
    _, validation = corpus.split(held_out.VALIDATION_FRACTION)
    return real_lines(validation) + marks_among_words(validation)


def write_contexts(pen: Pen, hands: Sequence[Hand], count: int) -> list[Line]:
    """So many texts for each character, the hands in turns. The same hands, text and number of a
    context have the same noise, whatever `count` is and whoever wrote the others."""
    lines = []
    for character in CHARACTERS:
        some = contexts(character, count, _SEED)
        turns = [hands[number % len(hands)] for number in range(count)]
        written = pen.write([c.text for c in some], BIAS, _SEED + ord(character), turns)
        lines += [Line(*pair) for pair in zip(some, written, strict=True)]
    return lines


def judge_pen(lines: Sequence[Line], readers: Readers) -> dict[str, Any]:
    """What each reader reads at the place of each context."""
    texts = [line.context.text for line in lines]
    places = [[line.context.place] for line in lines]
    return judge(texts, places, [line.ink.offsets for line in lines], readers)


def judge_people(real: Sequence[Judged], readers: Readers) -> dict[str, Any]:
    """What each reader reads at the judged places of real lines."""
    texts = [ink.text for ink, _ in real]
    inks = [ink.offsets for ink, _ in real]
    return judge(texts, [places for _, places in real], inks, readers)


def judge(
    texts: Sequence[str],
    places: Sequence[Sequence[int]],
    inks: Sequence[Offsets],
    readers: Readers,
) -> dict[str, Any]:
    """What each reader reads at the places of each text: by character, and by class of them."""
    content = {}
    for name, read in readers.items():
        found = tally(texts, places, read(inks))
        shares = {c: found[c].described(c) for c in CHARACTERS if c in found}
        content[name] = {"lines": len(texts), "classes": classes(shares), "characters": shares}
    return content


def goals_of(shares: dict[str, dict[str, Any]]) -> list[Goal]:
    """Of every letter and digit, and of every mark, so many samples are read right."""
    letters = [shares[c]["folded"] >= LETTERS_LEAST for c in string.ascii_letters + string.digits]
    marks = [shares[c]["folded"] >= MARKS_LEAST for c in string.punctuation]
    return [
        Goal("letters and digits read 9 times of 10", sum(letters), len(letters), at_least=True),
        Goal("marks read 8 times of 10", sum(marks), len(marks), at_least=True),
    ]


def shown(lines: Sequence[Line], shares: dict[str, dict[str, Any]]) -> list[Shown]:
    """The first samples of every character for the sheet."""
    samples: dict[str, list[Sample]] = {character: [] for character in CHARACTERS}
    for line in lines:
        of_it = samples[line.context.character]
        if len(of_it) < SAMPLES:
            of_it.append(_sample(line))
    return [Shown(c, shares[c]["folded"], some) for c, some in samples.items()]


def print_found(content: dict[str, Any]) -> None:
    """The classes by ink and reader, and the characters that fail."""
    print(f"{'':24}{'right':>8}{'folded':>8}{'of them 90%':>13}{'80%':>6}")
    for ink, found in content.items():
        for reader, judged in found.items():
            for name, c in judged["classes"].items():
                head = f"{ink}, {reader}, {name}:"
                print(f"{head:34}{c['right']:8.3f}{c['folded']:8.3f}", end="")
                print(f"{c['reach_0.9']:6}{c['reach_0.8']:6} of {c['characters']}")
    shares = content["pen"][READER]["characters"]
    for character in worst(shares, _WORST):
        found = shares[character]
        print(f"{character}  {found['folded']:.2f}, misread as {found['misread']}")


def _sample(line: Line) -> Sample:
    """Its ink in units from the left end of the baseline, and which points are the character's."""
    offsets = line.ink.offsets
    points = in_units(offsets)
    whose = owners(line.context.text, line.ink.characters[: len(offsets)], points)
    return Sample(points, whose == line.context.place)
