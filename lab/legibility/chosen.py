"""Is the best of several draws better than one, and what does it cost? `python -m lab chosen`
against a running service that has a pen and a reader: Tesseract, which chose nothing, reads both;
and both are timed in turns.
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any

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
from service.ink.png import to_png
from service.ink.svg import to_svg

RESULTS = Path("docs", "results")
DRAWS = 4
MOST_ERRORS = 0.7  # times those of one draw
MOST_TIME = 2.0  # times that of one draw
MOST_FIRST_LINE = 1.5  # times that of one draw, of a long page that is streamed
_LINES = 40
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


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="where the service is")


def run(options: argparse.Namespace) -> int:
    """0 if every goal is met."""
    invented = [text for text in sentences(5 * _LINES, _SEED) if len(text) <= LONGEST_LINE]
    plain = [pages.TEXTS[i % len(pages.TEXTS)] for i in range(_LINES)]
    texts = {"invented": invented[:_LINES], "plain": plain}
    reader = tesseract_version()
    try:
        with httpx.Client(base_url=options.url, timeout=120) as client:
            drawn = {name: draw_both(client, some) for name, some in texts.items()}
            first_s = [(first_line_s(client, 1, i), first_line_s(client, DRAWS, i))
                       for i in range(_STREAMS)]  # fmt: skip
            served = client.get("/v1/models").raise_for_status().json()["data"]
    except httpx.HTTPError as error:
        raise ConnectionError(f"{options.url}: {error}") from error
    content, goals = judge(texts, drawn, first_s)
    print("\n".join(goal.line() for goal in goals))
    about = {
        "command": "python -m lab chosen",
        "machine": machine(),
        "tesseract": reader,
        "models": {m["id"]: m["system_fingerprint"] for m in served if m["kind"] != "language"},
        "draws": DRAWS,
        "seed": _SEED,
    }
    write_json(RESULTS / "ink-best-of.json", about | content)
    print(f"written to {RESULTS / 'ink-best-of.json'}")
    return 0 if all(goal.met for goal in goals) else 1


def judge(
    texts: dict[str, list[str]],
    drawn: dict[str, tuple[list[Drawn], list[Drawn]]],
    first_s: Sequence[tuple[float, float]],
    reader: Reader = tesseract,
) -> tuple[dict[str, Any], list[Goal]]:
    """What is read in either, the times, and the goals."""
    content: dict[str, Any] = {}
    for name, pair in drawn.items():
        one, best = ([misread(text, d, reader) for text, d in zip(texts[name], ds, strict=True)]
                     for ds in pair)  # fmt: skip
        times = [b.seconds / a.seconds for a, b in zip(*pair, strict=True)]
        content[name] = {
            "one": figures(one),
            "best": figures(best),
            "ratio": round(overall(best).rate / overall(one).rate, 4),
            "interval": interval(best, one),
            "unreadable": sum(d.finish_reason == "unreadable" for d in pair[1]),
            "seconds": [round(median(d.seconds for d in ds), 4) for ds in pair],
            "time_ratio": round(median(times), 3),
        }
    firsts = [median(pair[i] for pair in first_s) for i in range(2)]
    content["first_line_s"] = [round(seconds, 4) for seconds in firsts]
    goals = [
        Goal("errors / those of one draw", content["invented"]["ratio"], MOST_ERRORS),
        Goal("time / that of one draw", content["invented"]["time_ratio"], MOST_TIME),
        Goal("first line / that of one draw", firsts[1] / firsts[0], MOST_FIRST_LINE),
    ]
    return content | {"goals": [goal.described() for goal in goals]}, goals


def draw_both(client: httpx.Client, texts: Sequence[str]) -> tuple[list[Drawn], list[Drawn]]:
    """Each text as one draw and as the best of several, with the same seed and in turns."""
    for draws in (1, DRAWS):
        draw(client, texts[0], 0, draws)  # what is made at the first request is made now
    pairs = [(draw(client, t, i, 1), draw(client, t, i, DRAWS)) for i, t in enumerate(texts)]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def draw(client: httpx.Client, text: str, seed: int, best_of: int) -> Drawn:
    """One line at the size that Tesseract reads best."""
    body = {"text": text, "seed": seed, "best_of": best_of, "format": "json"}
    body |= {"width": 4096, "line_height": PAGE.line_height_px}
    began_s = time.perf_counter()
    answer = client.post("/v1/handwriting", json=body).raise_for_status()
    seconds = time.perf_counter() - began_s
    (line,) = answer.json()["lines"]
    return Drawn(line["strokes"], line.get("legibility"), line["finish_reason"], seconds)


def first_line_s(client: httpx.Client, best_of: int, seed: int) -> float:
    """Seconds until the first line of a long page has come whole."""
    text = " ".join(pages.TEXTS * 10)[:_CHARACTERS]
    body = {"text": text, "seed": seed, "best_of": best_of, "stream": True, "width": 800}
    began_s = time.perf_counter()
    with client.stream("POST", "/v1/handwriting", json=body) as answer:
        for event in answer.raise_for_status().iter_lines():
            if event.startswith("data: ") and "finish_reason" in json.loads(event[6:]):
                return time.perf_counter() - began_s
    raise ValueError("no line came")


def misread(text: str, drawn: Drawn, reader: Reader) -> Errors:
    """What is read in a line, beside its text."""
    strokes = [np.array(stroke) for stroke in drawn.strokes]
    right_px = max(float(stroke[:, 0].max()) for stroke in strokes)
    page = replace(PAGE, width_px=ceil(right_px + PAGE.margin_px))
    return errors(text, one_line(reader(to_png(to_svg(strokes, page, 1)))))
