"""Is the best of several draws better than one, and what does it cost? `python -m lab chosen`
against a running service that has a pen and a reader: Tesseract, which chose nothing, reads one
draw of a line, the best of several, and the best by words; and all are timed in turns.
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import httpx
import numpy as np

from contract.alphabets import LONGEST_LINE
from export.results import machine, write_json
from lab.legibility import pages
from lab.legibility.goal import Goal
from lab.legibility.reading import (
    PAGE,
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
from lab.legibility.sentences import sentences
from service.ink.png import to_png_here
from service.ink.svg import to_svg

RESULTS = Path("docs", "results", "ink-best-of.json")
DRAWS = 4
ONE = "one draw"
WAYS: dict[str, dict[str, Any]] = {
    ONE: {},
    "by line": {"best_of": DRAWS},
    "by word": {"best_of": DRAWS, "best_by": "word"},
}
MOST_ERRORS = 0.7  # times those of one draw
MOST_TIME = 2.0  # times that of one draw
MOST_FIRST_LINE = 1.5  # times that of one draw, of a long page that is streamed
_LINES = 120
_STREAMS = 12
_SEED = 20131
_CHARACTERS = 2000  # of the page that is streamed


@dataclass(frozen=True, slots=True)
class Drawn:
    """A line as the service drew it, and the seconds it took."""

    strokes: list[list[list[float]]]
    legibility: float | None
    finish_reason: str
    seconds: float


class Streamed(NamedTuple):
    """Seconds until a page's first ink had come, and its first line."""

    first_ink_s: float
    first_line_s: float


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="where the service is")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the results to write")


def run(options: argparse.Namespace) -> int:
    """0 if every goal is met."""
    invented = [text for text in sentences(5 * _LINES, _SEED) if len(text) <= LONGEST_LINE]
    plain = [pages.TEXTS[i % len(pages.TEXTS)] for i in range(_LINES)]
    texts = {"invented": invented[:_LINES], "plain": plain}
    reader = tesseract_version()
    try:
        with httpx.Client(base_url=options.url, timeout=120) as client:
            drawn = {name: draw_all(client, some) for name, some in texts.items()}
            streamed = [{way: stream(client, way, i) for way in WAYS} for i in range(_STREAMS)]
            served = client.get("/v1/models").raise_for_status().json()["data"]
    except httpx.HTTPError as error:
        raise ConnectionError(f"{options.url}: {error}") from error
    content, goals = judge(texts, drawn, streamed)
    print("\n".join(goal.line() for goal in goals))
    about = {
        "command": options.told,
        "machine": machine(),
        "tesseract": reader,
        "models": {m["id"]: m["system_fingerprint"] for m in served if m["kind"] != "language"},
        "draws": DRAWS,
        "seed": _SEED,
    }
    write_json(options.out, about | content)
    print(f"written to {options.out}")
    return 0 if all(goal.met for goal in goals) else 1


def judge(
    texts: dict[str, list[str]],
    drawn: dict[str, dict[str, list[Drawn]]],
    streamed: Sequence[dict[str, Streamed]],
    reader: Reader = tesseract,
) -> tuple[dict[str, Any], list[Goal]]:
    """What is read of each way, the times, and the goals of both ways to choose."""
    content: dict[str, Any] = {}
    beside: dict[str, dict[str, tuple[float, float]]] = {}
    for name, ways in drawn.items():
        found = {way: [misread(text, d, reader) for text, d in zip(texts[name], ds, strict=True)]
                 for way, ds in ways.items()}  # fmt: skip
        beside[name] = {way: _beside_one(way, ways, found) for way in list(WAYS)[1:]}
        content[name] = {way: _described(way, ways, found, beside[name]) for way in ways}
    middle = {
        way: Streamed(*(median(times) for times in zip(*(s[way] for s in streamed), strict=True)))
        for way in WAYS
    }
    content["streamed"] = {
        way: {name: round(seconds, 4) for name, seconds in s._asdict().items()}
        for way, s in middle.items()
    }
    goals = []
    for way in list(WAYS)[1:]:
        ratio, time_ratio = beside["invented"][way]  # what is told of them is rounded
        first = middle[way].first_line_s / middle[ONE].first_line_s
        goals += [
            Goal(f"{way}: errors / those of one draw", ratio, MOST_ERRORS),
            Goal(f"{way}: time / that of one draw", time_ratio, MOST_TIME),
            Goal(f"{way}: first line / of one draw", first, MOST_FIRST_LINE),
        ]
    return content | {"goals": [goal.described() for goal in goals]}, goals


def _beside_one(
    way: str, drawn: dict[str, list[Drawn]], found: dict[str, list[Errors]]
) -> tuple[float, float]:
    """How many times the errors and the time of one draw a way has that chooses."""
    times = [b.seconds / a.seconds for a, b in zip(drawn[ONE], drawn[way], strict=True)]
    return overall(found[way]).rate / overall(found[ONE]).rate, median(times)


def _described(
    way: str,
    drawn: dict[str, list[Drawn]],
    found: dict[str, list[Errors]],
    beside: dict[str, tuple[float, float]],
) -> dict[str, Any]:
    """What is told of one way; of those that choose, beside one draw."""
    mine = drawn[way]
    told = figures(found[way]) | {"median_s": round(median(d.seconds for d in mine), 4)}
    if way == ONE:
        return told
    ratio, time_ratio = beside[way]
    return told | {
        "ratio": round(ratio, 4),
        "interval": interval(found[way], found[ONE]),
        "unreadable": sum(d.finish_reason == "unreadable" for d in mine),
        "time_ratio": round(time_ratio, 3),
    }


def draw_all(client: httpx.Client, texts: Sequence[str]) -> dict[str, list[Drawn]]:
    """Each text in every way, with the same seed and in turns."""
    for way in WAYS:
        draw(client, texts[0], 0, way)  # what is made at the first request is made now
    rows = [{way: draw(client, text, i, way) for way in WAYS} for i, text in enumerate(texts)]
    return {way: [row[way] for row in rows] for way in WAYS}


def draw(client: httpx.Client, text: str, seed: int, way: str) -> Drawn:
    """One line at the size that Tesseract reads best."""
    body = {"text": text, "seed": seed, "format": "json"} | WAYS[way]
    body |= {"width": 4096, "line_height": PAGE.line_height_px}
    began_s = time.perf_counter()
    answer = client.post("/v1/handwriting", json=body).raise_for_status()
    seconds = time.perf_counter() - began_s
    (line,) = answer.json()["lines"]
    return Drawn(line["strokes"], line.get("legibility"), line["finish_reason"], seconds)


def stream(client: httpx.Client, way: str, seed: int) -> Streamed:
    """A long page: when its first ink has come, and its first line."""
    text = " ".join(pages.TEXTS * 10)[:_CHARACTERS]
    body = {"text": text, "seed": seed, "stream": True, "width": 800} | WAYS[way]
    began_s, first_ink_s = time.perf_counter(), None
    with client.stream("POST", "/v1/handwriting", json=body) as answer:
        for event in answer.raise_for_status().iter_lines():
            told = json.loads(event[6:]) if event.startswith("data: {") else {}
            if "error" in told:
                raise ValueError(told["error"]["message"])
            if told.get("points") and first_ink_s is None:
                first_ink_s = time.perf_counter() - began_s
            if "finish_reason" in told and first_ink_s is not None:
                return Streamed(first_ink_s, time.perf_counter() - began_s)
    raise ValueError("no line came")


def misread(text: str, drawn: Drawn, reader: Reader) -> Errors:
    """What is read in a line, beside its text."""
    strokes = [np.array(stroke) for stroke in drawn.strokes]
    right_px = max((float(stroke[:, 0].max()) for stroke in strokes), default=PAGE.margin_px)
    page = replace(PAGE, width_px=ceil(right_px + PAGE.margin_px))
    return errors(text, one_line(reader(to_png_here(to_svg(strokes, page, 1)))))
