"""Which hands are legible, at which bias? `python -m lab hands [ARTIFACT]`: the same lines in every
stored hand and in made-up ones, with the same noise, read by the reader and by Tesseract.
"""

import argparse
from pathlib import Path
from statistics import median
from typing import Any

from contract.alphabets import LONGEST_LINE
from export.results import machine, write_json
from lab.legibility import pages
from lab.legibility.goal import Goal
from lab.legibility.reading import errors, figures, tesseract_version
from lab.legibility.sentences import sentences
from lab.legibility.write_ink import Hand, Pen, stored_in
from lab.reading.hands_sheet import plot_hands
from lab.reading.shown import TESSERACT, Readers, named, readers_of
from training.command import positive

RESULTS = Path("docs", "results", "ink-hands.json")
SHEET = Path("docs", "hands.png")
BIASES = (0.5, 1.0, 2.0)
MADE_UP = "made up"
MOST_OF_MEDIAN = 2.0  # a hand of more is to be mended or dropped
_SEED = 20131
_USUAL_BIAS = "1.0"

# By bias, hand, kind of text and reader.
Found = dict[str, dict[str, dict[str, dict[str, Any]]]]


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("artifact", type=Path, nargs="?", default=Path("artifacts", "handwriting"))
    parser.add_argument("--lines", type=positive, default=40, help="of each kind of text (40)")
    parser.add_argument("--reader", type=Path, default=Path("artifacts", "reader"))
    parser.add_argument("--out", type=Path, default=RESULTS, help="the results to write")
    parser.add_argument("--sheet", type=Path, default=SHEET, help="the picture to write")


def run(options: argparse.Namespace) -> int:
    """0 if no hand is so bad that it has to go."""
    outside = tesseract_version()
    readers = readers_of(options.reader)
    pen = Pen(options.artifact)
    stored = stored_in(options.artifact, pen.manifest)
    plot_hands(pen, stored, options.sheet)
    hands = stored | {MADE_UP: pen.fresh()}
    texts = texts_of(options.lines)
    found = {str(b): measure(pen, hands, texts, b, readers) for b in BIASES}
    print_found(found)
    goal = worst_hand(found)
    print(goal.line())
    about = {
        "command": options.told,
        "machine": machine(),
        "tesseract": outside,
        "models": {"pen": named(options.artifact), "reader": named(options.reader)},
        "seed": _SEED,
        "lines": options.lines,
        "goals": [goal.described()],
        "by_bias": found,
    }
    write_json(options.out, about)
    print(f"written to {options.out}")
    return 0 if goal.met else 1


def texts_of(count: int) -> dict[str, list[str]]:
    """So many lines that are plain, and as many with figures and marks."""
    invented = [text for text in sentences(5 * count, _SEED) if len(text) <= LONGEST_LINE]
    plain = [pages.TEXTS[number % len(pages.TEXTS)] for number in range(count)]
    return {"plain": plain, "invented": invented[:count]}


def measure(
    pen: Pen, hands: dict[str, Hand], texts: dict[str, list[str]], bias: float, readers: Readers
) -> dict[str, dict[str, dict[str, Any]]]:
    """The errors of each hand, kind of text and reader; the noise of a line is the same in all
    hands."""
    found: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in hands}
    for kind, lines in texts.items():
        for name, hand in hands.items():
            written = pen.write(lines, bias, _SEED, [hand] * len(lines))
            inks = [ink.offsets for ink in written]
            found[name][kind] = {
                reader: figures([errors(*pair) for pair in zip(lines, read(inks), strict=True)])
                for reader, read in readers.items()
            }
    return found


def worst_hand(by_bias: Found) -> Goal:
    """The stored hand that Tesseract misreads most, over the median of them, at the usual bias."""
    read = [
        kinds["plain"][TESSERACT] for name, kinds in by_bias[_USUAL_BIAS].items() if name != MADE_UP
    ]
    rates = [found["edits"] / found["characters"] for found in read]  # not as they are told
    usual = median(rates) or 1 / read[0]["characters"]  # of few lines, all may be read right
    return Goal("the worst hand / the median one", max(rates) / usual, MOST_OF_MEDIAN)


def print_found(found: Found) -> None:
    """A row for each hand: error rates of all biases."""
    for kind in ("plain", "invented"):
        for reader in next(iter(found[_USUAL_BIAS].values()))[kind]:
            print(f"{kind}, {reader}: bias {', '.join(found)}")
            for hand in found[_USUAL_BIAS]:
                rates = [hands[hand][kind][reader]["cer"] for hands in found.values()]
                print(f"  {hand:10}" + "".join(f"{rate:8.3f}" for rate in rates))
