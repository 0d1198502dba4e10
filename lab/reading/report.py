"""How much of what people wrote is read? `python -m lab reading`: character error rates on lines of
writers that no network has seen, of the reader, of its twin, and of Tesseract on pictures of them.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from contract.manifest import MANIFEST, sha256
from export.results import machine, write_json
from lab.legibility import held_out
from lab.legibility.goal import Goal
from lab.legibility.reading import (
    Errors,
    Reader,
    errors,
    figures,
    interval,
    one_line,
    overall,
    tesseract,
    tesseract_version,
)
from lab.legibility.reading import read as read_pictures
from lab.reading.readers import parameters_of, read, reader_of
from lab.reading.shown import named
from training.ink.prepare import Ink
from training.loop import CHECKPOINT

RESULTS = Path("docs", "results")
MOST_OF_TESSERACT = 0.5
MOST_OF_TWIN = 1.25
_WORDS = 1000
# The reader, where delayed strokes are not put in their places.
AS_WRITTEN = "reader, as written"


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--reader", type=Path, default=Path("artifacts", "reader"))
    parser.add_argument("--twin", type=Path, default=Path("runs", "reader-twin"))
    parser.add_argument("--pens", type=Path, help="a corpus saved as .npz, not EVENKEEL_DATA")
    parser.add_argument("--out", type=Path, default=RESULTS / "reading.json")


def run(options: argparse.Namespace) -> int:
    """0 if every goal is met."""
    reader_version = tesseract_version()
    _, validation = held_out.corpus(options.pens).split(held_out.VALIDATION_FRACTION)
    lines = held_out.chosen(validation, held_out.read_list())
    words = words_of(validation)
    content = measure(options.reader, options.twin, lines, words, tesseract)
    tools = {"tesseract": reader_version, "jiwer": version("jiwer")}
    head = {"command": options.told, "machine": machine(), "tools": tools}
    write_json(options.out, head | {"rule": held_out.RULE} | content)
    print(f"written to {options.out}")
    return 0 if all(goal["met"] for goal in content["goals"]) else 1


def words_of(inks: Sequence[Ink]) -> list[Ink]:
    """Words of several letters by the same writers, the first of them by their hashes."""
    words = {held_out.identity(i): i for i in inks if len(i.text) > 1 and " " not in i.text}
    return [words[name] for name in sorted(words)[:_WORDS]]


def measure(
    reader: Path, twin: Path, lines: Sequence[Ink], words: Sequence[Ink], outside: Reader
) -> dict[str, Any]:
    """Read, print, and say what came out; `outside` reads pictures. Where there is no twin, its
    goal is not judged."""
    sources = {"reader": reader} | ({"twin": twin} if twin.exists() else {})
    texts = [ink.text for ink in lines]
    networks = {name: reader_of(source) for name, source in sources.items()}
    pictures = read_pictures([ink.offsets for ink in lines], outside)
    of_lines = {"tesseract": judge(texts, pictures)}
    of_words = {}
    if networks["reader"].reordered:
        networks[AS_WRITTEN] = replace(networks["reader"], reordered=False)
    for name, network in networks.items():
        of_lines[name] = judge(texts, read(network, lines))
        of_words[name] = judge([ink.text for ink in words], read(network, words))
    goals = goals_of({name: overall(found).rate for name, found in of_lines.items()})
    for name, found in of_lines.items():
        print(f"{name:18} lines {overall(found).rate:.4f}", end="")
        print(f"  words {overall(of_words[name]).rate:.4f}" if name in of_words else "")
    print("\n".join(goal.line() for goal in goals))
    return {
        "models": {name: _identity(source) for name, source in sources.items()},
        "parameters": {name: parameters_of(source) for name, source in sources.items()},
        "lines": {name: figures(found) for name, found in of_lines.items()},
        "words": {name: figures(found) for name, found in of_words.items()},
        "intervals": intervals(of_lines),
        "goals": [goal.described() for goal in goals],
    }


def _identity(source: Path) -> dict[str, str]:
    """Which one was measured: an artifact by the hash of its weights, a run by its checkpoint's."""
    if (source / MANIFEST).exists():
        return named(source)
    return {"name": source.name, CHECKPOINT: sha256(source / CHECKPOINT)}


def judge(texts: Sequence[str], readings: Sequence[str]) -> list[Errors]:
    """The errors of every line."""
    return [errors(t, one_line(r)) for t, r in zip(texts, readings, strict=True)]


def goals_of(rates: dict[str, float]) -> list[Goal]:
    """The reader beside Tesseract, and beside the twin if there is one."""
    goals = [Goal("reader / Tesseract", rates["reader"] / rates["tesseract"], MOST_OF_TESSERACT)]
    if "twin" in rates:
        goals.append(Goal("reader / twin", rates["reader"] / rates["twin"], MOST_OF_TWIN))
    return goals


def intervals(found: dict[str, list[Errors]]) -> dict[str, list[float]]:
    """95% of the reader's ratio to each other when the lines are drawn again with replacement."""
    return {
        f"reader / {name}": interval(found["reader"], theirs)
        for name, theirs in found.items()
        if name != "reader"
    }
