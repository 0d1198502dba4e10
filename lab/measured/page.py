"""`python -m lab report`: write docs/measured.md from docs/results and the shipped manifests.

Every figure of its tables is read from a file; the words around them are here.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from contract.files import write_whole
from contract.manifest import Finding, Manifest
from contract.manifests import read_manifest
from lab.measured import proof, speed
from lab.measured.table import Json, section, table, told
from training.checkpoint import understanding

PAGE = Path("docs", "measured.md")
RESULTS = Path("docs", "results")
# What is shipped; a folder may have models of whoever works in it as well.
SHIPPED = ("shakespeare", "shakespeare-int8", "handwriting", "handwriting-int8", "reader")
_SECTIONS = ("step", "http", "open", "websocket", "memory", "training")


def write(root: Path = Path()) -> Path:
    """Write the page of the project in `root`; its path. Raises `OSError` for a missing result."""
    write_whole(root / PAGE, page(root))
    return root / PAGE


def page(root: Path) -> str:
    """The page as it should stand. Raises `ValueError` for results that lack what it tells."""
    results = root / RESULTS
    bench = {name: _read(results / "bench" / f"{name}.json") for name in _SECTIONS}
    shipped = {name: read_manifest(root / "artifacts" / name) for name in SHIPPED}
    legibility = _read(results / "legibility.json")
    tasks = {
        name: _read(results / "lab" / f"{name}.json") for name in ("thoughts", "reader", "pen")
    }
    contrast, race, analysis, goals = (
        _read(results / f"{name}.json")
        for name in ("contrast", "pen-contrast", "analysis/analysis", "bench")
    )
    with understanding(results):
        parts = [
            section(
                "# Measured",
                "All that was measured: exactness, legibility, speed beside peers, and which goals "
                "of speed were reached. `make report` writes this page from "
                "[docs/results](results/), which keeps what each run measured, and the manifests "
                "in `artifacts/`; do not edit it. Each part names its command, hardware and "
                "versions. Other work on a machine changes figures, and times more than ratios.",
            ),
            section("## In six rows", headlines(shipped, bench, tasks, legibility), _TERMS),
            proof.models(shipped.values()),
            proof.parity(shipped.values()),
            proof.norms(contrast),
            proof.race(race),
            proof.analysis(analysis),
            proof.legibility(legibility),
            speed.step(bench["step"]),
            speed.http(bench["http"]),
            speed.arrivals(bench["open"]),
            speed.websocket(bench["websocket"]),
            speed.memory(bench["memory"]),
            speed.training(bench["training"]),
            speed.goals(list(bench.values()), list(goals.values())),
        ]
    return "\n\n".join(parts) + "\n"


_TERMS = (
    "A row-step is one step of one request. Weights are prepacked when onnxruntime lays them out "
    "for its kernels at load. p50 and p99 are percentiles. The character error rate is the edits "
    "that turn what was read into what was meant, over the characters of the latter. An update is "
    "one step of the optimiser."
)


def headlines(
    shipped: Mapping[str, Manifest],
    bench: Mapping[str, Json],
    tasks: Mapping[str, Json],
    legibility: Json,
) -> str:
    """The six rows that README shows as well."""
    text = shipped[bench["http"]["rows"]["in_process"][0]["model"]]
    found = {finding.name: finding for finding in text.parity or ()}
    score, control = found["score, validation text"], found["bits, control"]
    threads, sides = _lstm(bench["step"])
    first = {name: _first_byte(bench["http"], name) for name in ("service", "litserve-stream")}
    eager, compiled = (told(sides[name]["ratio_median"]) for name in ("eager", "compile"))
    rows = [
        (
            f"bytes of `{text.name}` drawn with the same randomness that differ from training's",
            f"{told(found['sampling'].value)} of {_counts(found['sampling'])[0]}",
            f"bits per byte, trained and served: {told(score.value)} apart",
        ),
        (
            "bytes of results that other requests, chunks or threads change",
            f"{told(found['bits'].value)} in {_counts(found['bits'])[0]} row-steps",
            f"{_counts(control)[0]} in {_counts(control)[1]} without prepacked weights",
        ),
        (
            f"one byte of an LSTM of 512 units at batch 1, sampling included, {threads} threads",
            f"{told(sides['served']['us_median'])} µs",
            f"PyTorch eager {eager} times as long, `torch.compile` {compiled}",
        ),
        (
            "32 clients, streamed: first byte, p50 and p99",
            f"{first['service']} ms",
            f"LitServe {first['litserve-stream']} ms",
        ),
        (
            f"character error rate of Tesseract on {legibility['generated']['lines']} generated "
            "lines of handwriting",
            told(legibility["generated"]["cer"]),
            f"{told(legibility['real']['cer'])} on people's ink of the same texts",
        ),
        (
            "updates layer norm takes to where no normalisation ended, over those that took: the "
            f"paper's tasks {', '.join(f'`{task}`' for task in tasks)}",
            ", ".join(map(_sooner, tasks.values())),
            "three seeds each, both at the best of their rates",
        ),
    ]
    return table(("what", "measured", "beside it"), rows)


def _sooner(task: Json) -> str:
    """Over how many of the updates, by the medians of the seeds."""
    found = task["cases"][""]["norms"]["layer"]["updates_to_best_of_none"]
    if found is None:  # where no normalisation diverged it got nowhere
        return "-"
    return "never there" if found["ratio"] is None else told(found["ratio"], 2)


def _lstm(content: Json) -> tuple[int, dict[str, Json]]:
    """The rows of 512 units on the most threads that were measured, by side."""
    rows = [r for r in content["rows"]["step"] if r["model"] == "lstm-512"]
    threads = max(r["threads"] for r in rows)
    return threads, {r["side"]: r for r in rows if r["threads"] == threads}


def _first_byte(content: Json, target: str) -> str:
    """p50 and p99 in ms of 32 streaming clients, the medians of repeats; a dash where none of them
    was answered."""
    rows = [
        r["first_byte_ms"]
        for r in content["rows"]["load"]
        if (r["target"], r["clients"], r["streamed"], r["lengths"]) == (target, 32, True, "fixed")
        and r["first_byte_ms"] is not None
    ]
    if not rows:
        return "-"
    return " and ".join(told(median(r[q] for r in rows)) for q in ("p50", "p99"))


def _counts(finding: Finding) -> Sequence[str]:
    """The whole numbers a finding's detail begins with: of how many, over how many."""
    return re.findall(r"\d[\d,]*", finding.detail)


def _read(path: Path) -> Any:
    with understanding(path):
        return json.loads(path.read_text("utf-8"))
