"""Do pages stay in one hand, and do lines keep their last strokes? `python -m lab pages`: pages
whose lines go on from one another beside pages whose lines all begin from the hand, read line by
line by Tesseract; their lean and size beside those of people's lines, where there is data; and
lines that end in letters with a dot or a bar, cut off by either rule.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from contract.ending import PAST_INK_UNITS
from contract.ink import STYLES
from contract.manifest import WEIGHTS
from export.results import machine, write_json
from lab.legibility import held_out
from lab.legibility.goal import Goal
from lab.legibility.page_sheet import plot_pages
from lab.legibility.reading import (
    Errors,
    Offsets,
    errors,
    overall,
    read,
    tesseract,
    tesseract_version,
)
from lab.legibility.steadiness import Strays, of_pages, of_people
from lab.legibility.write_ink import Hand, Pen, Written, stored_in
from service.ink.measure import measure

RESULTS = Path("docs", "results", "ink-pages.json")
SHEET = Path("docs", "ink-pages.png")
BIAS = 1.0
# Every line is drawn alike, so what differs by place is noise: of ten pages 0.92 to 1.19 times.
PAGES, LINES, CHAINED_LINES = 40, 20, 8
MOST_DECAY = 1.1  # times the errors of the first lines
MOST_CUT = 0.01  # of lines
MOST_STRAY = 1.0  # times what a person's lines do
_SEED = 20261122
_ENDINGS = 240
# Points after an end among which a stroke that was cut off would have been.
_FURTHER = 12
TEXTS = (
    "the boat sailed over quiet water", "nobody knew what she had found",
    "we walked home along the river", "please bring some bread and milk",
    "every layer keeps an even keel", "his letters were never answered",
    "a small dog slept by the door", "they painted the fence in green",
    "the train was late this morning", "I think it will rain tomorrow",
)  # fmt: skip
_BEFORE = ("the boat", "we saw", "a ring of", "his", "under the", "my garden", "you and", "over")
_LAST = ("hi", "taj", "alibi", "hadj", "THE", "BLUE", "45", "15", "2 + 2 +", "+", "cat", "night",
         "why?", "no?", "stop!", "yes!", "ski", "Raj", "FREE", "7 + 5", "at", "taxi")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Lines:
    """What is measured of the lines at one place of all pages."""

    errors: Errors
    slant_degrees: float
    size_units: float


@dataclass(frozen=True, slots=True)
class Endings:
    """Of how many lines how many were cut off by the first pen-up past the text, and how many by
    the rule; and how many had no end."""

    lines: int
    cut_at_pen_up: int
    cut_by_rule: int
    unended: int


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--artifact", type=Path, default=Path("artifacts", "handwriting"))
    parser.add_argument("--pens", type=Path, help="a corpus saved as .npz, not EVENKEEL_DATA")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the results to write")
    parser.add_argument("--sheet", type=Path, default=SHEET, help="the picture to write")


def run(options: argparse.Namespace) -> int:
    """0 if every goal is met."""
    reader = tesseract_version()
    pen = Pen(options.artifact)
    hands = list(stored_in(options.artifact, pen.manifest).values())
    people = held_out.corpus_if_any(options.pens)  # which takes minutes to read
    begin = [hands[page % len(hands)] for page in range(PAGES)]
    chained = write_pages(pen, begin, CHAINED_LINES, chained=True)
    anchored = write_pages(pen, begin, LINES, chained=False)
    found = {"chained": judge(chained), "anchored": judge(anchored)}
    ends = endings(pen, hands)
    goals = [
        Goal("decay", decay(found["anchored"]), MOST_DECAY),
        Goal("cut", ends.cut_by_rule / ends.lines, MOST_CUT),
    ]
    strays = {"pages": of_pages(_with_texts(anchored))}
    if people is None:
        print("EVENKEEL_DATA is not set: pages are not held against people's lines")
    else:
        strays["people"] = of_people(people.inks)
        goals += [
            Goal(name, getattr(strays["pages"], name) / getattr(strays["people"], name), MOST_STRAY)
            for name in ("slant_degrees", "size")
        ]
    for name, lines in found.items():
        rates = " ".join(f"{line.errors.rate:.2f}" for line in lines)
        print(f"{name}: {rates}; last quarter / first {decay(lines):.2f}")
    print(ends, {name: _told(found) for name, found in strays.items()})
    print("\n".join(goal.line() for goal in goals))
    content = _content(options.told, reader, pen, found, strays, ends, goals)
    write_json(options.out, content)
    plot_pages([[ink.offsets for ink in pages[0]] for pages in (chained, anchored)], options.sheet)
    print(f"written to {options.out} and {options.sheet}")
    return 0 if all(goal.met for goal in goals) else 1


def _with_texts(pages: Sequence[Sequence[Written]]) -> Iterator[list[tuple[str, Offsets]]]:
    for page, inks in enumerate(pages):
        yield [(text_of(page, line), ink.offsets) for line, ink in enumerate(inks)]


def text_of(page: int, line: int) -> str:
    """Every place of the pages has each text equally often."""
    return TEXTS[(page + 3 * line) % len(TEXTS)]


def write_pages(
    pen: Pen, begin: Sequence[Hand], lines: int, *, chained: bool
) -> list[list[Written]]:
    """The lines of a page for each hand, with the same noise whether chained or not."""
    pages: list[list[Written]] = [[] for _ in begin]
    hands = list(begin)
    for line in range(lines):
        texts = [text_of(page, line) for page in range(len(begin))]
        written = pen.write(texts, BIAS, _SEED + line, hands)
        for page, (text, ink) in enumerate(zip(texts, written, strict=True)):
            pages[page].append(ink)
            if chained:
                own = ink.drawn[: len(ink.offsets)]
                hands[page] = pen.hand_after(hands[page], text, own)
    return pages


def judge(pages: Sequence[Sequence[Written]]) -> list[Lines]:
    """What Tesseract reads at every place of the pages, and how the ink leans and how large it
    is."""
    result = []
    for line, inks in enumerate(zip(*pages, strict=True)):
        texts = [text_of(page, line) for page in range(len(inks))]
        readings = read([ink.offsets for ink in inks], tesseract)
        looks = [measure(ink.offsets, len(text)) for text, ink in zip(texts, inks, strict=True)]
        result.append(
            Lines(
                overall([errors(t, r) for t, r in zip(texts, readings, strict=True)]),
                float(np.mean([look.slant_degrees for look in looks])),
                float(np.mean([look.size_units for look in looks])),
            )
        )
    return result


def decay(lines: Sequence[Lines]) -> float:
    """The error rate of the last quarter of the places over that of the first."""
    quarter = max(1, len(lines) // 4)
    last, first = (overall([line.errors for line in part]).rate
                   for part in (lines[-quarter:], lines[:quarter]))  # fmt: skip
    return last / first


def endings(pen: Pen, hands: Sequence[Hand]) -> Endings:
    """Lines that end in letters with a dot or a bar to come, cut off by either rule."""
    texts = [f"{_BEFORE[i % len(_BEFORE)]} {_LAST[i % len(_LAST)]}" for i in range(_ENDINGS)]
    chosen = [hands[i % len(hands)] for i in range(_ENDINGS)]
    written = pen.write(texts, BIAS, _SEED, chosen, further=_FURTHER)
    # Of none, where the window never left the text, argmax would be the first.
    at_pen_up = [int(i.past.argmax()) if i.past.any() else len(i.drawn) for i in written]
    return Endings(
        lines=len(texts),
        cut_at_pen_up=sum(
            strokes_left(ink.drawn, end) for ink, end in zip(written, at_pen_up, strict=True)
        ),
        cut_by_rule=sum(strokes_left(ink.drawn, len(ink.offsets)) for ink in written),
        unended=sum(not ink.ended for ink in written),
    )


def strokes_left(drawn: Offsets, end: int) -> bool:
    """Whether the pen, after `end` of the points `(M, 3)`, has strokes left: it does not leave the
    line for the place of a next word, or it comes back from there."""
    places = drawn[:, 0].cumsum(dtype=np.float64)
    right = places[:end].max(initial=0.0)
    after = places[end : end + _FURTHER]
    return bool((after[:1] <= right + PAST_INK_UNITS).any() or (after <= right).any())


def _told(strays: Strays) -> dict[str, Any]:
    """Rounded, as no goal is judged by it."""
    return {name: round(value, 4) for name, value in asdict(strays).items()}


def _content(
    command: str,
    reader: str,
    pen: Pen,
    found: dict[str, list[Lines]],
    strays: dict[str, Strays],
    ends: Endings,
    goals: Sequence[Goal],
) -> dict[str, Any]:
    return {
        "command": command,
        "machine": machine(),
        "tesseract": reader,
        "model": {
            "name": pen.manifest.name,
            "weights": pen.manifest.files[WEIGHTS],
            "styles": pen.manifest.files[STYLES],
        },
        "bias": BIAS,
        "seed": _SEED,
        "pages": PAGES,
        "by_line": {
            name: [asdict(line) | {"rate": round(line.errors.rate, 4)} for line in lines]
            for name, lines in found.items()
        },
        "last_quarter_over_first": {name: round(decay(lines), 3) for name, lines in found.items()},
        "strays": {name: _told(found) for name, found in strays.items()},
        "endings": asdict(ends),
        "goals": {
            goal.name: {"value": round(goal.value, 4), "bound": goal.bound, "met": goal.met}
            for goal in goals
        },
    }
