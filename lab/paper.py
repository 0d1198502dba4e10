"""The summary of `docs/paper.md`, written from `docs/results/lab` between two markers by
`python -m lab report`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from contract.files import write_whole
from lab.measured.table import Json, table, told
from training.checkpoint import understanding

PAGE = Path("docs", "paper.md")
RESULTS = Path("docs", "results", "lab")
_BEGIN = "<!-- lab: written by `python -m lab report` -->"
_END = "<!-- /lab -->"


def write(root: Path = Path()) -> Path:
    """Write the summary into the page of the project in `root`; its path."""
    path = root / PAGE
    write_whole(path, page(root))
    return path


def page(root: Path) -> str:
    """The page as it should stand. Raises `ValueError` where its markers are gone, or for a file
    of results that is none."""
    text = (root / PAGE).read_text("utf-8")
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        raise ValueError(f"{PAGE} has lost its markers, {_BEGIN} and {_END}")
    found = [_read(path) for path in sorted((root / RESULTS).glob("*.json"))]
    return f"{before}{begin}\n{summary(found)}\n{end}{after}"


def _read(path: Path) -> Json:
    with understanding(path):
        found: Json = json.loads(path.read_text("utf-8"))
        summary([found])
    return found


def summary(results: list[Json]) -> str:
    """A row for each case of each task, and what all of it took."""
    if not results:
        return "\nNothing has been measured yet.\n"
    head = ("task", "paper", "updates layer norm needs", "over the seeds", "best in the end",
            "layer norm", "no normalisation")  # fmt: skip
    rows = [
        row for content in results for case, found in content["cases"].items()
        if (row := _row(content, case, found))
    ]  # fmt: skip
    return f"\n{table(head, rows)}\n\n{_cost(results)}\n"


def _cost(results: list[Json]) -> str:
    """How long all runs took, and how many sweeps have found a best rate."""
    cases = [case for content in results for case in content["cases"].values()]
    sweeps, full = (
        sum(case["budget"][f"{kind}_seconds"] for case in cases) / 60 for kind in ("sweep", "full")
    )
    norms = [norm for case in cases for norm in case["norms"].values()]
    inside = sum(_inside(norm) for norm in norms)
    return (
        f"All runs together took {sweeps + full:.0f} minutes of one core, {sweeps:.0f} of them "
        f"for the sweeps.\n{inside} of {len(norms)} sweeps have their best rate inside."
    )


def _inside(norm: Json) -> bool:
    """Whether rates on both sides of the one that was taken were tried."""
    rates, taken = [float(rate) for rate in norm["rates"]], float(norm["rate"])
    return min(rates) < taken < max(rates)


def _row(content: Json, case: str, found: Json) -> tuple[str, ...]:
    norms, metric = found["norms"], content["metrics"][0]
    soon = norms["layer"]["updates_to_best_of_none"] if "layer" in norms else None
    ratio, seeds = "-", "-"
    if soon is not None:
        ratio = told(soon["ratio"], 2) if soon["ratio"] is not None else "never there"
        seeds = _range(soon["ratio_of_seeds"])
    name = f"`{content['task']}`" + (f", {case}" if case else "")
    ends = [_end(norms.get(norm), metric["name"]) for norm in ("layer", "none")]
    return name, content["paper"], ratio, seeds, found["winner"] or "none converged", *ends


def _range(ratios: list[float | None]) -> str:
    """Of the seeds that got there, and how many did not."""
    able = [ratio for ratio in ratios if ratio is not None]
    missing = len(ratios) - len(able)
    text = f"{told(min(able), 2)} to {told(max(able), 2)}" if able else ""
    late = f"{missing} of {len(ratios)} never" if missing else ""
    return ", ".join(filter(None, (text, late)))


def _end(result: Json | None, metric: str) -> str:
    """The figure at the end: median, and range of the seeds."""
    found: Any = result and result["test"][metric]
    if not found or not found["range"]:
        return "-"
    return f"{told(found['median'])} {metric} ({range_of_seeds(found, told)})"


def range_of_seeds(found: Json, write: Callable[[Any], str] = str) -> str:
    """The least and the most of a figure's seeds, and how many of them diverged, if any did."""
    low, high = (write(value) for value in found["range"])
    lost = found["seeds"].count(None)
    return f"{low} to {high}" + (f", {lost} of {len(found['seeds'])} diverged" if lost else "")
